"""Tables that several tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ocdl.tables.encoding import Encoding, EncodingOptions, fit_encoding
from ocdl.tables.model import to_frame

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]
QUICK = ("--layers", "2", "--max-iter", "20", "--test-size", "0")


def patients(n: int = 120) -> pd.DataFrame:
    """A table as people have them: texts, dates, booleans, missing cells, a name that says nothing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "city": rng.choice(["Bern", "Genf", "Basel"], n),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D"),
            "member": rng.choice([True, False], n),
            "name": [f"person {i}" for i in range(n)],
            "income": rng.normal(5000, 900, n).round(2),
        }
    )
    frame["outcome"] = np.where((frame["age"] > 50) ^ (frame["city"] == "Bern"), "ill", "well")
    frame.loc[::11, "age"] = np.nan
    frame.loc[::13, "city"] = None
    frame.loc[::40, "outcome"] = None
    return frame


def learned(frame: pd.DataFrame, target: str | None = None, **options: Any) -> tuple[Encoding, np.ndarray]:
    names = [name for name in frame.columns if name != target]
    return fit_encoding(to_frame(frame), names, target, options=EncodingOptions(**options))


# ---- hostile files ----


def assert_error(result: tuple[int, str, str], message: str) -> None:
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("ocdl: error: ")
    assert err.count("\n") == 1
    assert message in err
