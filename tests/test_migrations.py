"""Files of older versions become what the present one writes, a version at a time; hostile ones run nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import make_golden as golden
import numpy as np
import pytest
from fuzz_files import packed, unpacked

import ocdl
from ocdl import (
    L1,
    LBFGS,
    Adam,
    Backtracking,
    Chain,
    Network,
    NewtonCG,
    Objective,
    ODEClassifier,
    Tikhonov,
    TimeSmoothness,
)
from ocdl.storage import container
from ocdl.storage.container import FORMAT_VERSION, ModelFileError, read_container, write_container

NET = Network.preset("odenet+simplex", 2, 3)
X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
OPTIMISERS = [
    Backtracking(),
    Adam(batch_size=8),
    NewtonCG(curvature="gauss_newton"),
    Chain((Adam(lr=1e-3), 5), (LBFGS(memory=3), None)),
]
REGULARISERS = [None, Tikhonov(1e-3), L1(0.25) + TimeSmoothness(1e-4), Tikhonov(1e-20) + L1(3.0) + TimeSmoothness(0.1)]


def train(optimiser: Any = OPTIMISERS[0], regulariser: Any = None, **arguments: Any) -> ocdl.Result:
    settings: dict[str, Any] = {"max_iter": 12, "eval_every": 4, "tol": 0.0, "random_state": 1} | arguments
    objective = Objective("cross_entropy", "sum", regulariser)
    return ocdl.train(NET, NET.init(random_state=0), X, Y, objective=objective, optimiser=optimiser, **settings)


def printed_objective(regulariser: Any) -> str:
    """How version 1 printed it."""
    weights = regulariser and ", ".join(
        f"{name}={getattr(regulariser, name)!r}" for name in ("tikhonov", "l1", "time_smoothness")
    )
    text = None if regulariser is None else f"Regulariser({weights})"
    return f"Objective(loss='cross_entropy', reduction='sum', regulariser={text})"


def write_version(version: int, path: Path, kind: str, description: Any, arrays: Any) -> None:
    """Write a container as a release with this version of the format did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "FORMAT_VERSION", version)
        write_container(path, kind, description, arrays)


def to_version_1(path: Path, optimiser: Any, regulariser: Any, changes: dict[str, Any] | None = None) -> None:
    """Make a checkpoint what version 1 would have written, with changes of what it says was trained."""
    description, arrays, _ = read_container(path, "checkpoint")
    description["training"] |= {"objective": printed_objective(regulariser), "optimiser": repr(optimiser)}
    description["training"] |= changes or {}
    for old, new in (("accuracy", "score"), ("val_accuracy", "val_score")):
        arrays[f"evaluated.{old}"] = arrays.pop(f"evaluated.{new}")
    write_version(1, path, "checkpoint", description, arrays)


# ---- version 1 ----


@pytest.mark.parametrize(
    ("optimiser", "regulariser"),
    [(o, r) for o in OPTIMISERS for r in REGULARISERS if not (isinstance(o, NewtonCG) and r and r.weight("l1"))],
    ids=repr,
)
def test_checkpoints_of_version_1_resume_bit_for_bit(optimiser: Any, regulariser: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    whole = train(optimiser, regulariser, validation=(X, Y))
    train(optimiser, regulariser, max_iter=7, checkpoint=path, validation=(X, Y))
    to_version_1(path, optimiser, regulariser)
    assert json.loads(unpacked(path.read_bytes())[0]["__metadata__"]["format_version"]) == 1
    resumed = train(optimiser, regulariser, resume=path, validation=(X, Y))
    assert np.array_equal(resumed.controls.to_vector(), whole.controls.to_vector())
    for name in ("loss", "score", "val_loss", "val_score"):
        assert np.array_equal(getattr(resumed.history, name), getattr(whole.history, name))


def test_a_checkpoint_of_version_1_knows_what_it_trained(tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(max_iter=7, checkpoint=path)
    to_version_1(path, OPTIMISERS[0], None)
    for change, what in (
        ({"optimiser": Backtracking(L0=0.2)}, "another optimiser"),
        ({"optimiser": Adam()}, "another optimiser"),
        ({"regulariser": Tikhonov(1e-3)}, "another objective"),
    ):
        with pytest.raises(ValueError, match=f"belongs to a training with {what}") as caught:
            train(**change, resume=path)
        assert not isinstance(caught.value, ModelFileError)


def test_settings_that_version_1_did_not_have_take_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(max_iter=7, checkpoint=path)
    to_version_1(path, OPTIMISERS[0], None, {"optimiser": "Backtracking(L0=0.1)"})
    assert train(resume=path).n_iter == 12


@pytest.mark.parametrize("name", golden.CHECKPOINTS)
def test_golden_checkpoints_are_written_anew_in_the_present_version(name: str, tmp_path: Path) -> None:
    """What an old one becomes is what the present version writes, and resumes to the same bits."""
    old, new = golden.FOLDER / f"checkpoint_{name}.ocdl", tmp_path / "new"
    golden.training(name, max_iter=golden.STORED, resume=old, checkpoint=new)
    assert read_container(new, "checkpoint").version == FORMAT_VERSION
    first, second = (golden.training(name, max_iter=golden.RESUMED, resume=path) for path in (old, new))
    assert np.array_equal(first.controls.to_vector(), second.controls.to_vector())
    assert np.array_equal(first.history.score, second.history.score, equal_nan=True)


# ---- estimators of version 1 ----


def estimator_of_version_1(path: Path, regulariser: Any) -> ODEClassifier:
    model = ODEClassifier(n_layers=3, max_iter=200, tol=1e-2, random_state=0).fit(X, Y)
    model.save(path)
    description, arrays, _ = read_container(path, "model")
    stored = description["metadata"]["estimator"]
    del stored["kind"]
    stored["classes"] = stored.pop("targets")["classes"]
    stored["parameters"]["regulariser"] = regulariser
    for name in ("learning_rate", "batch_size", "alpha", "patience"):
        del stored["parameters"][name]
    write_version(1, path, "model", description, arrays)
    return model


@pytest.mark.parametrize("regulariser", REGULARISERS, ids=repr)
def test_estimators_of_version_1_keep_their_regulariser(regulariser: Any, tmp_path: Path) -> None:
    names = ("tikhonov", "l1", "time_smoothness")
    weights = regulariser and {name: getattr(regulariser, name) for name in names}
    model = estimator_of_version_1(tmp_path / "m", weights)
    loaded = ODEClassifier.load(tmp_path / "m")
    alpha = 0.0 if regulariser is None else 1.0  # there was no prior, and a regulariser replaces it
    as_it_was = {"regulariser": regulariser, "alpha": alpha, "optimiser": Adam(lr=0.01)}
    assert loaded.get_params() == model.get_params() | as_it_was
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    loaded.save(tmp_path / "again")
    assert read_container(tmp_path / "again", "model").version == FORMAT_VERSION
    assert ODEClassifier.load(tmp_path / "again").get_params() == loaded.get_params()


@pytest.mark.parametrize(
    "regulariser",
    [
        3,
        [],
        "Tikhonov(1)",
        {"tikhonov": 1.0},
        {"tikhonov": -1.0, "l1": 0.0, "time_smoothness": 0.0},
        {"tikhonov": "1", "l1": 0.0, "time_smoothness": 0.0},
        {"tikhonov": 1.0, "l1": 0.0, "time_smoothness": 0.0, "else": 1.0},
    ],
    ids=str,
)
def test_regularisers_that_version_1_did_not_write_are_refused(regulariser: Any, tmp_path: Path) -> None:
    estimator_of_version_1(tmp_path / "m", regulariser)
    with pytest.raises(ModelFileError, match=r"holds no estimator that this ocdl can load.*it is none of version 1"):
        ODEClassifier.load(tmp_path / "m")


# ---- the chain ----


def test_migrations_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of version n goes through those of n, n + 1, ..., and is what the present version would have written."""
    ran: list[int] = []

    def first(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        ran.append(1)
        description["length"] = description.pop("size")
        arrays["b"] = arrays.pop("a")

    def second(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        ran.append(2)
        description["length"] *= 100
        arrays["b"] = arrays["b"] * 2

    contents: dict[int, tuple[Any, Any]] = {
        1: ({"size": 3}, {"a": np.ones(2)}),
        2: ({"length": 3}, {"b": np.ones(2)}),
        3: ({"length": 300}, {"b": 2 * np.ones(2)}),
    }
    for version, (description, arrays) in contents.items():
        write_version(version, tmp_path / str(version), "model", description, arrays)
    monkeypatch.setattr(container, "FORMAT_VERSION", 3)
    for version in contents:
        ran.clear()
        found = read_container(tmp_path / str(version), "model", {1: first, 2: second})
        assert ran == list(range(version, 3))
        assert (found.description, found.version) == ({"length": 300}, version)
        assert {name: array.tolist() for name, array in found.arrays.items()} == {"b": [2.0, 2.0]}
    ran.clear()
    read_container(tmp_path / "1", "model", {2: lambda *_: ran.append(2)})  # version 1 to 2 changed nothing
    assert ran == [2]


@pytest.mark.parametrize(
    "error", [KeyError("x"), TypeError("x"), ValueError("x"), AttributeError("x"), RecursionError()]
)
def test_what_no_migration_understands_is_malformed(error: Exception, tmp_path: Path) -> None:
    def fail(description: dict[str, Any], arrays: dict[str, Any]) -> None:
        raise error

    write_version(1, tmp_path / "m", "model", {}, {"a": np.ones(2)})
    with pytest.raises(ModelFileError, match="is malformed: it is none of version 1"):
        read_container(tmp_path / "m", "model", {1: fail})


@pytest.mark.parametrize("newer", [FORMAT_VERSION + 1, 77])
def test_a_newer_file_names_both_versions(newer: int, tmp_path: Path) -> None:
    path = tmp_path / "f"
    message = (
        f"was written by a newer ocdl: its format has version {newer}, this one reads {FORMAT_VERSION}; update ocdl"
    )
    train(max_iter=2, checkpoint=path)
    write_version(newer, path, "checkpoint", *read_container(path, "checkpoint")[:2])
    with pytest.raises(ModelFileError, match=message):
        train(resume=path)
    ocdl.save(path, NET, NET.init(0))
    write_version(newer, path, "model", *read_container(path, "model")[:2])
    for load in (ocdl.load, ODEClassifier.load):
        with pytest.raises(ModelFileError, match=message):
            load(path)


@pytest.mark.parametrize("version", ["0", "-1", "1.0", "01", "", "2 ", "x", "1" * 10, 2, None])
def test_versions_that_are_none(version: Any, tmp_path: Path) -> None:
    path = tmp_path / "m"
    ocdl.save(path, NET, NET.init(0))
    header, data = unpacked(path.read_bytes())
    header["__metadata__"]["format_version"] = version
    path.write_bytes(packed(json.dumps(header, separators=(",", ":")), data))
    with pytest.raises(ModelFileError, match="is malformed: its format_version must be a whole number"):
        ocdl.load(path)


# ---- hostile checkpoints of version 1 ----

TRAP = "__import__('os').mkdir({trap!r})"
HOSTILE_TEXTS = [
    TRAP,
    f"Adam(lr={TRAP})",
    f"[{TRAP}]",
    f"(lambda: {TRAP})()",
    f"Adam(lr=0.05) if {TRAP} else 1",
    f"f'{{{TRAP}}}'",
    "Adam(lr=1e999999)",
    "Adam(lr=-1)",
    "Adam(lr='1')",
    "Adam(lr=b'1')",
    "Adam(lr=...)",
    "Adam(lr=1j)",
    "Adam(lr=None)",
    "Adam(lr=[0.05])",
    "Adam(**{'lr': 0.05})",
    "Adam(**3)",
    "Adam(lr=0.05).__class__",
    "Adam(0.05)",
    "Adam(pudding=1)",
    "Adam",
    "Pudding()",
    "Chain()",
    "Chain((Chain((Adam(), 1)), 2))",
    "Chain(3)",
    "0.05",
    "'Adam'",
    "",
    " ",
    "Adam(",
    "Adam(lr=0.05)\0",
    "Adam(lr=0.05); 1",
    "Adam(lr=" + "1" * 4000 + ")",
    "Adam(lr=" + "1" * 9000 + ")",
    "[" * 100_000,
    "(" * 9_000,
    "-" * 9_000 + "1",
    "not " * 2_000 + "1",
    "a" + ".a" * 4_500,
    "1" + "+1" * 4_500,
    "f(" * 80 + ")" * 80,
    "f(" * 4_000,
    "\ud800",
]


@pytest.mark.parametrize("place", ["optimiser", "objective"])
@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: ascii(text)[:40])
def test_hostile_texts_are_refused_and_run_nothing(place: str, text: str, tmp_path: Path) -> None:
    path, trap = tmp_path / "c", str(tmp_path / "trap")
    train(Adam(), max_iter=2, checkpoint=path)
    to_version_1(path, Adam(), None, {place: text.replace("{trap!r}", repr(trap))})
    with pytest.raises(ModelFileError, match="is malformed: it is none of version 1"):
        train(Adam(), resume=path)
    assert not os.path.exists(trap)


@pytest.mark.parametrize("place", ["optimiser", "objective"])
@pytest.mark.parametrize("value", [None, 3, 1.5, True, [], ["Adam()"], {}, {"Adam": {"lr": 0.05}}], ids=repr)
def test_what_is_no_text_is_refused(place: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(Adam(), max_iter=2, checkpoint=path)
    to_version_1(path, Adam(), None, {place: value})
    with pytest.raises(ModelFileError, match="describes nothing that was trained"):
        train(Adam(), resume=path)


@pytest.mark.parametrize(
    "text",
    [
        "Objective()",
        "Objective(loss='pudding', reduction='mean', regulariser=None)",
        "Objective(loss=3, reduction='mean', regulariser=None)",
        "Objective(loss='squared', reduction='median', regulariser=None)",
        "Objective(loss='squared', reduction='mean', regulariser=3)",
        "Objective(loss='squared', reduction='mean', regulariser=Regulariser(tikhonov=-1))",
        "Objective(loss='squared', reduction='mean', regulariser=Regulariser(tikhonov=1e999))",
        "Objective(loss='squared', reduction='mean', regulariser=Regulariser(pudding=1))",
        "Objective(loss='squared', reduction='mean', regulariser=Regulariser(Penalty(1)))",
        "Regulariser(tikhonov=1)",
    ],
)
def test_objectives_that_version_1_did_not_write_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(max_iter=2, checkpoint=path)
    to_version_1(path, OPTIMISERS[0], None, {"objective": text})
    with pytest.raises(ModelFileError, match="is malformed: it is none of version 1"):
        train(resume=path)


@pytest.mark.parametrize("change", ["no training", "no scores", "a list", "no objective"])
def test_checkpoints_of_version_1_that_lack_something(change: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(max_iter=2, checkpoint=path)
    description, arrays, _ = read_container(path, "checkpoint")
    description["training"] |= {"objective": printed_objective(None), "optimiser": repr(OPTIMISERS[0])}
    if change == "no training":
        del description["training"]
    elif change == "a list":
        description["training"] = [1]
    elif change == "no objective":
        del description["training"]["objective"]
    write_version(1, path, "checkpoint", description, arrays)  # its scores are named as those of version 2
    with pytest.raises(ModelFileError, match="is malformed: it is none of version 1"):
        train(resume=path)
