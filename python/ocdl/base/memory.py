"""How much memory something takes, asked before any of it is taken: what cannot fit is refused by name."""

from __future__ import annotations

from collections.abc import Mapping

from ocdl import _core

LITTLE = 2**27  # bytes that are not worth a look at the system
UNITS = ("MB", "GB", "TB", "PB", "EB")


def require(what: str, parts: Mapping[str, float]) -> None:
    """Raise a MemoryError where these parts, in bytes, are more than is free; it names the largest.

    ``the states of the samples at every layer would take 23.1 GB, and 18 GB are free``
    """
    total = sum(parts.values())
    if total < LITTLE:
        return
    free = _core.available_memory()
    if total <= free:
        return
    shares = sorted(parts, key=lambda name: -parts[name])
    most = [f"{in_units(parts[name])} {name}" for name in shares if parts[name] > total / 20]
    dominant = f": {', '.join(most)}" if len(parts) > 1 else ""
    raise MemoryError(f"{what} would take {in_units(total)}{dominant}; {in_units(free)} are free")


def in_units(size: float) -> str:
    """Return a number of bytes as people write it."""
    number = size / 1e6
    for unit in UNITS:
        if number < 999.5 or unit == UNITS[-1]:
            break
        number /= 1e3
    return f"{number:.3g} {unit}"
