"""What takes part in a benchmark: ocdl and its peers, each loaded only in the process that runs it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs import Gradient, Job, Problem, Training


@dataclass(frozen=True)
class Contender:
    """How one library answers; a builder prepares everything, the callable it returns is what gets timed.

    `unsupported(job)` is empty or says why this contender leaves the job out.
    """

    gradient: Callable[[Job, Problem, int], Callable[[], Gradient]]
    prediction: Callable[[Job, Problem, int], Callable[[], Any]] | None = None
    training: Callable[[Job, Problem, int], Callable[[], Training]] | None = None
    unsupported: Callable[[Job], str] = lambda job: ""

    def refusal(self, question: str, job: Job) -> str:
        if getattr(self, question) is None:
            return f"no {question} written for it"
        return self.unsupported(job)


@dataclass(frozen=True)
class Assignment:
    """What one process has to do: `question` is "gradient", "prediction" or "training"."""

    name: str
    question: str
    job: Job
    threads: int
    processors: int = 2
    memory_limit: int | None = None
    python: str = sys.executable
    """The interpreter that runs it."""
    module: str = ""
    """What defines the contender; empty: the module of ORIGINS."""

    @property
    def label(self) -> str:
        return self.name if self.threads > 1 else f"{self.name} (1 thread)"


class Refused(Exception):
    """The contender leaves this job out; the message says why."""


class Failed(Exception):
    """The contender's process ended or raised."""


class Origin(NamedTuple):
    """The module of benchmarks/ that defines a contender and the package it needs."""

    module: str
    package: str


BEFORE = "before"
"""Another ocdl, in an environment of its own, as a contender."""

ORIGINS = {
    "ocdl": Origin("ocdl_contender", "ocdl"),
    BEFORE: Origin("ocdl_contender", "ocdl"),
    "numpy": Origin("peers.numpy_peer", "numpy"),
    "numba": Origin("peers.numba_peer", "numba"),
    "jax": Origin("peers.jax_peer", "jax"),
    "diffrax": Origin("peers.diffrax_peer", "diffrax"),
    "torch": Origin("peers.torch_peer", "torch"),
    "torch.compile": Origin("peers.torch_peer", "torch"),
    "torchdiffeq": Origin("peers.torchdiffeq_peer", "torchdiffeq"),
}


def installed() -> list[str]:
    return [name for name, origin in ORIGINS.items() if importlib.util.find_spec(origin.package) is not None]


def load(assignment: Assignment) -> Contender:
    name = assignment.name
    return importlib.import_module(assignment.module or ORIGINS[name].module).CONTENDERS[name]
