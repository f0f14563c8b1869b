from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict, overload, type_check_only

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
def available_memory() -> float: ...
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
        width: int,  # of the fields that have one, else 0; the same holds for the degree
        degree: int,
        inputs: int,
        linear_inputs: bool,  # between those of two layers, else constant within a layer
        layer_sets: Sequence[int],  # the set of the field's controls of each layer; empty: each has its own
    ) -> None: ...
    # (name, role, names of the axes, shape) of each part of the controls
    @property
    def parts(self) -> list[tuple[str, str, list[str], tuple[int, ...]]]: ...
    # How each part of the field starts: (distribution, size, size where the start is scaled to the dimension)
    @property
    def starts(self) -> dict[str, tuple[str, float, float]]: ...
    @property
    def inputs(self) -> int: ...
    # Numbers of a sample in the rows of X: its features, then the inputs of the layers. Gradients by X have as many.
    @property
    def row_size(self) -> int: ...
    @property
    def is_implicit(self) -> bool: ...

    # The controls as the sweeps take them.
    def scratch_bytes(self, samples: int, single: bool) -> float: ...
    def field_controls(self, u: NDArray[np.float64]) -> NDArray[np.float64]: ...

    # (states, outputs)
    @overload
    def forward(self, u: NDArray[np.float64], X: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def forward(self, u: NDArray[np.float32], X: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]: ...
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

    # These take any objects, and return None where one has to be converted or explained first, or where what they would
    # return is not finite; `vjp` (gradient, input gradient, costates or None), which without `require_finite`
    # returns numbers that are not finite as well.
    def predict(self, u: object, X: object) -> NDArray[Any] | None: ...
    def final_state(self, u: object, X: object) -> NDArray[Any] | None: ...
    def vjp(
        self,
        u: object,
        X: object,
        output_cotangents: object,
        state_cotangents: object,
        with_costates: bool,
        require_finite: bool = True,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None] | None: ...

# Tensors of a library with DLPack's C functions, such as PyTorch; None where one is no plain tensor in C order on the
# CPU, does not fit, or something is not finite. `tensor_forward` has the vector of controls and the result;
# `tensor_vjp` the gradients by x and by each part, None where none is needed.
def tensor_forward(
    net: Network, x: object, parts: tuple[object, ...], of_outputs: bool
) -> tuple[NDArray[Any], Any] | None: ...
def tensor_vjp(
    net: Network, vector: object, x: object, cotangent: object, of_outputs: bool, needs: tuple[bool, ...]
) -> tuple[Any, ...] | None: ...

# name -> (largest slope, whether it has a kink at 0, the |z| from which on it is flat)
def activations() -> dict[str, tuple[float, bool, float, bool]]: ...

# z <- sigma(z) on whole packs, as a sweep does it
@overload
def activate(activation: str, z: NDArray[np.float64]) -> None: ...
@overload
def activate(activation: str, z: NDArray[np.float32]) -> None: ...

# sigma, sigma' and sigma''
def activation_derivatives(
    activation: str, z: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...

# name -> (the field that it is after a linear map of its controls, or itself; whether it needs an even dimension; the
# option that it requires, "width", "degree" or "")
def fields() -> dict[str, tuple[str, bool, str, bool, bool]]: ...

# Index of the first such entry of the flat array, or -1.
@overload
def first_non_finite(values: NDArray[np.float64]) -> int: ...
@overload
def first_non_finite(values: NDArray[np.float32]) -> int: ...
def first_outside(labels: NDArray[np.int64], lowest: int, highest: int) -> int: ...

# Targets y are int64 labels where the loss takes classes, else numbers of the type of X, or observations, which have
# attributes observed_rows, count and shared_times.
class Objective(metaclass=pybind11_type):
    # penalties: (name, weight, names of parts or None, the axis of groups)
    def __init__(
        self,
        loss: str,
        parameters: dict[str, float],
        mean: bool,
        penalties: Sequence[tuple[str, float, Sequence[str] | None, str]],
    ) -> None: ...

    # without the penalties that have no gradient where a control is 0
    def smooth_part(self) -> Objective: ...

    # As `Network.predict` they return None where there is more to do; `value_and_grad` (value, gradient, input gradient
    # or None).
    def value(self, net: Network, u: object, X: object, y: object, sample_weight: object) -> float | None: ...
    def value_and_grad(
        self, net: Network, u: object, X: object, y: object, sample_weight: object, input_grad: object
    ) -> tuple[float, NDArray[Any], NDArray[Any] | None] | None: ...
    @overload
    def adjoint(
        self,
        net: Network,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        y: Any,
        sample_weight: NDArray[np.float64] | None,
    ) -> NDArray[Any]: ...
    @overload
    def adjoint(
        self,
        net: Network,
        u: NDArray[np.float32],
        X: NDArray[np.float32],
        y: Any,
        sample_weight: NDArray[np.float32] | None,
    ) -> NDArray[Any]: ...

    # the regulariser and its gradient
    @overload
    def penalty(self, net: Network, u: NDArray[np.float64]) -> tuple[float, NDArray[Any]]: ...
    @overload
    def penalty(self, net: Network, u: NDArray[np.float32]) -> tuple[float, NDArray[Any]]: ...
    @overload
    def output_grad(
        self, outputs: NDArray[np.float64], y: Any, sample_weight: NDArray[np.float64] | None
    ) -> NDArray[Any]: ...
    @overload
    def output_grad(
        self, outputs: NDArray[np.float32], y: Any, sample_weight: NDArray[np.float32] | None
    ) -> NDArray[Any]: ...

    # what outputs stand for: probabilities of the classes, or numbers
    @overload
    def mean(self, outputs: NDArray[np.float64]) -> NDArray[Any]: ...
    @overload
    def mean(self, outputs: NDArray[np.float32]) -> NDArray[Any]: ...
    def curvature_product(
        self,
        net: Network,
        u: NDArray[np.float64],
        X: NDArray[np.float64],
        y: Any,
        sample_weight: NDArray[np.float64] | None,
        curvature: str,
        du: NDArray[np.float64],
    ) -> NDArray[np.float64]: ...

# The outputs at the times of observations, (samples, times, outputs), and for cotangents of these (gradient, input
# gradient, costates).
@overload
def outputs_at(net: Network, u: NDArray[np.float64], X: NDArray[np.float64], observed: Any) -> NDArray[Any]: ...
@overload
def outputs_at(net: Network, u: NDArray[np.float32], X: NDArray[np.float32], observed: Any) -> NDArray[Any]: ...
@overload
def observed_vjp(
    net: Network,
    u: NDArray[np.float64],
    X: NDArray[np.float64],
    observed: Any,
    cotangents: NDArray[np.float64],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
@overload
def observed_vjp(
    net: Network,
    u: NDArray[np.float32],
    X: NDArray[np.float32],
    observed: Any,
    cotangents: NDArray[np.float32],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...

# (name, targets, formula, least target, parameters), a parameter being (name, default, above, below, meaning)
def losses() -> list[tuple[str, str, str, float, list[tuple[str, float, float, float, str]]]]: ...

# name -> whether it has a kink where a control is 0
def penalties() -> dict[str, bool]: ...
def curvature_names() -> list[str]: ...

# The class that each row of outputs decides for.
@overload
def decisions(outputs: NDArray[np.float64]) -> NDArray[np.int64]: ...
@overload
def decisions(outputs: NDArray[np.float32]) -> NDArray[np.int64]: ...
@overload
def project_simplex(v: NDArray[np.float64], total: float) -> NDArray[Any]: ...
@overload
def project_simplex(v: NDArray[np.float32], total: float) -> NDArray[Any]: ...

class Evaluator(metaclass=pybind11_type):  # made by one of the following
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

@overload
def samples_evaluator(
    net: Network,
    X: NDArray[np.float64],
    y: Any,
    sample_weight: NDArray[np.float64] | None,
    objective: Objective,
) -> Evaluator: ...
@overload
def samples_evaluator(
    net: Network,
    X: NDArray[np.float32],
    y: Any,
    sample_weight: NDArray[np.float32] | None,
    objective: Objective,
) -> Evaluator: ...

# The same network with X of all components of a state.
def with_whole_states(net: Network) -> Network: ...

# Of the controls followed by the initial states; X may hold NaN.
@overload
def initial_states_evaluator(
    net: Network,
    X: NDArray[np.float64],
    y: NDArray[Any],
    sample_weight: NDArray[np.float64] | None,
    objective: Objective,
    observed: float,
    continuity: float,
    next_window: Sequence[int],
) -> Evaluator: ...
@overload
def initial_states_evaluator(
    net: Network,
    X: NDArray[np.float32],
    y: NDArray[Any],
    sample_weight: NDArray[np.float32] | None,
    objective: Objective,
    observed: float,
    continuity: float,
    next_window: Sequence[int],
) -> Evaluator: ...

# value(outputs, rows or None, with_gradient) -> (value, gradient or None); score(outputs)
@overload
def callback_loss_evaluator(
    net: Network,
    X: NDArray[np.float64],
    penalties: Objective,
    value: Callable[..., tuple[float, NDArray[Any] | None]],
    score: Callable[..., float],
    observed: Any = None,
) -> Evaluator: ...
@overload
def callback_loss_evaluator(
    net: Network,
    X: NDArray[np.float32],
    penalties: Objective,
    value: Callable[..., tuple[float, NDArray[Any] | None]],
    score: Callable[..., float],
    observed: Any = None,
) -> Evaluator: ...

# A node of the tree of sums: level, index, and its sums in double and in single precision. add_up(nodes) -> the sums
# over all parts; None: there is no other part. loss_of_rows(outputs, positions or None, scale, with_gradient) ->
# (weighted losses, gradient or None) of the rows that were read last, or of those at these positions.
_TreeNode: TypeAlias = tuple[int, int, NDArray[np.float64], NDArray[np.float32]]
_Sums: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float32]]

@overload
def shards_evaluator(
    net: Network,
    X: NDArray[np.float64],
    y: Any,
    sample_weight: NDArray[np.float64] | None,
    objective: Objective,
    first_row: int,
    all_rows: int,
    add_up: Callable[[list[_TreeNode]], _Sums] | None,
    loss_of_rows: Callable[..., Any] | None = None,
) -> Evaluator: ...
@overload
def shards_evaluator(
    net: Network,
    X: NDArray[np.float32],
    y: Any,
    sample_weight: NDArray[np.float32] | None,
    objective: Objective,
    first_row: int,
    all_rows: int,
    add_up: Callable[[list[_TreeNode]], _Sums] | None,
    loss_of_rows: Callable[..., Any] | None = None,
) -> Evaluator: ...

# read(runs, next runs) -> (X, y, weights), or None where they are not there yet; the second for float32
def source_evaluator(
    net: Network,
    read: Callable[..., Any],
    rows: int,
    weighted: bool,
    at_once: int,
    window: int,
    objective: Objective,
    first_row: int,
    all_rows: int,
    add_up: Callable[[list[_TreeNode]], _Sums] | None,
    loss_of_rows: Callable[..., Any] | None = None,
    times: tuple[int, NDArray[np.float64] | None] | None = None,
) -> Evaluator: ...
def source_evaluator_single(
    net: Network,
    read: Callable[..., Any],
    rows: int,
    weighted: bool,
    at_once: int,
    window: int,
    objective: Objective,
    first_row: int,
    all_rows: int,
    add_up: Callable[[list[_TreeNode]], _Sums] | None,
    loss_of_rows: Callable[..., Any] | None = None,
    times: tuple[int, NDArray[np.float64] | None] | None = None,
) -> Evaluator: ...
def sum_in_order(numbers: NDArray[np.float64]) -> float: ...
def shard_size(all_rows: int) -> int: ...
def root_of(nodes: Sequence[_TreeNode], count: int) -> _Sums: ...
def root_of_table(
    places: NDArray[np.int64], wide: NDArray[np.float64], single: NDArray[np.float32], count: int
) -> _Sums: ...
def sum_nodes(table: NDArray[np.float64], first_row: int, all_rows: int) -> list[_TreeNode]: ...

class Method(metaclass=pybind11_type):
    def __init__(self, name: str, settings: dict[str, Any]) -> None: ...
    @property
    def is_proximal(self) -> bool: ...

class Training(metaclass=pybind11_type):  # made by make_training
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def start(self) -> None: ...
    def run(self, records: NDArray[np.float64], seconds: float) -> None: ...
    @property
    def record(self) -> tuple[float, float, float, float, float]: ...
    @property
    def status(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def evaluations(self) -> int: ...
    def controls(self) -> NDArray[Any]: ...
    # the controls of the last trial, where it has failed because the objective is not finite there
    def nonfinite_trial(self) -> NDArray[Any] | None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    # (objective, NaN unless with_value; score)
    def assess(self, evaluator: Evaluator, with_value: bool) -> tuple[float, float]: ...

@overload
def make_training(
    net: Network,
    evaluator: Evaluator,
    u: NDArray[np.float64],
    method: Method,
    frozen: list[str],
    simplex: bool,
    singular_value_bounds: list[float],
    tolerance: float,
    relative_decrease: float,
    seconds: float,
    objective: Objective,
) -> Training: ...
@overload
def make_training(
    net: Network,
    evaluator: Evaluator,
    u: NDArray[np.float32],
    method: Method,
    frozen: list[str],
    simplex: bool,
    singular_value_bounds: list[float],
    tolerance: float,
    relative_decrease: float,
    seconds: float,
    objective: Objective,
) -> Training: ...
