"""The paper's figures with commands, comparisons and verdicts, and its claims, as ``docs/paper`` has them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from ocdl.reproduce.figures import FIGURES

STORED = Path(__file__).parents[1] / "paper"
SHOWN_CLAIMS = {
    "fig2": (1, 8),
    "fig3": (8,),
    "fig4": (7,),
    "fig5": (9,),
    "fig6": (1, 2, 3, 4),
    "fig7": (1, 4),
    "fig8": (5, 6),
    "fig9": (10,),
    "fig10": (10,),
    "fig11": (10,),
    "fig12": (10,),
    "fig13": (10,),
    "fig14": (11,),
}
SAME_TEXT = {"fig11": "fig10", "fig12": "fig10"}


def read_claims() -> list[dict[str, Any]]:
    """Return the claims with their verdicts."""
    claims: list[dict[str, Any]] = json.loads((STORED / "claims.json").read_text(encoding="utf-8"))["claims"]
    return claims


class PaperFigures(SphinxDirective):
    """A section for every figure: the command, the picture, how it differs from the paper's, and verdicts."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, in the paper's order."""
        self.comparison = tomllib.loads((STORED / "comparison.toml").read_text(encoding="utf-8"))
        self.claims = {claim["number"]: claim for claim in read_claims()}
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
        text = self.comparison[SAME_TEXT.get(name, name)]["text"]
        self.state.nested_parse(StringList(text.splitlines(), str(STORED / "comparison.toml")), 0, section)
        if name in SHOWN_CLAIMS:
            section += nodes.bullet_list("", *map(self._verdict, SHOWN_CLAIMS[name]))
        return section

    def _verdict(self, number: int) -> nodes.list_item:
        claim = self.claims[number]
        count = f" in {claim['holds_in']} of {len(claim['cases'])} cases. "
        line = nodes.paragraph("", "", nodes.strong("", f"Claim {number} {claim['verdict']}"), nodes.Text(count))
        line += nodes.Text(claim["claim"])
        return nodes.list_item("", line)


class PaperClaims(SphinxDirective):
    """The table of the paper's claims, with verdicts."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
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
            for claim in read_claims()
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
