"""The paper's equations with their numbers in the paper, each beside the functions that compute it.

::

    :::{equation} 16a
    :by: Network.forward

    y^{[j+1]} = y^{[j]} + ...
    :::

``{eq}`` would number by itself; {ref}`(16a) <eq-16a>` links to one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective


class Equation(SphinxDirective):
    """A formula, its number in the paper, and where it is computed."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"by": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Return the formula and, below it, links."""
        number = self.arguments[0]
        label = f"eq-{number}"
        box = nodes.container(classes=["equation"])
        box["names"].append(label)
        self.state.document.note_explicit_target(box)
        box += nodes.math_block("", "\n".join(self.content))
        line = nodes.paragraph("", "", nodes.strong("", f"({number})"), classes=["computed-by"])
        names = [name.strip() for name in self.options.get("by", "").split(",") if name.strip()]
        for position, name in enumerate(names):
            line += nodes.Text(", " if position else " computed by ")
            line += self._link(name)
        box += line
        return [box]

    def _link(self, name: str) -> nodes.Node:
        target = name if name.startswith("ocdl.") else f"ocdl.{name}"
        reference = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refwarn=True, refexplicit=True, refdoc=self.env.docname
        )
        reference += nodes.literal("", name)
        return reference


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("equation", Equation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
