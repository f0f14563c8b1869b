"""Write the golden files: one of each kind that ocdl writes, and beside each the results that it must give.

    python tests/support/make_golden.py

Until version 0.1.0 is released, run this when the format changes. From then on the files are frozen: every later
release has to read them, and a new version of the format adds files.
"""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from checkpoints import resume_copy

import ocdl
from ocdl import LBFGS, Adam, Chain, Network, ODEClassifier, ODERegressor, Tableau
from ocdl.cli import main as command_line

FOLDER = Path(__file__).parents[1] / "files" / "golden"
METHOD = Tableau([[0, 0], [0.75, 0]], [1 / 3, 2 / 3], [0.1, 0.75], name="mine")

NETWORK = Network(2, 3, n_outputs=3, tableau=METHOD, stage_controls=True, augment=1, activation="sin", horizon=2.5)
METADATA = {"classes": ["a", "b"], "accuracy": 0.5, "nothing": None}

TRAINED = Network.preset("odenet", 2, 3)
PENALTIES = (ocdl.Tikhonov(1e-3, parts=("K", "W")), ocdl.L1(1e-4, parts=("b",)), ocdl.TimeSmoothness(1e-3))
STORED, RESUMED = 8, 12  # iterations in the checkpoint, and after it was resumed

CLASSIFIER = ODEClassifier(
    architecture="odenet+simplex",
    n_layers=3,
    tableau=METHOD,
    optimiser=Chain((Adam(), 5), (LBFGS(), None)),
    max_iter=10,
    penalties=PENALTIES,
    class_weight={"inside": 2.0, "outside": 1.0, "else": 0.5},
    loss="squared",
    horizon=1.0,
    tol=1e-3,
    random_state=0,
)
REGRESSOR = ODERegressor(
    n_layers=2,
    loss=ocdl.losses.Quantile(level=0.9),
    optimiser="adam",
    learning_rate=0.02,
    max_iter=10,
    alpha=0.5,
    random_state=0,
)

RALSTON = Tableau([[0, 0], [2 / 3, 0]], [0.25, 0.75], name="mine")
DYNAMICS = ocdl.Dynamics(
    field="polynomial", degree=2, tableau=RALSTON, linear=[[-1.0]], n_models=2, observe=[0], max_iter=30, random_state=0
)

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
    """Return numbers between -1 and 1 that are the same on every machine and with every version of NumPy."""
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


def data() -> tuple[np.ndarray, np.ndarray]:
    X = numbers(48, 2)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def labels() -> np.ndarray:
    X, y = data()
    return np.where(X[:, 0] > 0.5, "else", np.where(y == 1, "inside", "outside"))


def measurements() -> np.ndarray:
    X, _ = data()
    return np.column_stack([X[:, 0] * X[:, 1], 10 * X[:, 0] + 3])


def training(**arguments: Any) -> ocdl.Result:
    """Run the training of the checkpoint, from its start or as the arguments say."""
    X, y = data()
    return ocdl.train(
        TRAINED,
        controls(TRAINED),
        X,
        y,
        objective=ocdl.Objective(penalties=PENALTIES),
        optimiser=Chain((Adam(batch_size=16), 5), (LBFGS(memory=3), None)),
        validation=ocdl.Validation(X[::3], y[::3], patience=5),
        random_state=0,
        eval_every=2,
        tol=0.0,
        **arguments,
    )


def write_network(path: Path) -> dict[str, Any]:
    u, X = controls(NETWORK), data()[0]
    ocdl.save(path, NETWORK, u, **METADATA)
    return {"inputs": X.tolist(), "outputs": NETWORK.predict(u, X).tolist()}


def write_checkpoint(path: Path) -> dict[str, Any]:
    training(max_iter=STORED, checkpoint=path)
    result = training(max_iter=RESUMED, checkpoint=resume_copy(path))
    return {"controls": result.controls.to_vector().tolist(), "loss": result.history.loss.tolist()}


def fit_and_save(estimator: Any, y: Any, path: Path) -> tuple[Any, Any]:
    """Return the fitted estimator and the rows that it has learned from."""
    X = data()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations are few
        model = estimator.fit(X, y)
    model.save(path)
    return model, X


def write_classifier(path: Path) -> dict[str, Any]:
    model, X = fit_and_save(CLASSIFIER, labels(), path)
    return {"inputs": X.tolist(), "outputs": model.predict_proba(X).tolist(), "classes": model.classes_.tolist()}


def write_regressor(path: Path) -> dict[str, Any]:
    model, X = fit_and_save(REGRESSOR, measurements(), path)
    return {"inputs": X.tolist(), "outputs": model.predict(X).tolist()}


def write_table(path: Path) -> dict[str, Any]:
    """Text, dates, missing cells, an index without a name, a row without a target, and an id that is left out."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text(TABLE)
        options = ["--target", "price", "--drop", "id", "--test-size", "0", "--max-iter", "10", "--quiet"]
        assert command_line(["train", "--data", str(table), "--out", str(path), *options]) == 0
    model, frame = ocdl.load(path), pd.read_csv(io.StringIO(TABLE))
    return {"outputs": model.predict_proba(frame).tolist(), "classes": model.predict(frame).tolist()}


def decay() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return y' = x - y with y(0) = 1 and x(t) = t, its times and inputs."""
    t = np.arange(24) / 8
    return (2 * np.exp(-t) + t - 1)[:, None], t, t[:, None]


def write_dynamics(path: Path) -> dict[str, Any]:
    """An ensemble of two, with inputs."""
    X, times, inputs = decay()
    model = DYNAMICS.fit(X, times, inputs=inputs)
    model.save(path)
    return {"outputs": model.simulate(X[0], times, inputs=inputs).tolist(), "equations": model.equations()}


WRITERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "network": write_network,
    "checkpoint": write_checkpoint,
    "classifier": write_classifier,
    "regressor": write_regressor,
    "table": write_table,
    "dynamics": write_dynamics,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, write in WRITERS.items():
        path = FOLDER / f"{name}.ocdl"
        path.with_suffix(".json").write_text(json.dumps(write(path)) + "\n")
        print(path)


if __name__ == "__main__":
    main()
