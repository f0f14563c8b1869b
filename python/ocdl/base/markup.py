"""HTML for notebooks: tables and small pictures in the colours of the surrounding page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["definition_table", "paragraph", "picture", "table", "text"]

WIDTH = 420  # of a picture, in pixels
NUMBER = re.compile(r"\s*[-+]?\d[\d.]*(e[-+]?\d+)?\s*")


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain texts with a header row.

    Examples
    --------
    >>> table(("name",), [("a < b",)])
    '<table><thead><tr><th scope="col">name</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    """
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _cell(content: str) -> str:
    """Return a cell. Numbers do not wrap: a browser could break the line after the e of 1e-05."""
    style = ' style="white-space: nowrap"' if NUMBER.fullmatch(content) else ""
    return f"<td{style}>{escape(content)}</td>"


def definition_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table with a name and a value in each row."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def picture(content: str, description: str, height: int) -> str:
    """Return an SVG picture with a description for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(description)}" style="max-width: 100%; height: auto; color: inherit">'
        f"{content}</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return text in a picture, anchored at (x, y) with its start, middle or end."""
    style = f'font-size="12" font-family="sans-serif" fill="currentColor" text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>'
