"""Nothing is timed before its answer agrees with the hand-written adjoint in double precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jobs import Gradient, Job, Problem, Training, make_problem
from peers import numpy_peer

TOLERANCES = {"float64": 1e-10, "float32": 1e-3}
# A training amplifies the last digits of its gradients: on J7 to 2e-10, on spirals drawn anew to 1e-8.
TRAINING_TOLERANCE = 1e-6


def reference(question: str, job: Job) -> Any:
    """The answer of the NumPy peer in float64 on the job's own (possibly rounded) data."""
    double = replace(job, dtype="float64")
    problem = Problem(*(array.astype("float64") for array in make_problem(job)))
    answer = getattr(numpy_peer, question)(double, problem, job.thread_counts[0])()
    return Gradient(*answer) if question == "gradient" else answer


def disagreement(answer: Any, expected: Any, job: Job) -> str:
    """Empty if every part agrees relative to its largest entry, else a sentence naming the worst part."""
    if isinstance(expected, Training):
        return _training_disagreement(answer, expected)
    if not isinstance(expected, Gradient):
        return _part_disagreement("outputs", answer, expected, job)
    parts = zip(Gradient._fields, answer, expected, strict=True)
    return "; ".join(filter(None, (_part_disagreement(name, got, right, job) for name, got, right in parts)))


def _part_disagreement(name: str, got: Any, right: Any, job: Job) -> str:
    if right is None:
        return "" if got is None else f"{name} was not requested"
    if np.shape(got) != np.shape(right):
        return f"{name} has shape {np.shape(got)}, expected {np.shape(right)}"
    error = float(np.max(np.abs(got - right)) / np.max(np.abs(right)))
    return "" if error <= TOLERANCES[job.dtype] else f"{name} is off by {error:.1e} relative"


def _training_disagreement(answer: Training, expected: Training) -> str:
    if np.shape(answer.losses) != np.shape(expected.losses):
        return f"{len(answer.losses) - 1} iterations instead of {len(expected.losses) - 1}"
    error = deviation(answer, expected).max()
    return "" if error <= TRAINING_TOLERANCE else f"losses are off by {error:.1e} relative"


def deviation(answer: Training, expected: Training) -> np.ndarray:
    """Of the losses from those expected, relative, after each iteration."""
    return np.abs(answer.losses - expected.losses) / np.abs(expected.losses)
