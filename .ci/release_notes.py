"""Print what CHANGELOG.md says of a release, which its tag names: `python .ci/release_notes.py v1.2.3`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(tag: str, changelog: str, version: str) -> str:
    """Return the section of a release; what is not dated is not released yet."""
    if tag != f"v{version}":
        raise SystemExit(f"the tag {tag} is not that of version {version} in pyproject.toml, v{version}")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, body = section.partition("\n")
        if heading.startswith(f"[{version}]"):
            if not re.search(r"\d{4}-\d\d-\d\d$", heading):
                raise SystemExit(f"CHANGELOG.md gives no date for version {version}: {heading}")
            return body.strip()
    raise SystemExit(f"CHANGELOG.md says nothing of version {version}")


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(notes(sys.argv[1], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), project["version"]))
