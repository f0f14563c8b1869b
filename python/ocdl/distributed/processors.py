"""How many threads a rank uses: the processors of its machine, divided by the ranks on them."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

from ocdl.base.threads import has_thread_limit


def description() -> dict[str, Any]:
    """Return where this rank runs, as JSON can hold it."""
    return {"machine": socket.gethostname(), "processors": _processors()}


def count_threads(rank: int, descriptions: Sequence[dict[str, Any]]) -> int | None:
    """Return the number of threads of a rank, from the descriptions of all ranks; None if the user has set it.

    A rank shares its processors with the ranks on its machine that may run on one of them. A launcher that gives each
    rank its own processors, as Slurm does, has divided them already.
    """
    if has_thread_limit():
        return None
    local = descriptions[rank]
    local_processors = {*local["processors"]}
    neighbours = [
        one for one in descriptions if one["machine"] == local["machine"] and local_processors & {*one["processors"]}
    ]
    return max(1, len(local_processors) // len(neighbours))


def _processors() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
