"""Self-contained HTML pages with text, tables and pictures, for phones, screens and paper.

The functions return `Html`. All other text is escaped, so that no content can break the page.

Examples
--------
>>> from ocdl import page
>>> result = page.table(("network", "accuracy"), [("net", "0.91"), ("resnet", "0.99")], numeric=(1,))
>>> html = page.document("Results", "Two networks.", [page.section("Accuracy", page.paragraph("n < 3"), result)])
>>> "n &lt; 3" in html
True
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape

__all__ = [
    "Html",
    "Section",
    "details",
    "document",
    "figure",
    "film",
    "gallery",
    "mark",
    "paragraph",
    "section",
    "table",
]

SIGNS = {"good": "✓", "fair": "≈", "bad": "✗", "none": "–"}
SECTIONS_WITHOUT_CONTENTS = 3  # a longer page begins with a table of contents
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # the browser fetches nothing
STYLE = """\
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5c636b; --paper: #fff; --line: #d5d9de; --tint: #f4f6f8;
  --accent: #0b5cad; --shade: #0005; --good: #0b6b3a; --fair: #8a5a00; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e9; --soft: #a2a9b1; --paper: #16181b; --line: #3a3f45; --tint: #202327; --accent: #7db8f2;
    --shade: #fff5; --good: #6fd29a; --fair: #e5b25b; --bad: #ff8f86; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { margin: 0 0 .5rem; font-size: clamp(1.6rem, 5vw, 2.3rem); line-height: 1.2; }
h2 { margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.3; }
p { margin: 0 0 1rem; max-width: 44rem; }
header p { color: var(--soft); font-size: 1.08rem; }
a { color: var(--accent); }
nav { margin: 0 0 1.5rem; padding: .75rem 1rem; background: var(--tint); border-radius: .5rem; }
nav ul { margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .35rem 1.5rem; list-style: none; }
section { margin: 0; padding: 1.75rem 0 .75rem; border-top: 1px solid var(--line); scroll-margin-top: .5rem; }
.scroll { margin: 0 0 1.25rem; overflow-x: auto;
  background: linear-gradient(to right, var(--paper) 40%, transparent) left / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 3rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 1.1rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 1.1rem 100% no-repeat scroll; }
.scroll:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; font-size: .95rem; }
caption { padding: 0 0 .5rem; text-align: left; color: var(--soft); }
th, td { padding: .4rem 1.1rem .4rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody th { font-weight: 600; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number, code { white-space: nowrap; }
td:not(.number) { min-width: 9rem; }
code { font-size: .9em; }
.good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); } .none { color: var(--soft); }
.good, .fair, .bad { font-weight: 600; white-space: nowrap; }
figure { margin: 0 0 1.5rem; }
figure img { display: block; max-width: 100%; height: auto; padding: .5rem; background: #fff;
  border: 1px solid var(--line); border-radius: .5rem; }
.zoom { display: block; position: relative; cursor: zoom-in; }
.zoom input { position: absolute; opacity: 0; }
.zoom .frame { display: block; }
.zoom .hint { display: inline-block; margin: .3rem 0 0; color: var(--accent); font-size: .85rem; }
.zoom .hint::after { content: "show full size"; text-decoration: underline; }
.zoom input:focus-visible ~ .hint { outline: 2px solid var(--accent); }
.zoom:has(:checked) { cursor: zoom-out; }
.zoom input:checked ~ .frame { overflow-x: auto; }
.zoom input:checked ~ .frame img { max-width: none; width: auto; }
.zoom input:checked ~ .hint::after { content: "fit to the window"; }
.gallery figure:has(:checked) { grid-column: 1 / -1; }
.film label { display: inline-block; margin: 0 0 .5rem; cursor: pointer; }
.reel { max-width: 100%; overflow: hidden; background: #fff; border: 1px solid var(--line); border-radius: .5rem; }
.reel img { width: 100%; max-width: none; padding: 0; border: 0; animation: reel infinite; }
.film:has(:checked) .reel img { animation-play-state: paused; }
@keyframes reel { to { transform: translateY(-100%); } }
@media (prefers-reduced-motion: reduce) { .reel img { animation-iteration-count: 1; } }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(max(9.5rem, 25% - 1rem), 1fr));
  gap: 0 1rem; }
figcaption { margin: .5rem 0 0; max-width: 44rem; color: var(--soft); font-size: .95rem; }
details { margin: 0 0 1.25rem; padding: .6rem 1rem; background: var(--tint); border-radius: .5rem; }
details[open] > summary { margin-bottom: .75rem; }
summary { cursor: pointer; font-weight: 600; }
@media (max-width: 40rem) {
  .stacked thead { display: none; }
  .stacked, .stacked tbody, .stacked tr, .stacked th, .stacked td { display: block; }
  .stacked tr { padding: .6rem 0; border-bottom: 1px solid var(--line); }
  .stacked th, .stacked td { padding: .1rem 0; border: 0; }
  .stacked td.number { text-align: left; }
  .stacked td:empty { display: none; }
  .stacked td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); } }
@media print {
  .zoom .hint, .film label { display: none; }
  :root { color-scheme: light; --ink: #000; --soft: #333; --paper: #fff; --line: #999; --tint: #fff; --accent: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll { overflow: visible; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; } }"""


class Html(str):
    """Text that is already HTML and is not escaped again."""

    __slots__ = ()


class Section(Html):
    """The HTML of a section, with its heading and anchor for the table of contents."""

    __slots__ = ("anchor", "heading")
    heading: str
    anchor: str

    def __new__(cls, html: str, heading: str, anchor: str) -> Section:
        """Return a section with the given HTML."""
        section = super().__new__(cls, html)
        section.heading, section.anchor = heading, anchor
        return section


def document(title: str, lead: str, sections: Sequence[Section]) -> Html:
    """Return the page: a heading, an introduction and the sections.

    Parameters
    ----------
    title : str
        The heading, and the name of the page in the browser.
    lead : str
        The introduction; text, or `Html`.
    sections : sequence of Section
        More than three get a table of contents.

    Returns
    -------
    Html
        The page, in UTF-8 when it is encoded by default.
    """
    anchors = [part.anchor for part in sections]
    for anchor in anchors:
        if anchors.count(anchor) > 1:
            raise ValueError(f"two sections have the anchor {anchor!r}; give one of them another by anchor=")
    contents = ""
    if len(sections) > SECTIONS_WITHOUT_CONTENTS:
        links = "\n".join(f'<li><a href="#{escape(part.anchor)}">{escape(part.heading)}</a></li>' for part in sections)
        contents = f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>\n'
    return Html(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n{paragraph(lead)}\n</header>\n{contents}"
        f"<main>\n{_join(sections)}\n</main>\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str, anchor: str | None = None) -> Section:
    """Return a section; its anchor, for links to it, comes from the heading unless it is given."""
    if anchor is None:
        anchor = re.sub(r"\W+", "-", heading.lower()).strip("-")
    if not re.fullmatch(r"\S+", anchor):
        raise ValueError(f"an anchor must be text without spaces, got {anchor!r} for the section {heading!r}")
    html = f'<section id="{escape(anchor)}">\n<h2>{escape(heading)}</h2>\n{_join(parts)}\n</section>'
    return Section(html, heading, anchor)


def paragraph(text: str) -> Html:
    """Return a paragraph."""
    return Html(f"<p>{_escape(text)}</p>")


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str | None = None,
    numeric: Sequence[int] = (),
    stacked: bool = False,
) -> Html:
    """Return a table. In a narrow window it scrolls sideways, with shaded edges.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    rows : iterable of sequences of str
        The cells; the first one of a row names it.
    caption : str, optional
        The text above the table.
    numeric : sequence of int, optional
        The columns that hold numbers and are flush right, counted from 0.
    stacked : bool
        Whether a phone shows the cells of a row below each other, each with the name of its column: for sentences.

    Returns
    -------
    Html
        The table.
    """
    wrong = [column for column in numeric if not 0 <= column < len(header)]
    if wrong:
        raise ValueError(f"numeric must have columns from 0 to {len(header) - 1}, got {wrong[0]}")
    style = [' class="number"' if column in numeric else "" for column in range(len(header))]
    names = [f' data-name="{escape(name)}"' if stacked and name and len(header) > 2 else "" for name in header]
    lines = []
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row has {len(row)} cells, but the header has {len(header)}: {row!r:.200}")
        first, *others = (_escape(cell) for cell in row)
        cells = "".join(f"<td{style[i]}{names[i]}>{cell}</td>" for i, cell in enumerate(others, 1))
        lines.append(f'<tr><th scope="row"{style[0]}>{first}</th>{cells}</tr>\n')
    columns = "".join(f'<th scope="col"{style[i]}>{_escape(name)}</th>' for i, name in enumerate(header))
    kind = ' class="stacked"' if stacked else ""
    described = "" if caption is None else f"<caption>{_escape(caption)}</caption>\n"
    return Html(
        f'<div class="scroll" tabindex="0">\n<table{kind}>\n{described}'
        f"<thead>\n<tr>{columns}</tr>\n</thead>\n"
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>"
    )


def mark(text: str, tone: str) -> Html:
    """Return a word with a sign and a colour: of the tone "good", "fair", "bad" or "none"."""
    if tone not in SIGNS:
        raise ValueError(f"tone must be one of {', '.join(SIGNS)}, got {tone!r}")
    return Html(f'<span class="{tone}">{SIGNS[tone]} {escape(text)}</span>')


def figure(image: bytes, mime: str, *, alt: str, caption: str, width: int | None = None) -> Html:
    """Return an embedded picture; a touch, a click or the space bar shows it in full size.

    Parameters
    ----------
    image : bytes
        The contents of the picture's file.
    mime : str
        The type of the contents, such as ``"image/png"``.
    alt : str
        A description for screen readers.
    caption : str
        The text below the picture; text, or `Html`.
    width : int, optional
        The width in CSS pixels, where the window has them; unless given, that of the picture.

    Returns
    -------
    Html
        The figure.
    """
    size = "" if width is None else f' width="{width:d}"'
    return Html(
        '<figure>\n<label class="zoom"><input type="checkbox" aria-label="show full size">\n'
        f'<span class="frame">{_image_tag(image, mime, alt, size)}</span>\n<span class="hint"></span></label>\n'
        f"<figcaption>{_escape(caption)}</figcaption>\n</figure>"
    )


def film(
    image: bytes, mime: str, *, frames: int, seconds: float, size: tuple[int, int], alt: str, caption: str
) -> Html:
    """Return a film that can be paused; with reduced motion it plays once.

    Parameters
    ----------
    image : bytes
        The contents of a picture's file that has all frames below each other.
    mime, alt, caption
        As for `figure`.
    frames : int
        The number of frames.
    seconds : float
        The duration of one loop.
    size : (int, int)
        The width and the height of a frame in CSS pixels, where the window has them.

    Returns
    -------
    Html
        The film.
    """
    width, height = size
    if frames < 1 or not seconds > 0:
        raise ValueError(f"a film has at least one frame and takes some time, got {frames} in {seconds} seconds")
    moves = f' style="animation-duration: {seconds:g}s; animation-timing-function: steps({frames})"'
    return Html(
        '<figure class="film">\n<label><input type="checkbox"> pause</label>\n'
        f'<div class="reel" style="width: {width:d}px; aspect-ratio: {width:d} / {height:d}">'
        f"{_image_tag(image, mime, alt, moves)}</div>\n"
        f"<figcaption>{_escape(caption)}</figcaption>\n</figure>"
    )


def _image_tag(image: bytes, mime: str, alt: str, attributes: str) -> str:
    if not re.fullmatch(r"image/[a-z0-9.+-]+", mime):
        raise ValueError(f"mime must be the type of a picture such as 'image/png', got {mime!r}")
    if not alt.strip():
        raise ValueError("alt must say what the picture shows, got an empty text")
    data = base64.b64encode(image).decode("ascii")
    return f'<img src="data:{mime};base64,{data}" alt="{escape(alt)}"{attributes}>'


def gallery(*figures: Html) -> Html:
    """Return figures side by side: two in a row on a phone, up to four where there is room."""
    return Html(f'<div class="gallery">\n{_join(figures)}\n</div>')


def details(summary: str, *parts: str) -> Html:
    """Return parts that are folded below a summary."""
    return Html(f"<details>\n<summary>{_escape(summary)}</summary>\n{_join(parts)}\n</details>")


def _escape(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)


def _join(parts: Iterable[str]) -> str:
    return "\n".join(_escape(part) for part in parts)
