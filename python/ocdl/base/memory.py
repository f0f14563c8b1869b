"""Check that memory suffices before it is allocated."""

from __future__ import annotations

from collections.abc import Mapping

from ocdl import _core

NEGLIGIBLE = 2**27  # bytes; smaller amounts are not compared with the free memory
UNITS = ("MB", "GB", "TB", "PB", "EB")


def require_memory(what: str, sizes: Mapping[str, float]) -> None:
    """Raise a MemoryError that names the largest amounts if these amounts, in bytes, exceed the free memory.

    ``the states of the samples at every layer would take 23.1 GB, and 18 GB are free``
    """
    total = sum(sizes.values())
    if total < NEGLIGIBLE:
        return
    free = _core.available_memory()
    if total <= free:
        return
    names = sorted(sizes, key=lambda name: -sizes[name])
    largest = [f"{format_bytes(sizes[name])} {name}" for name in names if sizes[name] > total / 20]
    dominant = f": {', '.join(largest)}" if len(sizes) > 1 else ""
    raise MemoryError(f"{what} would take {format_bytes(total)}{dominant}; {format_bytes(free)} are free")


def format_bytes(size: float) -> str:
    """Return a number of bytes with three digits and a unit."""
    number = size / 1e6
    for unit in UNITS:
        if number < 999.5 or unit == UNITS[-1]:
            break
        number /= 1e3
    return f"{number:.3g} {unit}"
