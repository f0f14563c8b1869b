"""The paper's figures with the commands that draw them, and its claims, as ``docs/paper`` has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from ocdl.reproduce.figures import FIGURES

STORED = Path(__file__).parents[1] / "paper"


class PaperFigures(SphinxDirective):
    """A section for every figure: its picture, what it shows, and the command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, in the paper's order."""
        return [self._section(name) for name in FIGURES]

    def _section(self, name: str) -> nodes.section:
        figure = FIGURES[name]
        number = name.removeprefix("fig").removeprefix("table")
        kind = "Table" if name.startswith("table") else "Figure"
        section = nodes.section("", nodes.title("", f"{kind} {number}: {figure.title}"), ids=[name], names=[name])
        self.state.document.note_explicit_target(section, section)
        command = f"ocdl reproduce {name}"
        picture = nodes.image(uri=f"/paper/{name}.png", alt=f"{kind} {number} of the paper: {figure.title}")
        section += [nodes.literal_block(command, command, language="console"), nodes.figure("", picture)]
        section += nodes.paragraph("", figure.caption)
        return section


class PaperClaims(SphinxDirective):
    """The table of the paper's claims, with verdicts."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        stored = json.loads((STORED / "claims.json").read_text(encoding="utf-8"))
        header = ("no.", "the paper's claim", "verdict", "cases", "random starts", "what to make of it")
        rows = [
            (
                str(claim["number"]),
                claim["claim"],
                claim["verdict"],
                f"{claim['holds_in']} of {len(claim['cases'])}",
                str(claim["seeds"]),
                claim["remark"],
            )
            for claim in stored["claims"]
        ]
        group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (5, 24, 10, 9, 10, 42)), cols=len(header))
        group += nodes.thead("", _row(header))
        group += nodes.tbody("", *map(_row, rows))
        return [nodes.table("", group, classes=["colwidths-given"])]


def _row(cells: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the directives."""
    app.add_directive("paper-figures", PaperFigures)
    app.add_directive("paper-claims", PaperClaims)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
