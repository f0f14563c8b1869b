"""Fixtures of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import QUICK, SPECIES, Run
from sklearn.datasets import load_iris


@pytest.fixture
def iris(tmp_path: Path) -> Path:
    """A CSV file with a header, whose labels are text."""
    path = tmp_path / "iris.csv"
    X, y = load_iris(return_X_y=True)
    rows = [f"{','.join(map(str, row))},{SPECIES[label]}" for row, label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,species", *rows]) + "\n")
    return path


@pytest.fixture
def model(iris: Path, run: Run, tmp_path: Path) -> Path:
    """A model trained on `iris`."""
    path = tmp_path / "model.ocdl"
    assert run("train", "--data", iris, *QUICK, "--out", path, "--quiet") == (0, "", "")
    return path
