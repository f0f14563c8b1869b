"""Layers that share the field's controls: which set of them each layer uses."""

from __future__ import annotations

from itertools import pairwise

from ocdl.base import memory, validation

BYTES_PER_LAYER = 24  # of the map: as a tuple, as a list for the core, and in the core


def validate_control_intervals(control_intervals: object, n_layers: int) -> int | tuple[int, ...] | None:
    """Return the argument in its canonical form, so that equal maps are equal values.

    None: each layer has its own set. An integer n: layer j uses set floor(j n / N). Otherwise the set of each
    layer.
    """
    if control_intervals is None:
        return None
    if not isinstance(control_intervals, (tuple, list)):
        count = validation.integer(control_intervals, "control_intervals", minimum=1)
        if count > n_layers:
            raise ValueError(f"control_intervals must be at most n_layers = {n_layers}, got {count}")
        return None if count == n_layers else count
    if len(control_intervals) != n_layers:
        raise ValueError(
            f"control_intervals must be a number, or name the set of each of n_layers = {n_layers} layers, "
            f"got {len(control_intervals)} entries"
        )
    sets = tuple(
        validation.integer(number, f"control_intervals[{layer}]", minimum=0)
        for layer, number in enumerate(control_intervals)
    )
    for layer, (before, number) in enumerate(pairwise((-1, *sets))):
        accepted = (0,) if layer == 0 else (before, before + 1)
        if number not in accepted:
            raise ValueError(
                f"control_intervals[{layer}] must be {' or '.join(map(str, accepted))}, got {number}: "
                "the sets are numbered from 0 in the order of the layers"
            )
    count = sets[-1] + 1
    if count == n_layers:
        return None
    return count if sets == layer_sets(count, n_layers) else sets


def layer_sets(control_intervals: int | tuple[int, ...] | None, n_layers: int) -> tuple[int, ...]:
    """Return the set of each layer, from the canonical form."""
    if isinstance(control_intervals, tuple):
        return control_intervals
    memory.require_memory("the sets of controls of all layers", {"sets": float(BYTES_PER_LAYER) * n_layers})
    count = n_layers if control_intervals is None else control_intervals
    return tuple(layer * count // n_layers for layer in range(n_layers))
