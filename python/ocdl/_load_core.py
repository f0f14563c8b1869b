"""Choose the compiled core and import it as ``ocdl._core``.

The package holds one extension module per instruction set. The CPU is checked *before* one of them is imported, because
an illegal instruction ends the process and cannot be caught. ``OCDL_CORE=baseline`` (or ``avx2``, ``avx512``) in the
environment overrides the choice. A process has one core.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from ocdl import _cpu

VARIANTS = ("baseline", "avx2", "avx512")  # from the most portable to the fastest


def built_variants() -> tuple[str, ...]:
    """Return the variants that this installation contains."""
    return tuple(name for name in VARIANTS if importlib.util.find_spec(f"ocdl._core_{name}") is not None)


def choose(requested: str | None, built: Sequence[str], supported: Sequence[str]) -> str:
    """Return the requested variant, or the fastest one that is built and that the CPU supports."""
    usable = [name for name in VARIANTS if name in built and name in supported]
    if not usable:
        raise ImportError(
            f"ocdl has no compiled core for this machine (built: {_join_names(built)}; "
            f"the CPU supports: {_join_names(supported)}); reinstall it from source"
        )
    if not requested:
        return usable[-1]
    if requested in usable:
        return requested
    if requested not in VARIANTS:
        reason = f"is not a core; known are {_join_names(VARIANTS)}"
    elif requested not in built:
        reason = "was not built in this installation"
    else:
        reason = "needs instructions that this CPU does not have"
    raise ImportError(
        f"OCDL_CORE={requested} {reason}; usable here: {_join_names(usable)} (unset OCDL_CORE for the best)"
    )


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _load() -> ModuleType:
    supported = [name for name in VARIANTS if _cpu.supports(name)]
    name = choose(os.environ.get("OCDL_CORE"), built_variants(), supported)
    core = importlib.import_module(f"ocdl._core_{name}")
    sys.modules["ocdl._core"] = core
    sys.modules["ocdl"]._core = core  # type: ignore[attr-defined]
    return core


core = _load()
