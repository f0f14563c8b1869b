"""How the compiled core was built."""

from __future__ import annotations

from typing import Any

from ocdl import _core

__all__ = ["build_info"]


def build_info() -> dict[str, Any]:
    """Return how the compiled core in use was built.

    Returns
    -------
    dict
        ``variant``, the instruction set: "baseline", "avx2" or "avx512"; ``vector_bits``, the width of its registers;
        and the versions of ``eigen``, ``compiler`` and ``openmp``.

    Examples
    --------
    >>> import ocdl
    >>> sorted(ocdl.build_info())
    ['compiler', 'eigen', 'openmp', 'variant', 'vector_bits']
    """
    return dict(_core.build_info())
