from typing import Any, TypedDict, overload, type_check_only

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Numbers are float64 or float32, in all arrays of a call alike: an overload each. Results have the type of the
# arguments; the stub says Any, because the network's dtype is known at run time only.

@type_check_only
class pybind11_type(type): ...  # the metaclass of the classes below

@type_check_only
class BuildInfo(TypedDict):
    variant: str
    vector_bits: int
    eigen: str
    compiler: str
    openmp: str

def build_info() -> BuildInfo: ...
def set_num_threads(threads: int) -> None: ...
def set_num_threads_here(threads: int) -> None: ...
def get_num_threads() -> int: ...
def insist_on_threads(always: bool) -> None: ...

class Tableau(metaclass=pybind11_type):
    def __init__(self, A: ArrayLike, b: ArrayLike, c: ArrayLike | None = None, name: str = "") -> None: ...
    @property
    def A(self) -> NDArray[np.float64]: ...
    @property
    def b(self) -> NDArray[np.float64]: ...
    @property
    def c(self) -> NDArray[np.float64]: ...
    @property
    def name(self) -> str: ...
    @property
    def stages(self) -> int: ...
    @property
    def order(self) -> int: ...
    @property
    def is_explicit(self) -> bool: ...
    def adjoint(self) -> Tableau: ...
    @staticmethod
    def named(name: str) -> Tableau: ...

def tableau_names() -> list[str]: ...

class Objective(metaclass=pybind11_type):
    def __init__(self, loss: str, mean: bool, tikhonov: float, l1: float, time_smoothness: float) -> None: ...

class Network(metaclass=pybind11_type):
    def __init__(
        self,
        features: int,
        dim: int,
        layers: int,
        outputs: int,
        tableau: Tableau,
        activation: str,
        residual: bool,
        stage_controls: bool,
        learns_steps: bool,
        horizon: float,
        field: str,
    ) -> None: ...
    def predict(self, u: object, X: object) -> NDArray[Any] | None: ...
    def fits(self, u: object, X: object, y: object) -> bool: ...
    @property
    def control_size(self) -> int: ...
    @property
    def is_implicit(self) -> bool: ...

    # (states or None, outputs)
    @overload
    def forward(
        self, u: NDArray[np.float64], X: NDArray[np.float64], with_states: bool
    ) -> tuple[Any, NDArray[Any]]: ...
    @overload
    def forward(
        self, u: NDArray[np.float32], X: NDArray[np.float32], with_states: bool
    ) -> tuple[Any, NDArray[Any]]: ...
    @overload
    def tangent(
        self,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        du: NDArray[np.float64] | None,
        dX: NDArray[np.float64] | None,
    ) -> NDArray[Any]: ...
    @overload
    def tangent(
        self,
        u: NDArray[np.float32],
        X: NDArray[np.float32],
        du: NDArray[np.float32] | None,
        dX: NDArray[np.float32] | None,
    ) -> NDArray[Any]: ...
    @overload
    def value(
        self,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float64] | None,
        objective: Objective,
    ) -> float: ...
    @overload
    def value(
        self,
        u: NDArray[np.float32],
        X: NDArray[np.float32],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float32] | None,
        objective: Objective,
    ) -> float: ...

    # (value, gradient, input gradient or None, whether all are finite)
    @overload
    def value_and_grad(
        self,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float64] | None,
        objective: Objective,
        with_inputs: bool,
    ) -> tuple[float, NDArray[Any], NDArray[Any] | None, bool]: ...
    @overload
    def value_and_grad(
        self,
        u: NDArray[np.float32],
        X: NDArray[np.float32],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float32] | None,
        objective: Objective,
        with_inputs: bool,
    ) -> tuple[float, NDArray[Any], NDArray[Any] | None, bool]: ...
    @overload
    def adjoint(
        self,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float64] | None,
        objective: Objective,
    ) -> NDArray[Any]: ...
    @overload
    def adjoint(
        self,
        u: NDArray[np.float32],
        X: NDArray[np.float32],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float32] | None,
        objective: Objective,
    ) -> NDArray[Any]: ...
    def curvature_product(
        self,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        y: NDArray[np.int64],
        sample_weight: NDArray[np.float64] | None,
        objective: Objective,
        curvature: str,
        du: NDArray[np.float64],
    ) -> NDArray[Any]: ...

def activation_names() -> list[str]: ...
def field_names() -> list[str]: ...
def loss_names() -> list[str]: ...
def curvature_names() -> list[str]: ...

# Index of the first such entry of the flat array, or -1.
@overload
def first_non_finite(values: NDArray[np.float64]) -> int: ...
@overload
def first_non_finite(values: NDArray[np.float32]) -> int: ...
def first_outside(labels: NDArray[np.int64], lowest: int, highest: int) -> int: ...
@overload
def project_simplex(v: NDArray[np.float64], total: float) -> NDArray[Any]: ...
@overload
def project_simplex(v: NDArray[np.float32], total: float) -> NDArray[Any]: ...

# The settings of a method: they name it.
class GradientDescent(metaclass=pybind11_type):
    def __init__(self, step: float) -> None: ...

class Backtracking(metaclass=pybind11_type):
    def __init__(self, L0: float, rho_up: float, rho_down: float, max_trials: int) -> None: ...

class Armijo(metaclass=pybind11_type):
    def __init__(
        self, c: float, shrink: float, grow: float, first_step: float, max_step: float, max_trials: int
    ) -> None: ...

class Adam(metaclass=pybind11_type):
    def __init__(self, lr: float, beta1: float, beta2: float, epsilon: float, batch_size: int, seed: int) -> None: ...

class LBFGS(metaclass=pybind11_type):
    def __init__(self, memory: int, max_trials: int) -> None: ...

class NewtonCG(metaclass=pybind11_type):
    def __init__(self, curvature: str, radius: float, forcing: float, max_products: int, max_trials: int) -> None: ...

class StopFlag(metaclass=pybind11_type):
    def __init__(self) -> None: ...
    def request(self) -> None: ...
    @property
    def requested(self) -> bool: ...

class Training(metaclass=pybind11_type):  # made by make_training
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    # False: the flag has stopped it before its end.
    def start(self, stop: StopFlag) -> bool: ...
    def run(self, records: NDArray[np.float64], seconds: float, stop: StopFlag) -> bool: ...
    @property
    def record(self) -> tuple[float, float, float, float, float]: ...
    @property
    def status(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def evaluations(self) -> int: ...
    def controls(self) -> NDArray[Any]: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    # (objective or NaN, accuracy), or None if the flag has stopped it
    def assess(
        self,
        X: NDArray[Any],
        y: NDArray[np.int64],
        sample_weight: NDArray[Any] | None,
        objective: Objective | None,
        stop: StopFlag,
    ) -> tuple[float, float] | None: ...

@overload
def make_training(
    net: Network,
    u: NDArray[np.float64],
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    sample_weight: NDArray[np.float64] | None,
    objective: Objective,
    method: GradientDescent | Backtracking | Armijo | Adam | LBFGS | NewtonCG,
    frozen: list[str],
    simplex: bool,
    tolerance: float,
    first_value: float,
    seconds: float,
) -> Training: ...
@overload
def make_training(
    net: Network,
    u: NDArray[np.float32],
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    sample_weight: NDArray[np.float32] | None,
    objective: Objective,
    method: GradientDescent | Backtracking | Armijo | Adam | LBFGS | NewtonCG,
    frozen: list[str],
    simplex: bool,
    tolerance: float,
    first_value: float,
    seconds: float,
) -> Training: ...
