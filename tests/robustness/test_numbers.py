"""Strange values for every argument of every public function: a finite result of the right type, or a clear error."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from soak import Soak
from strange_values import UNWRITTEN, values

import ocdl
from ocdl import Controls, Network, ODEClassifier, ODERegressor, Tableau, datasets
from ocdl.model.losses import LOSSES
from ocdl.training.optimisers import SINGLE_OPTIMISERS

NET = Network(2, 3, tableau="improved_euler", time_steps="free", n_outputs=2)
SINGLE = Network(2, 3, tableau="improved_euler", activation="relu", dtype="float32")
FORCED = Network(2, 3, tableau="improved_euler", time_steps="free", n_outputs=2, field="mlp", width=3, n_inputs=1)
U, U32, UF = NET.init(random_state=0), SINGLE.init(random_state=0), FORCED.init(random_state=0)
X, Y, W = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [2.0, 1.0]]), np.array([0, 1, 1, 0]), np.ones(4)
MODEL = ODEClassifier(n_layers=2, max_iter=2, tol=1e9, random_state=0).fit(X, Y)
NUMBERS = ODERegressor(n_layers=2, max_iter=2, tol=1e9, random_state=0).fit(X, X[:, 0])
EXPECTED = (ValueError, TypeError, FloatingPointError, ZeroDivisionError)
LARGEST_RUN = 10**5  # counts above are refused, or would only take long


@dataclass(frozen=True)
class Argument:
    """An argument of a public function: a call that passes it on, its shape (none: a scalar), what an error names."""

    call: Callable[[Any], Any]
    shape: tuple[int, ...] | None = None
    named: str = ""
    is_count: bool = False


# What the methods of a network are given. One with other parameters is left out, and noticed below.
GIVEN: dict[str, Any] = {
    "u": U,
    "X": X,
    "y": Y,
    "objective": ocdl.Objective(),
    "sample_weight": W,
    "inputs": None,
    "dinputs": None,
    "input_grad": True,
    "du": U,
    "dX": X,
    "output_cotangents": np.ones((4, 2)),
    "state_cotangents": np.ones((4, 4, 2)),
    "layer": 1,
    "factor": 2,
    "n_layers": 4,
    "interpolation": "linear",
    "radius": 1.0,
    "times": [0.0, 1.0, 2.0, 3.0],
    "steps": 4,
    "tol": 1e-3,
    "random_state": 0,
}
COUNTS = ("factor", "n_layers", "steps")
SHAPES = {
    "X": (4, 2),
    "dX": (4, 2),
    "y": (4,),
    "sample_weight": (4,),
    "inputs": (4, 4, 1),
    "dinputs": (4, 4, 1),
    "output_cotangents": (4, 2),
    "times": (4,),
    "state_cotangents": (4, 4, 2),
}


def passed_on(method: str, parameters: list[str], strange: str, value: Any) -> Any:
    """Call a method with one strange argument; with strange data on a network of single precision."""
    net, given = NET, GIVEN
    if strange == "X":
        net, given = SINGLE, GIVEN | {"u": U32, "du": U32, "output_cotangents": np.ones((4, 1)), "times": [0.0, 1.0]}
    elif strange in ("inputs", "dinputs"):
        net, given = FORCED, GIVEN | {"u": UF, "du": UF, "inputs": np.ones((4, 4, 1)), "dinputs": np.ones((4, 4, 1))}
    return getattr(net, method)(**{name: value if name == strange else given[name] for name in parameters})


def arguments_of_networks() -> dict[str, Argument]:
    actual: dict[str, Argument] = {}
    for method, function in inspect.getmembers(Network, inspect.isfunction):
        parameters = list(inspect.signature(function).parameters)[1:]
        if not method.startswith("_") and set(parameters) <= GIVEN.keys():
            for name in parameters:
                call = partial(passed_on, method, parameters, name)
                actual[f"Network.{method} {name}"] = Argument(call, SHAPES.get(name), f"{name}|data", name in COUNTS)
    for part, _, _, shape in NET.parts:
        actual[f"Network.controls {part}"] = Argument(lambda v, p=part: NET.controls(**{p: v}), shape, part)
    simplex = Network.preset("odenet+simplex", 2, 3)
    return (
        actual
        | {
            "Network.controls h of a simplex": Argument(lambda v: simplex.controls(h=v), (3,), "h"),
            "Network.from_vector v": Argument(NET.from_vector, (NET.n_controls,), "v"),
            "Network.init random_state": Argument(NET.init, None, "random_state"),
            "Network.init scheme": Argument(lambda v: NET.init(0, v), None, "scheme"),
            "Network.preset architecture": Argument(lambda v: Network.preset(v, 2, 3), None, "architecture"),
            "Network.adapt tol": Argument(lambda v: NET.adapt(U, X, v), None, "tol"),
            "Network.adapt max_layers": Argument(lambda v: NET.adapt(U, X, 1e9, max_layers=v), None, "max_layers"),
            "Network n_features": Argument(lambda v: Network(v, 3), None, "n_features"),
            "Network n_layers": Argument(lambda v: Network(2, v), None, "n_layers"),
        }
        | {
            f"Network {name}": Argument(lambda v, n=name: Network(2, 3, **{n: v}), None, f"{name}|name must")
            for name in inspect.signature(Network).parameters
            if name not in ("n_features", "n_layers")
        }
    )


def arguments_of_methods() -> dict[str, Argument]:
    actual: dict[str, Argument] = {}
    first: dict[str, dict[str, Any]] = {"GradientDescent": {"step": 0.1}}
    for method in SINGLE_OPTIMISERS:
        for field in fields(method):
            actual[f"{method.__name__} {field.name}"] = Argument(
                lambda v, m=method, f=field.name: m(**(first.get(m.__name__, {}) | {f: v})), None, field.name
            )
    for penalty in ("Tikhonov", "L1", "TimeSmoothness", "EvenSteps", "Kinetic"):
        actual[f"{penalty} weight"] = Argument(getattr(ocdl, penalty), None, "weight")
    for penalty in ("Tikhonov", "L1"):
        actual[f"{penalty} parts"] = Argument(lambda v, p=penalty: getattr(ocdl, p)(1.0, v), None, "parts")
    actual["GroupL1 weight"] = Argument(lambda v: ocdl.GroupL1(v, ("K",), "dim"), None, "weight")
    actual["GroupL1 parts"] = Argument(lambda v: ocdl.GroupL1(1.0, v, "dim"), None, "parts")
    actual["GroupL1 axis"] = Argument(lambda v: ocdl.GroupL1(1.0, ("K",), v), None, "axis")
    for loss_type in LOSSES.values():
        for field in fields(loss_type):  # type: ignore[arg-type]
            actual[f"losses.{loss_type.__name__} {field.name}"] = Argument(loss_type, None, field.name)
    for name in ("loss", "reduction", "penalties"):
        actual[f"Objective {name}"] = Argument(lambda v, n=name: ocdl.Objective(**{n: v}), None, name)
    regression = ocdl.Objective("huber")
    return actual | {
        "Objective.output_grad outputs": Argument(lambda v: regression.output_grad(v, W), (4, 1), "outputs|y|X"),
        "Objective.output_grad y": Argument(lambda v: regression.output_grad(X[:, :1], v), (4, 1), "y"),
        "Objective.output_grad labels": Argument(lambda v: ocdl.Objective().output_grad(X, v), (4,), "y"),
        "Objective.output_grad sample_weight": Argument(
            lambda v: regression.output_grad(X[:, :1], W, v), (4,), "sample_weight|gradient"
        ),
        "Observations times": Argument(lambda v: ocdl.Observations(v, np.ones((2, 3))), (3,), "times"),
        "Observations values": Argument(lambda v: ocdl.Observations([0.0, 1.0, 2.0], v), (2, 3), "values|times"),
        "Chain stage": Argument(lambda v: ocdl.Chain(v), None, "Chain|stage"),
        "Chain iterations": Argument(lambda v: ocdl.Chain((ocdl.Adam(), v)), None, "iterations"),
        "Tableau A": Argument(lambda v: Tableau(v, [0.0, 1.0]), (2, 2), "A"),
        "Tableau b": Argument(lambda v: Tableau([[0.0, 0.0], [1.0, 0.0]], v), (2,), "b"),
        "Tableau c": Argument(lambda v: Tableau([[0.0, 0.0], [1.0, 0.0]], [0.5, 0.5], v), (2,), "c"),
        "Tableau name": Argument(lambda v: Tableau([[0.0]], [1.0], name=v), None, "name"),
        "Tableau.named name": Argument(Tableau.named, None, "name|method"),
        "Tableau.adjoint b": Argument(lambda v: Tableau([[0.0, 0.0], [1.0, 0.0]], v).adjoint(), (2,), "b|stage"),
    }


def arguments_of_controls() -> dict[str, Argument]:
    return {
        "Controls.__mul__ factor": Argument(lambda v: U * v, None, r"\*|factor|Controls"),
        "Controls.__truediv__ divisor": Argument(lambda v: U / v, None, "/|divisor|Controls"),
        "Controls.__add__ other": Argument(lambda v: U + v, None, r"\+|Controls"),
        "Controls.__sub__ other": Argument(lambda v: U - v, None, "-|Controls"),
        "Controls.dot other": Argument(U.dot, None, "dot"),
        "Controls.dot large": Argument(lambda v: large(v).dot(large(v)), (NET.n_controls,), "dot|v"),
        "Controls.norm": Argument(lambda v: large(v).norm(), (NET.n_controls,), "norm|v"),
        "Controls.__add__ large": Argument(lambda v: large(v) + large(v), (NET.n_controls,), r"\+|v"),
        "Controls.__mul__ large": Argument(lambda v: 1e200 * large(v), (NET.n_controls,), r"\*|v"),
        "project_simplex v": Argument(ocdl.project_simplex, (3,), "v"),
        "project_simplex total": Argument(lambda v: ocdl.project_simplex([1.0, 2.0], v), None, "total"),
    }


def large(v: Any) -> Controls:
    return NET.from_vector(v)


def arguments_of_training() -> dict[str, Argument]:
    def train(**arguments: Any) -> Any:
        data = {"net": NET, "u": U, "X": X, "y": Y, "tol": 1e9, "max_iter": 3} | arguments
        return ocdl.train(data.pop("net"), data.pop("u"), data.pop("X"), data.pop("y"), **data)

    shapes: dict[str, Any] = {"X": (4, 2), "y": (4,), "sample_weight": (4,)}
    skipped = ("checkpoint", "callback")  # any name is a name, and any function a function
    actual = {
        f"train {name}": Argument(
            lambda v, n=name: train(**{n: v}), shapes.get(name), f"{name}|data|validation", name in ("max_iter",)
        )
        for name in inspect.signature(ocdl.train).parameters
        if name not in skipped
    }

    def train_multilevel(**arguments: Any) -> Any:
        return ocdl.train_multilevel(NET, U, X, Y, **({"levels": 1, "max_iter": 2} | arguments))

    actual |= {
        f"train_multilevel {name}": Argument(
            lambda v, n=name: train_multilevel(**{n: v}), None, name, name == "max_iter"
        )
        for name in ("levels", "optimiser", "max_iter", "interpolation", "random_state")
    }
    return actual | {
        "train X of validation": Argument(lambda v: train(validation=(v, Y)), (4, 2), "validation"),
        "train y of validation": Argument(lambda v: train(validation=(X, v)), (4,), "validation"),
        "train weights of validation": Argument(
            lambda v: train(validation=ocdl.Validation(X, Y, sample_weight=v)), (4,), "validation"
        ),
        "Validation patience": Argument(lambda v: ocdl.Validation(X, Y, patience=v), None, "patience"),
        "InitialStates weight": Argument(ocdl.InitialStates, None, "weight"),
        "InitialStates continuity_weight": Argument(
            lambda v: ocdl.InitialStates(1, continuity_weight=v, next_window=[-1]), None, "continuity_weight"
        ),
        "Checkpoint every": Argument(lambda v: ocdl.Checkpoint("c", every=v), None, "every"),
        "set_num_threads k": Argument(set_threads, None, "the number of threads"),
    }


def set_threads(k: Any) -> None:
    before = ocdl.get_num_threads()
    ocdl.set_num_threads(k)
    ocdl.set_num_threads(before)


def arguments_of_data() -> dict[str, Argument]:
    actual: dict[str, Argument] = {}
    for name in ("make_donut1d", "make_donut2d", "make_spiral", "make_squares"):
        make = getattr(datasets, name)
        actual |= {
            f"datasets.{name} n_samples": Argument(make, None, "n_samples", is_count=True),
            f"datasets.{name} noise": Argument(lambda v, make=make: make(5, noise=v), None, "noise"),
            f"datasets.{name} random_state": Argument(
                lambda v, make=make: make(5, random_state=v), None, "random_state"
            ),
        }
    return actual


def arguments_of_the_estimator() -> dict[str, Argument]:
    """The messages about data are scikit-learn's own."""

    def fitted(kind: Any = ODEClassifier, **parameters: Any) -> Any:
        return kind(**({"n_layers": 2, "max_iter": 2, "tol": 1e9, "random_state": 0} | parameters))

    theirs = "array|X|y|[Ii]nput|dtype|label|sample|class|float|complex|sparse|number|data|scalar|weight"
    actual = {
        "ODEClassifier.fit X": Argument(lambda v: fitted().fit(v, Y), (4, 2), theirs),
        "ODEClassifier.fit y": Argument(lambda v: fitted().fit(X, v), (4,), theirs),
        "ODEClassifier.fit sample_weight": Argument(lambda v: fitted().fit(X, Y, v), (4,), theirs),
    }
    actual |= {
        "ODEClassifier.partial_fit X": Argument(lambda v: fitted().partial_fit(v, Y, [0, 1]), (4, 2), theirs),
        "ODEClassifier.partial_fit y": Argument(lambda v: fitted().partial_fit(X, v, [0, 1]), (4,), theirs),
        "ODERegressor.fit X": Argument(lambda v: fitted(ODERegressor).fit(v, X[:, 0]), (4, 2), theirs),
        "ODERegressor.fit y": Argument(lambda v: fitted(ODERegressor).fit(X, v), (4,), theirs),
        "ODERegressor.fit sample_weight": Argument(lambda v: fitted(ODERegressor).fit(X, W, v), (4,), theirs),
        "ODERegressor.partial_fit y": Argument(lambda v: fitted(ODERegressor).partial_fit(X, v), (4,), theirs),
        "ODERegressor.predict X": Argument(lambda v: NUMBERS.predict(v), (4, 2), theirs),
    }
    for kind, targets in ((ODEClassifier, Y), (ODERegressor, X[:, 0])):

        def watched(seen: Any, kind: Any = kind, targets: Any = targets) -> Any:
            return fitted(kind, early_stopping=True).fit(X, targets, X_val=seen[0], y_val=seen[1])

        actual |= {
            f"{kind.__name__}.fit X_val": Argument(lambda v, w=watched, t=targets: w((v, t)), (4, 2), theirs),
            f"{kind.__name__}.fit y_val": Argument(lambda v, w=watched: w((X, v)), (4,), theirs),
        }
    for method in ("predict", "predict_proba", "decision_function", "transform", "trajectory"):
        actual[f"ODEClassifier.{method} X"] = Argument(lambda v, m=method: getattr(MODEL, m)(v), (4, 2), theirs)
    for kind, targets in ((ODEClassifier, Y), (ODERegressor, X[:, 0])):
        for name in inspect.signature(kind).parameters:
            if name not in ("verbose", "warm_start"):
                named = f"{name}|{name.removesuffix('_fraction')}|name must|overflow|[Ss]eed|class|test_size"
                actual[f"{kind.__name__} {name}"] = Argument(
                    lambda v, n=name, k=kind, t=targets: fitted(k, **{n: v}).fit(X, t),
                    None,
                    named,
                    name in ("n_layers", "augment", "max_iter"),
                )
    return actual


def arguments_of_tables() -> dict[str, Argument]:
    def encoded(X: Any = X, y: Any = X[:, 0], **parameters: Any) -> Any:
        return ocdl.TablePreprocessor(random_state=0, **parameters).fit_transform(X, y)

    named = "X|y|[Cc]omplex|table|column|row|cell|[Ii]nput|dtype|array|number|class|target"
    return {
        "TablePreprocessor X": Argument(lambda v: encoded(v), (4, 2), named),
        "TablePreprocessor y": Argument(lambda v: encoded(y=v), (4,), named),
        "TablePreprocessor max_categories": Argument(lambda v: encoded(max_categories=v), None, "max_categories"),
        "TablePreprocessor random_state": Argument(
            lambda v: ocdl.TablePreprocessor(random_state=v).fit_transform(X), None, "random_state|[Ss]eed"
        ),
    }


ARGUMENTS = (
    arguments_of_networks()
    | arguments_of_methods()
    | arguments_of_controls()
    | arguments_of_training()
    | arguments_of_data()
    | arguments_of_the_estimator()
    | arguments_of_tables()
)


def arrays_in(result: Any) -> Iterable[np.ndarray]:
    """Yield every array and number that a result is made of."""
    if isinstance(result, Controls):
        yield result.to_vector()
        yield np.zeros(0) if result.X is None else result.X
    elif isinstance(result, (ODEClassifier, ODERegressor, Network)):
        yield np.zeros(0) if isinstance(result, Network) else result.controls_.to_vector()
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from arrays_in(part)
    elif isinstance(result, ocdl.MinimalPerturbation):
        yield result.direction  # no flip is an infinite distance
    elif isinstance(result, ocdl.Certificate):
        yield result.drift  # what was not measured is NaN
    elif is_dataclass(result) and not isinstance(result, type):
        for field in fields(result):
            if field.name not in ("lipschitz", "val_loss", "val_score"):  # NaN where there are none
                yield from arrays_in(getattr(result, field.name))
    elif isinstance(result, (np.ndarray, float)):
        yield np.asarray(result)


def attempt(argument: Argument, value: Any) -> None:
    """Pass a value on: the result is finite and of a type of ocdl, or an error names the argument."""
    if argument.is_count and isinstance(value, (int, np.integer)) and LARGEST_RUN < int(value) < 2**31:
        return
    try:
        with warnings.catch_warnings():
            for expected in (ConvergenceWarning, DataConversionWarning):
                warnings.simplefilter("ignore", expected)
            warnings.filterwarnings("ignore", "every unit is saturated")
            warnings.filterwarnings("ignore", ".* root mean square of .* (scale the inputs|leave it out)")
            warnings.filterwarnings("ignore", ".* left out")
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            result = argument.call(value)
    except EXPECTED as error:
        if not re.search(argument.named, str(error)):
            raise AssertionError(f"{type(error).__name__} does not say what is wrong: {error}") from error
        return
    for array in arrays_in(result):
        assert array.dtype.kind != "f" or array.dtype in (np.float64, np.float32), array.dtype
        assert array.dtype.kind in "fiubOUS"
        assert array.dtype.kind != "f" or np.isfinite(array).all(), "not finite"


def attempt_many(name: str, examples: int) -> None:
    argument = ARGUMENTS[name]
    quiet = settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None, deadline=None)

    @quiet
    @given(values(argument.shape))
    def run(value: Any) -> None:
        attempt(argument, value)

    run()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_strange_values_give_a_result_or_a_clear_error(name: str) -> None:
    attempt_many(name, 8)
    for value in UNWRITTEN:
        attempt(ARGUMENTS[name], value)


@pytest.mark.slow
def test_many_strange_values_give_a_result_or_a_clear_error(soak: Soak) -> None:
    examples = soak.times(200_000, least=len(ARGUMENTS)) // len(ARGUMENTS)
    for name in ARGUMENTS:
        attempt_many(name, examples)


WITHOUT_NUMBERS = {
    "Certificate",
    "Check",
    "Controls.copy",
    "Controls.parts",
    "Controls.to_vector",
    "Convergence",
    "Dynamics",  # see tests/dynamics/test_dynamics_arguments.py
    "History",
    "MinimalPerturbation",
    "ModelFileError",
    "MultilevelResult",
    "OptimalInputs",
    "ODEClassifier.onnx_converter",
    "ODEClassifier.onnx_shape_calculator",
    "ODEClassifier.prune",
    "ODEClassifier.save",
    "ODEClassifier.predict_log_proba",  # of impossible classes it is infinite
    "ODEClassifier.set_fit_request",
    "ODEClassifier.set_partial_fit_request",
    "ODEClassifier.set_score_request",
    "ODEClassifier.to_onnx",
    "Part",
    "Penalty",
    "PruningSummary",
    "Result",
    "RowSource",
    "SavedNetwork",
    "ScipyObjective",
    "Stability",
    "Status",
    "TableError",
    "TableModel",
    "Taylor",
    "TrainingState",
    "Trajectory",
    "build_info",
    "datasets.load_mnist100",
    "export_onnx",
    "get_num_threads",
    "load",
    "save",
    "tableaux",
}


def test_no_public_function_is_left_out() -> None:
    public = {name for name in ocdl.__all__ if callable(getattr(ocdl, name))} - {"Controls", "ODEClassifier", "Network"}
    for kind in (Network, Controls, Tableau, ODEClassifier, ocdl.Objective):
        own = [name for base in kind.__mro__ if base.__module__.startswith("ocdl") for name in vars(base)]
        public |= {f"{kind.__name__}.{name}" for name in own if callable(getattr(kind, name)) and name[0] != "_"}
    public |= {f"datasets.{name}" for name in datasets.__all__}
    covered = {name.split()[0] for name in ARGUMENTS} | WITHOUT_NUMBERS
    assert public - covered == set()
