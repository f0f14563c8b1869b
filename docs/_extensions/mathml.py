"""Formulas as MathML, made when the site is built: nothing is fetched, and screen readers can read them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# What docutils makes of \tilde a_{ij}: the index below the letter, where it belongs to a sum.
ACCENT_AND_INDEX = re.compile(
    r'<munderover>(<mi>[^<]*</mi>)(<mi>[^<]*</mi>|<mrow>.*?</mrow>)(<mo stretchy="false">[˙~]</mo>)</munderover>'
)


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(_flat(tex2mathml(node.astext(), as_block=False)))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, which scrolls by itself where the window is narrower."""
    formula = _flat(tex2mathml(node.astext(), as_block=True))
    translator.body.append(f'<div class="formula" tabindex="0" role="math">{formula}</div>\n')
    raise nodes.SkipNode


def _flat(mathml: str) -> str:
    """Return the markup without its indentation, which would be shown as space between lines of text."""
    flat = "".join(line.strip() for line in mathml.splitlines()).replace("&ApplyFunction;", "&#8289;")
    flat = ACCENT_AND_INDEX.sub(r"<msub><mover>\1\3</mover>\2</msub>", flat)
    # As an accent a dot or a tilde touches the letter in some fonts; above it, it does not.
    flat = flat.replace('<mo stretchy="false">˙</mo></mover>', "<mo>.</mo></mover>")
    return flat.replace('<mover accent="true">', "<mover>")
