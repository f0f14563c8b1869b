"""Taylor remainders: check a derivative of a function along a line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ocdl.base.validation import FloatArray

RATIO = 4.0  # of successive step sizes
SMALLEST = {"float64": 19, "float32": 8}  # steps down to RATIO^-n: below, the roundoff of the derivative shows
TAIL = RATIO ** -np.arange(20.0, 24.0)  # step sizes whose remainders are the roundoff of the function
FITTED = 5  # number of steps for the fit of the slope: the smallest ones above the roundoff, where the asymptotics hold
ABOVE_NOISE = 100.0  # multiple of the roundoff above which remainders are fitted


class Taylor(NamedTuple):
    """Taylor remainders for the step sizes e, their slopes in a log-log plot, and an error.

    The remainder of order 0 is ``|phi(e) - phi(0)|``, slope 1 for a differentiable function; that of order 1 is
    ``|phi(e) - phi(0) - e phi'(0)|``, slope 2 if the derivative is right and 1 if it is not. Where the second
    derivative happens to vanish or phi has kinks the slope may be another one, but
    ``|(phi(e) - phi(0)) / e - phi'(0)|`` is small for some step and its neighbours; relative to ``|phi'(0)|`` it is the
    error.

    Attributes
    ----------
    steps : ndarray of shape (k,)
    order0, order1 : ndarray of shape (k,)
        The remainders.
    slope0, slope1 : float
        NaN: all remainders are roundoff.
    error : float

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 10)
    >>> report = net.certify(net.init(random_state=0), np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1])
    >>> test = report.taylor
    >>> isinstance(test, ocdl.Taylor), test.steps.shape == test.order0.shape == test.order1.shape
    (True, True)
    >>> round(test.slope0), round(test.slope1), test.error < 1e-6
    (1, 2, True)
    """

    steps: FloatArray
    order0: FloatArray
    order1: FloatArray
    slope0: float
    slope1: float
    error: float


def taylor(phi: Callable[[float], float], derivative: float, dtype: np.dtype[Any]) -> Taylor:
    """Return the remainders at 0 of a function in float64 whose derivative was computed in `dtype`."""
    start = phi(0.0)
    steps = RATIO ** -np.arange(1.0, SMALLEST[str(dtype)] + 1)
    rise, tail = (np.array([phi(float(e)) for e in sizes]) - start for sizes in (steps, TAIL))
    order0, order1 = np.abs(rise), np.abs(rise - steps * derivative)
    roundoff = max(float(np.finfo(np.float64).eps) * abs(start), float(np.abs(tail - TAIL * derivative).max()))
    slope0, slope1 = (_slope(steps, remainders, ABOVE_NOISE * roundoff) for remainders in (order0, order1))
    # Three steps, as the remainder of a wrong derivative can be 0 at a single one.
    error = float(np.lib.stride_tricks.sliding_window_view(order1 / steps, 3).max(axis=1).min())
    error = error / abs(derivative) if derivative else math.inf
    return Taylor(steps, order0, order1, slope0, slope1, error)


def _slope(steps: FloatArray, remainders: FloatArray, noise: float) -> float:
    """Return the slope over the smallest steps from which on every remainder is above the noise."""
    below = np.flatnonzero(~(remainders > noise))
    last = int(below[0]) if len(below) else len(steps)
    fitted = slice(max(0, last - FITTED), last)
    if len(steps[fitted]) < 3:
        return math.nan
    return float(np.polyfit(np.log(steps[fitted]), np.log(remainders[fitted]), 1)[0])
