"""Write the golden files: one of each kind that a release can write, which every later one must read.

    python tests/make_golden.py      # writes what is missing in tests/golden; what is there is never touched

A new kind of network, optimiser or estimator is a line in a table below. Beside each file stands what it must give.
"""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ocdl
from ocdl import (
    LBFGS,
    Adam,
    Armijo,
    Backtracking,
    Chain,
    GradientDescent,
    Network,
    NewtonCG,
    ODEClassifier,
    ODERegressor,
    Tableau,
)
from ocdl.cli import main as command_line

FOLDER = Path(__file__).parent / "golden"
PARTS = ocdl.Tikhonov(1e-3, parts=("K", "W")) + ocdl.L1(1e-4, parts=("b",)) + ocdl.Tikhonov(1e-4)
METHOD = Tableau([[0, 0], [0.75, 0]], [1 / 3, 2 / 3], [0.1, 0.75], name="mine")

MODELS = {
    "net": Network.preset("net", 2, 3),
    "resnet": Network.preset("resnet", 2, 3),
    "odenet": Network.preset("odenet", 2, 3),
    "odenet+simplex": Network.preset("odenet+simplex", 2, 3),
    "kutta4": Network(2, 3, tableau="kutta4", activation="sigmoid"),
    "kutta5": Network(2, 3, tableau="kutta5"),
    "dormand_prince": Network(3, 2, tableau="dormand_prince", activation="softplus", horizon=2.5),
    "own_tableau": Network(2, 3, tableau=METHOD, activation="sin"),
    "nameless_tableau": Network(2, 3, tableau=Tableau(METHOD.A, METHOD.b), activation="leaky_relu"),
    "stage_controls": Network(2, 3, tableau="kutta3", stage_controls=True, activation="relu"),
    "float32": Network(2, 3, tableau="midpoint", dtype="float32"),
    "gauss2": Network(2, 3, tableau="gauss2"),
    "antisymmetric": Network(2, 3, tableau="implicit_midpoint", field="antisymmetric"),
    "hamiltonian": Network(2, 3, tableau="sdirk2", field="hamiltonian"),
    "three_classes": Network(2, 3, n_outputs=3, augment=2, activation="identity"),
}


class OwnLoss:
    """The fourth power of the residual, which a checkpoint knows by its name."""

    name = "fourth power"

    def value_and_slope(self, outputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual = outputs - targets[:, None]
        return (residual**4).sum(axis=1) / 4, residual**3


CHECKPOINTS: dict[str, dict[str, Any]] = {
    "gradient_descent": {"optimiser": GradientDescent(0.5)},
    "backtracking": {"optimiser": Backtracking()},
    "armijo": {"optimiser": Armijo()},
    "adam": {"optimiser": Adam()},
    "adam_on_batches": {"optimiser": Adam(lr=0.01, batch_size=16)},
    "lbfgs": {"optimiser": LBFGS(memory=3)},
    "newton_cg": {"optimiser": NewtonCG()},
    "gauss_newton": {"optimiser": NewtonCG(curvature="gauss_newton")},
    "chain": {"optimiser": Chain((Adam(), 5), (LBFGS(), None))},
    "simplex": {"net": MODELS["odenet+simplex"], "freeze": ("W", "mu")},
    "single_precision": {"net": MODELS["float32"], "objective": ocdl.Objective("cross_entropy", "sum")},
    "validated": {
        "objective": ocdl.Objective(regulariser=ocdl.Tikhonov(1e-3) + ocdl.L1(1e-4) + ocdl.TimeSmoothness(1e-3)),
        "validation": True,
        "patience": 5,
    },
    "parts": {"objective": ocdl.Objective(regulariser=PARTS)},
    "squared_error": {"objective": ocdl.Objective("squared_error"), "targets": "numbers", "validation": True},
    "huber": {
        "objective": ocdl.Objective(ocdl.losses.Huber(delta=0.25), "sum"),
        "optimiser": LBFGS(),
        "targets": "numbers",
    },
    "quantile": {
        "objective": ocdl.Objective(ocdl.losses.Quantile(level=0.9)),
        "optimiser": Adam(),
        "targets": "numbers",
    },
    "poisson": {
        "net": MODELS["three_classes"],
        "objective": ocdl.Objective("poisson"),
        "optimiser": NewtonCG(),
        "targets": "counts",
    },
    "own_loss": {
        "objective": ocdl.Objective(OwnLoss()),
        "optimiser": Adam(batch_size=16),
        "targets": "numbers",
    },
}
STORED, RESUMED = 8, 12  # iterations in a checkpoint, and after it was resumed

ESTIMATORS = {
    "estimator": ODEClassifier(
        n_layers=3, max_iter=10, random_state=0, optimiser=Adam(lr=0.01), horizon=1.0, tol=1e-3, alpha=0.0
    ),
    "estimator_of_texts": ODEClassifier(
        "odenet+simplex",
        3,
        tableau=METHOD,
        optimiser=Chain((Adam(), 5), (LBFGS(), None)),
        max_iter=10,
        regulariser=ocdl.Tikhonov(1e-3),
        class_weight={"inside": 2.0, "outside": 1.0, "else": 0.5},
        loss="squared",
        horizon=1.0,
        tol=1e-3,
    ),
    "estimator_with_parts": ODEClassifier(n_layers=3, max_iter=10, random_state=0, regulariser=PARTS),
}
REGRESSORS = {
    "regressor": ODERegressor(max_iter=10, random_state=0),
    "regressor_of_counts": ODERegressor(
        "net", loss="poisson", optimiser="adam", learning_rate=0.02, batch_size=16, max_iter=10, alpha=0.5
    ),
    "regressor_of_quantiles": ODERegressor(n_layers=2, loss=ocdl.losses.Quantile(level=0.9), max_iter=10),
}

TABLE = """,id,length,colour,seen,price
0,a1,1.5,red,2020-01-05,cheap
1,a2,,blue,2020-02-11,cheap
2,b1,2.25,red,2021-03-01,dear
3,b2,0.5,,2021-07-30,dear
4,b3,3.75,green,,cheap
5,c1,1.25,blue,2022-12-24,dear
6,c2,0.75,green,2023-05-17,
7,c3,2.5,red,2023-08-08,dear
8,d1,3.0,blue,2024-02-29,cheap
"""


def numbers(*shape: int, start: int = 0) -> np.ndarray:
    """Return numbers between -1 and 1 that no library and no machine computes differently."""
    count = int(np.prod(shape))
    return ((37 * (start + np.arange(count)) % 101) / 64 - 0.75).reshape(shape)


def controls(net: Network) -> ocdl.Controls:
    parts = {
        part.name: numbers(*part.shape, start=i)
        for i, part in enumerate(part for part in net.parts if part.role == "field")
    }
    u = net.controls(**parts, W=numbers(net.n_outputs, net.dim, start=7), mu=numbers(net.n_outputs, start=9))
    if net.time_steps == "free":
        u.h[...] = [-0.25, 0.0, 1.25]
    return u


def data(features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X = numbers(48, features)
    return X, (X[:, 0] * X[:, -1] > 0).astype(int)


def training(name: str, **arguments: Any) -> ocdl.Result:
    """Run the training of a checkpoint, from its start or as the arguments say."""
    settings = {"net": MODELS["odenet"]} | CHECKPOINTS[name]
    net, (X, y) = settings.pop("net"), data()
    targets = settings.pop("targets", "labels")
    if targets != "labels":
        y = X[:, 0] * X[:, 1] if targets == "numbers" else np.floor(4 + 4 * numbers(len(X), net.n_outputs, start=5))
    if settings.pop("validation", False):
        settings["validation"] = (X[::3], y[::3])
    return ocdl.train(net, controls(net), X, y, random_state=0, eval_every=2, tol=0.0, **settings, **arguments)


def labels(name: str) -> np.ndarray:
    X, y = data()
    return y if name == "estimator" else np.where(X[:, 0] > 0.5, "else", np.where(y == 1, "inside", "outside"))


def files() -> dict[str, tuple[Any, Any]]:
    """Return, by names, how each file is written, and how what it must give is found."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, net in MODELS.items():
        found[f"model_{name}"] = write_model, (net,)
    for name in CHECKPOINTS:
        found[f"checkpoint_{name}"] = write_checkpoint, (name,)
    for name in ESTIMATORS:
        found[name] = write_estimator, (name,)
    for name in REGRESSORS:
        found[name] = write_regressor, (name,)
    found["command_line"] = write_command_line, ()
    found["table"] = write_table, ()
    return found


def write_model(path: Path, net: Network) -> dict[str, Any]:
    u, X = controls(net), data(net.n_features)[0]
    ocdl.save(path, net, u, classes=["a", "b"], accuracy=0.5, nothing=None)
    return {"inputs": X.tolist(), "outputs": net.predict(u, X).tolist()}


def write_checkpoint(path: Path, name: str) -> dict[str, Any]:
    training(name, max_iter=STORED, checkpoint=path)
    result = training(name, max_iter=RESUMED, resume=path)
    return {"controls": result.controls.to_vector().tolist(), "loss": result.history.loss.tolist()}


def write_estimator(path: Path, name: str) -> dict[str, Any]:
    X = data()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations are few
        model = ESTIMATORS[name].fit(X, labels(name))
    model.save(path)
    return {"inputs": X.tolist(), "outputs": model.predict_proba(X).tolist(), "classes": model.classes_.tolist()}


def measurements(name: str) -> np.ndarray:
    X = data()[0]
    products = X[:, 0] * X[:, 1]
    return np.floor(4 + 4 * products) if "counts" in name else np.column_stack([products, 10 * X[:, 0] + 3])


def write_regressor(path: Path, name: str) -> dict[str, Any]:
    X = data()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations are few
        model = REGRESSORS[name].fit(X, measurements(name))
    model.save(path)
    return {"inputs": X.tolist(), "outputs": model.predict(X).tolist()}


def write_table(path: Path) -> dict[str, Any]:
    """Text, dates, missing cells, an index without a name, a row without a target, and an id that is left out."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text(TABLE)
        options = ["--target", "price", "--drop", "id", "--test-size", "0", "--max-iter", "10"]
        assert command_line(["train", "--data", str(table), "--out", str(path), *options]) == 0
    model, frame = ocdl.load_model(path), pd.read_csv(io.StringIO(TABLE))
    return {"outputs": model.predict_proba(frame).tolist(), "classes": model.predict(frame).tolist()}


def write_command_line(path: Path) -> dict[str, Any]:
    raise NotImplementedError(f"{path} was written by version 1, which had a kind of file for its command line alone")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, (write, arguments) in files().items():
        path = FOLDER / f"{name}.ocdl"
        if not path.exists():
            expected = write(path, *arguments)
            path.with_suffix(".json").write_text(json.dumps(expected) + "\n")
            print(path)


if __name__ == "__main__":
    main()
