"""A limit on the address space (``ulimit -v``): a command that cannot fit is refused before libraries are imported.

With too little memory some libraries do not raise a MemoryError: they crash, or wait for ever.
"""

from __future__ import annotations

import argparse
import os
import resource
from contextlib import suppress

from ocdl.base.memory import format_bytes

# Bytes with which the imports of a command have succeeded on one thread, and a margin.
WITH_LIBRARIES, WITH_NUMPY = 8e8, 1.6e8
NEED_NUMPY_ONLY = ("info", "inspect", "playground")
# Bytes that a command takes for each byte of the files that it reads.
FOR_EACH_BYTE = {
    "train": 9.0,
    "predict": 6.0,
    "score": 6.0,
    "export": 9.0,
    "inspect": 3.0,
    "dynamics": 6.0,
    "simulate": 6.0,
}


def require_room(arguments: argparse.Namespace) -> None:
    """Raise a MemoryError that names the size needed if the limit is too small for a command."""
    limit = address_space_limit()
    sizes = {"for the libraries": WITH_NUMPY if arguments.command in NEED_NUMPY_ONLY else WITH_LIBRARIES}
    for path in filter(None, (getattr(arguments, name, None) for name in ("data", "model"))):
        with suppress(OSError, ValueError):  # a name of generated data, or an error that the command itself reports
            sizes[f"for {path}"] = FOR_EACH_BYTE.get(arguments.command, 1.0) * os.stat(path).st_size
    total = sum(sizes.values())
    if total > limit:
        largest = ", ".join(f"{format_bytes(size)} {what}" for what, size in sizes.items() if size > total / 20)
        need = f"ocdl {arguments.command} needs about {format_bytes(total)}: {largest}"
        raise MemoryError(f"{need}; the limit (ulimit -v) is {format_bytes(limit)}")


def address_space_limit() -> float:
    """Return the limit on the address space in bytes, infinity if there is none."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return float("inf") if limit == resource.RLIM_INFINITY else float(limit)
