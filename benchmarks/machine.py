"""What a result depends on: processor, memory and versions; nothing that names a host or a path."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("ocdl", "numpy", "scipy", "numba", "jax", "jaxlib", "diffrax", "torch", "torchdiffeq")
NOTABLE_FLAGS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "asimd", "sve")


def describe() -> dict[str, Any]:
    cpuinfo = _cpuinfo()
    flags = cpuinfo.get("flags", cpuinfo.get("Features", "")).split()
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": cpuinfo.get("model name", platform.processor()),
        "instruction_sets": [flag for flag in NOTABLE_FLAGS if flag in flags],
        "cores": os.cpu_count(),
        "memory_gb": round(total_memory() / 1e9),
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cpuinfo() -> dict[str, str]:
    """The first processor's entries; empty where there is no /proc."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = path.read_text().split("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
