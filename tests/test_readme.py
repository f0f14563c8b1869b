"""The README's examples run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_examples():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example_runs(number, capsys):
    exec(compile(BLOCKS[number], f"README example {number}", "exec"), {})
    assert capsys.readouterr().out.strip()
