"""The examples of the README run, its numbers are what they print, and its links lead somewhere."""

import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_are_examples():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example_runs(number, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"README.md, example {number}", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_first_example_reaches_its_score(capsys):
    exec(compile(BLOCKS[0], "first README example", "exec"), {})
    message = float(re.search(r"print\(model.score.*# ([\d.]+)", BLOCKS[0]).group(1))
    assert abs(float(capsys.readouterr().out) - message) < 0.002  # a test sample is 0.004
    assert len(BLOCKS[0].strip().splitlines()) <= 10


def test_its_picture_is_there():
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / name).stat().st_size > 10_000


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []


def test_on_pypi_its_links_lead_to_the_files_of_the_release():
    package = metadata("ocdl")
    description = package.get_payload()
    assert package["Description-Content-Type"] == "text/markdown"
    assert [link for link in re.findall(r"\]\(([^)]+)\)", description) if not link.startswith("https://")] == []
    homes = dict(entry.split(", ") for entry in package.get_all("Project-URL"))
    pages, files = (
        f"{homes['Homepage']}/blob/v{package['Version']}/",
        f"{homes['Homepage'].replace('github.com', 'raw.githubusercontent.com')}/v{package['Version']}/",
    )
    assert set(re.findall(r"!\[[^]]*\]\((.*/)docs/", description)) == {files}
    assert description.replace(files, "").replace(pages, "") == README


def test_it_can_be_read_in_two_minutes():
    assert len(README.split()) < 700
