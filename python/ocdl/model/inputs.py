"""Inputs: known numbers x(t) beside the state, of each sample and at the times of the layers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.model.architecture import Architecture
from ocdl.model.controls import Controls


def join_inputs(
    net: Architecture,
    X: ArrayLike,
    inputs: ArrayLike | None,
    names: tuple[str, str] = ("X", "inputs"),
    minimum: int = 1,
) -> FloatArray:
    """Return the samples of a network with inputs as the core takes them: each row its features, then its inputs."""
    name, inputs_name = names
    rows = validation.samples(X, net.n_features, net.dtype, name, minimum)
    shape = (len(rows), *net._input_shape)
    meaning = f"(samples, layers{' + 1' if net.input_hold == 'linear' else ''}, inputs)"
    if inputs is None:
        raise ValueError(f"{inputs_name} is missing: the network takes an array of shape {shape}, {meaning}")
    array = validation.array_of_shape(
        inputs, inputs_name, shape, f"{meaning} with input_hold={net.input_hold!r}", net.dtype
    )
    return np.concatenate([rows, array.reshape(len(rows), math.prod(net._input_shape))], axis=1)


def join_direction(
    net: Architecture, samples: int, dX: ArrayLike | None, dinputs: ArrayLike | None
) -> FloatArray | None:
    """Return a direction of such rows; None: 0."""
    if dX is None and dinputs is None:
        return None
    X = np.zeros((samples, net.n_features), net.dtype) if dX is None else dX
    return join_inputs(
        net, X, np.zeros((samples, *net._input_shape)) if dinputs is None else dinputs, ("dX", "dinputs")
    )


def require_no_inputs(inputs: ArrayLike | None, name: str = "inputs") -> None:
    """Raise if inputs are given to a network that takes none."""
    if inputs is not None:
        raise ValueError(f"{name} must be left out: the network takes none, its n_inputs is 0")


def refuse_inputs(net: Architecture, what: str) -> None:
    """Raise if the network takes inputs, which a function of networks does not."""
    if net.n_inputs:
        raise ValueError(f"{what} takes networks without inputs, got n_inputs={net.n_inputs}")


def split_inputs(net: Architecture, rows: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return X and inputs of joined rows, or of a gradient by them; no inputs: the rows themselves and None."""
    if net.n_inputs == 0:
        return rows, None
    X, inputs = np.split(rows, [net.n_features], axis=1)
    return np.ascontiguousarray(X), inputs.reshape(len(rows), *net._input_shape)


def refine_inputs(net: Architecture, inputs: FloatArray, factor: int) -> FloatArray:
    """Return what the layers of a network take when each becomes `factor` layers of the same length."""
    if net.input_hold == "zero":
        return np.repeat(inputs, factor, axis=1)
    fractions = np.arange(factor)[:, None] / factor
    inside = inputs[:, :-1, None] + fractions * np.diff(inputs, axis=1)[:, :, None]
    refined: FloatArray = np.concatenate([inside.reshape(len(inputs), -1, net.n_inputs), inputs[:, -1:]], axis=1)
    return refined


def gradient_of_rows(net: Architecture, vector: FloatArray, rows: FloatArray | None) -> Controls:
    """Return a gradient by the controls, and as its X and inputs that by the rows of samples."""
    return Controls(net._layout, vector, *(() if rows is None else split_inputs(net, rows)))
