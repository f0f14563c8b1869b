"""What `name` means in a docstring: a link to what is public under this name, else a parameter of the function.

A name with a dot or a capital letter is no parameter: where nothing public has it, the build fails.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxRole

import ocdl

IS_PARAMETER = re.compile(r"[a-z_]\w*|[A-Z](\d|_\w+)?")


class Name(SphinxRole):
    """A name in single backticks."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link that is resolved when all pages are known."""
        reference = addnodes.pending_xref(
            "",
            refdomain="py",
            reftype="obj",
            reftarget=self.text.removesuffix("()"),
            refexplicit=False,
            refwarn=True,
            refdoc=self.env.docname,
            may_be_parameter=bool(IS_PARAMETER.fullmatch(self.text)),
        )
        reference["py:module"] = self.env.ref_context.get("py:module")
        reference["py:class"] = self.env.ref_context.get("py:class")
        reference += nodes.literal("", self.text)
        return [reference], []


def elsewhere(app: Any, env: Any, node: addnodes.pending_xref, shown: nodes.Node) -> nodes.Node | None:
    """Return the name as it is where it may be a parameter, or a link to what `ocdl` has under it.

    A field of a record, ``Result.n_evals`` say, is described with its class.
    """
    if node.get("may_be_parameter"):
        return shown
    if "may_be_parameter" not in node or not hasattr(ocdl, node["reftarget"].partition(".")[0]):
        return None
    owner, _, field = node["reftarget"].rpartition(".")
    names = [node["reftarget"]]
    record = attrgetter(owner)(ocdl) if owner else None
    if is_dataclass(record) and field in {known.name for known in fields(record)}:
        names.append(owner)
    for name in names:
        result = env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", f"ocdl.{name}", node, shown)
        if result is not None:
            return result
    return None


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the role."""
    app.add_role("name", Name())
    app.connect("missing-reference", elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
