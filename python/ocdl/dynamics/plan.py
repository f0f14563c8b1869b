"""All that a fit of a dynamical system depends on, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocdl.dynamics.series import Series
from ocdl.dynamics.system import System
from ocdl.dynamics.units import Units

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DynamicsPlan:
    """The checked arguments of a fit.

    `W` (q, dim) is what is observed of a state, in the units of the data; `linear` (dim, dim) the known linear part, or
    None; `max_step` in the time of the data, or None; `report` is called with a line about each stage.
    """

    series: tuple[Series, ...]
    system: System
    W: Floats
    observes_components: bool
    max_step: float | None
    linear: Floats | None
    learn_linear: bool
    sparsity: float | str
    alpha: float | str
    max_iter: int
    validation_fraction: float
    seed: int
    report: Callable[[str], None]
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, eq=False)
class LearnedSystem:
    """A system with its numbers, without units, and what is known about their errors.

    `W` and `noise` are of the outputs without units, `step` is the largest step without units, `layers` those of a
    window. `free` are the parameters that were learned, `variance` the squares of their standard errors, else 0.
    """

    system: System
    theta: Floats
    units: Units
    W: Floats
    output_shift: Floats
    output_scale: Floats
    noise: Floats
    step: float
    layers: int
    free: Mask
    variance: Floats


@dataclass(frozen=True, eq=False)
class DynamicsFit:
    """What a fit returns: the learned system, the number of iterations, of windows, and the held-out error.

    `validation_error` is the root mean square of held-out residuals in units of the noise; NaN if none was held out.
    """

    learned: LearnedSystem
    n_iter: int
    n_windows: int
    validation_error: float
