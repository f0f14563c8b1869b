"""Fixtures for tables in files."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from example_tables import Write, learned, patients

import ocdl
from ocdl.tables.model import TableModel


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file; return its path."""

    def call(content: str | bytes, name: str = "table.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return call


@pytest.fixture(scope="module")
def model() -> TableModel:
    frame = patients().dropna(subset="outcome")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoding, values = learned(frame, "outcome")
        return TableModel(ocdl.ODEClassifier(n_layers=2, random_state=0).fit(values, frame["outcome"]), encoding)
