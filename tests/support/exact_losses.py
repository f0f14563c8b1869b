"""The formulas of the losses, to many more digits than a double has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

from ocdl.model.losses import Loss

ULPS = 8  # of the size of the terms


class Exact(NamedTuple):
    """What a loss is at a row of outputs, each with the size of the terms that it is the sum of."""

    value: Any
    gradient: list[Any]
    hessian: list[list[Any]]
    gauss_newton: list[list[Any]]
    value_size: Any
    gradient_sizes: list[Any]
    curvature_size: Any


def diagonal(entries: list[Any]) -> list[list[Any]]:
    return [[entry if o == p else mp.mpf(0) for p in range(len(entries))] for o, entry in enumerate(entries)]


def one_hot(label: Any, q: int) -> list[int]:
    return [int(label)] if q == 1 else [int(o == label) for o in range(q)]


def squared(z: list[Any], label: Any) -> Exact:
    c = one_hot(label, len(z))
    C = [1 / (1 + mp.exp(-entry)) for entry in z]
    r = [p - t for p, t in zip(C, c, strict=True)]
    dC = [mp.exp(-abs(entry)) / (1 + mp.exp(-abs(entry))) ** 2 for entry in z]
    value = mp.fsum(e * e for e in r) / 2
    slopes = [e * d for e, d in zip(r, dC, strict=True)]
    curved = [d * d + e * d * (1 - 2 * p) for e, d, p in zip(r, dC, C, strict=True)]
    size = max(d * d + abs(e) * d for e, d in zip(r, dC, strict=True))
    gauss_newton = diagonal([d * d for d in dC])
    return Exact(value, slopes, diagonal(curved), gauss_newton, value, [abs(s) for s in slopes], size)


def cross_entropy(z: list[Any], label: Any) -> Exact:
    if len(z) == 1:
        sign = 1 - 2 * int(label)
        value, p = mp.log1p(mp.exp(sign * z[0])), 1 / (1 + mp.exp(-sign * z[0]))
        curved = diagonal([p / (1 + mp.exp(sign * z[0]))])
        return Exact(value, [sign * p], curved, curved, value, [p], p)
    weights = [mp.exp(entry - max(z)) for entry in z]
    p = [weight / mp.fsum(weights) for weight in weights]
    value = mp.log(mp.fsum(mp.exp(entry - z[int(label)]) for entry in z))
    others = [mp.fsum(p[:o] + p[o + 1 :]) for o in range(len(z))]
    slopes = [-others[o] if o == label else p[o] for o in range(len(z))]
    curved = [[p[o] * others[o] if o == k else -p[o] * p[k] for k in range(len(z))] for o in range(len(z))]
    conditioning = 1 + (max(z) - min(z)) / ULPS  # of differences of outputs, rounded, in an exponent
    sizes = [conditioning * abs(slope) for slope in slopes]
    return Exact(value, slopes, curved, curved, conditioning * value, sizes, mp.mpf(1))


def of_each_output(
    formula: Callable[..., tuple[Any, Any, Any, Any, Any]],
) -> Callable[..., Exact]:
    """A loss that is a sum over the outputs of (value, slope, curvature, size of the value, size of the slope)."""

    def evaluated(z: list[Any], c: list[Any], **parameters: Any) -> Exact:
        rows = [formula(entry, mp.mpf(float(t)), **parameters) for entry, t in zip(z, c, strict=True)]
        values, slopes, curved, sizes, gradient_sizes = (list(column) for column in zip(*rows, strict=True))
        matrix = diagonal(curved)
        return Exact(mp.fsum(values), slopes, matrix, matrix, mp.fsum(sizes), gradient_sizes, max(curved))

    return evaluated


def squared_error(z: Any, c: Any) -> tuple[Any, ...]:
    r = z - c
    return r * r / 2, r, mp.mpf(1), r * r, abs(r)


def huber(z: Any, c: Any, delta: Any) -> tuple[Any, ...]:
    r = z - c
    if abs(float(z) - float(c)) <= delta:  # which side of the kink it is on, a rounded residual decides
        return r * r / 2, r, mp.mpf(1), r * r, abs(r)
    return delta * (abs(r) - delta / 2), delta * mp.sign(r), mp.mpf(0), delta * (abs(r) + delta), delta


def quantile(z: Any, c: Any, level: Any) -> tuple[Any, ...]:
    value = max(level * (c - z), (level - 1) * (c - z))
    slope = (1 - level) * (z > c) - level * (z < c)
    return value, mp.mpf(slope), mp.mpf(0), value, mp.mpf(1)


def poisson(z: Any, c: Any) -> tuple[Any, ...]:
    logs = c * mp.log(c) if c else mp.mpf(0)
    value = mp.exp(z) - c * z + logs - c
    return value, mp.exp(z) - c, mp.exp(z), mp.exp(z) + c + abs(c * z) + abs(logs), mp.exp(z) + c


FORMULAS: dict[str, Callable[..., Exact]] = {
    "squared": squared,
    "cross_entropy": cross_entropy,
    "squared_error": of_each_output(squared_error),
    "huber": of_each_output(huber),
    "quantile": of_each_output(quantile),
    "poisson": of_each_output(poisson),
}


def exact(loss: Loss, z: np.ndarray, target: Any) -> Exact:
    parameters = {name: mp.mpf(value) for name, value in loss.parameters().items()}
    return FORMULAS[loss.name]([mp.mpf(float(entry)) for entry in z], target, **parameters)
