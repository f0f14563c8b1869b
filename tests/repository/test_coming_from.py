"""What the page for users of other libraries says of them is so: the same numbers, and the scores that it prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocdl import Network

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+\.\d+|\d+e-\d+")


def code_of(section: str) -> str:
    actual = re.search(rf"^## {section}$.*?```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert actual
    return actual.group(1)


def printed(code: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(code, "coming_from.md", "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out


def test_scores_beside_scikit_learn_are_those_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """On held-out rows, of trainings that have converged: a ConvergenceWarning is an error here."""
    output = re.search(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert output
    actual = printed(code_of("scikit-learn"), capsys)
    assert NUMBER.sub("", actual) == NUMBER.sub("", output.group(1))
    np.testing.assert_allclose(
        [float(number) for number in NUMBER.findall(actual)],
        [float(number) for number in NUMBER.findall(output.group(1))],
        atol=0.005,  # two of 400 predictions, which other versions of scikit-learn may move
    )


@pytest.mark.extras
@pytest.mark.parametrize("library", ["torchdiffeq", "diffrax"])
def test_one_step_per_layer_is_the_same_in_other_libraries(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    differences = [float(line.rpartition(":")[2]) for line in printed(code_of(library), capsys).splitlines()]
    assert len(differences) >= 3
    assert max(differences) < 1e-13


@pytest.mark.extras
def test_rk4_of_torchdiffeq_is_the_three_eighths_rule() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    odeint = pytest.importorskip("torchdiffeq", reason="torchdiffeq is not installed").odeint
    rng = np.random.default_rng(0)
    X, K, b = rng.standard_normal((50, 2)), rng.standard_normal((2, 2)), rng.standard_normal(2)
    times = torch.tensor([0.0, 1.0], dtype=torch.float64)
    weight, bias = torch.tensor(K), torch.tensor(b)
    theirs = odeint(lambda t, y: torch.tanh(y @ weight.T + bias), torch.tensor(X), times, method="rk4")[-1].numpy()

    def difference(tableau: str) -> float:
        net = Network(2, 1, tableau=tableau)
        return float(np.abs(net.final_state(net.controls(K=K[None], b=b[None]), X) - theirs).max())

    assert difference("rk38") < 1e-14
    assert difference("kutta4") > 1e-5
