"""HTML as notebooks show it: tables and small pictures, in the colours of the page that they stand on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["bars", "curve", "facts", "paragraph", "picture", "table", "text"]

WIDTH, HEIGHT, EDGE = 420, 120, 18  # pixels of a picture, and of what stays free around what is drawn
NUMBER = re.compile(r"\s*[-+]?\d[\d.]*(e[-+]?\d+)?\s*")
LEAST_DECADES = 1e-16  # below this share of the largest value a logarithmic axis shows nothing


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain texts, with the names of its columns.

    Examples
    --------
    >>> table(("name",), [("a < b",)])
    '<table><thead><tr><th scope="col">name</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    """
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _cell(content: str) -> str:
    """Return a cell; a number stays on its line, which could else end behind the e of 1e-05."""
    style = ' style="white-space: nowrap"' if NUMBER.fullmatch(content) else ""
    return f"<td{style}>{escape(content)}</td>"


def facts(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table with a name and a value in each row."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def curve(values: ArrayLike, what: str) -> str:
    """Return the picture of numbers over their indices, on a logarithmic axis where all are positive."""
    heights = np.asarray(values, dtype=np.float64)
    shown = heights[np.isfinite(heights)]
    if len(shown) < 2:
        return ""
    if shown.min() > 0:
        shown = np.log10(np.maximum(shown, shown.max() * LEAST_DECADES))
    places = np.unique(np.linspace(0, len(shown) - 1, WIDTH).astype(int))
    x = _scaled(places.astype(np.float64), EDGE, WIDTH - EDGE)
    y = _scaled(-shown[places], EDGE, HEIGHT - EDGE)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    described = f"{what}: {heights[0]:.3g} at first, {heights[-1]:.3g} at last"
    line = f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="2"/>'
    return picture(line + text(EDGE, HEIGHT - 3, described), described)


def bars(values: ArrayLike, what: str) -> str:
    """Return the picture of numbers as bars up and down."""
    heights = np.asarray(values, dtype=np.float64)
    if len(heights) == 0 or not np.isfinite(heights).all():
        return ""
    low, high = min(0.0, float(heights.min())), max(0.0, float(heights.max()))
    if low == high:
        high = 1.0
    pixels = (HEIGHT - 2 * EDGE) / (high - low)
    zero = EDGE + high * pixels
    room = (WIDTH - 2 * EDGE) / len(heights)
    drawn = [f'<line x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="currentColor"/>']
    for j, height in enumerate(heights):
        top, size = (zero - height * pixels, height * pixels) if height > 0 else (zero, -height * pixels)
        place = f'x="{EDGE + (j + 0.12) * room:.1f}" y="{top:.1f}" width="{0.76 * room:.1f}" height="{size:.1f}"'
        drawn.append(f'<rect {place} fill="currentColor" fill-opacity="0.55"/>')
    described = f"{what}: {len(heights)} from {heights.min():.3g} to {heights.max():.3g}, sum {math.fsum(heights):.3g}"
    return picture("".join(drawn) + text(EDGE, HEIGHT - 3, described), described)


def picture(drawn: str, described: str, height: int = HEIGHT) -> str:
    """Return what was drawn as a picture, with words for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(described)}" style="max-width: 100%; height: auto; color: inherit">'
        f"{drawn}</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return words in a picture, which start, end or have their middle at the place."""
    style = f'font-size="12" font-family="sans-serif" fill="currentColor" text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>'


def _scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the values moved and stretched to the range from low to high."""
    least, span = values.min(), np.ptp(values)
    return low + (high - low) * ((values - least) / span if span > 0 else np.full(len(values), 0.5))
