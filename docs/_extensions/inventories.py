"""Inventories of other projects' documentation, written from a list of the names that ours links to."""

from __future__ import annotations

import tomllib
import zlib
from pathlib import Path

HEAD = """\
# Sphinx inventory version 2
# Project: {name}
# Version:
# The remainder of this file is compressed using zlib.
"""


def write_inventories(listed: Path, folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for every project of the list; return what Sphinx calls the mapping."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for name, project in tomllib.loads(listed.read_text(encoding="utf-8")).items():
        lines = [
            f"{entry} {domain}:{kind} 1 {place} -"
            for domain in ("py", "std")
            for kind, places in project.get(domain, {}).items()
            for entry, place in places.items()
        ]
        inventory = folder / f"{name}.inv"
        content = "".join(f"{line}\n" for line in lines).encode()
        inventory.write_bytes(HEAD.format(name=name).encode() + zlib.compress(content))
        mapping[name] = (project["url"], str(inventory))
    return mapping
