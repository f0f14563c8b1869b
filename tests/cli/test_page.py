"""Pages: well formed, every text escaped, nothing fetched from elsewhere."""

import base64
import re
from html.parser import HTMLParser

import pytest

from ocdl import page

VOID = {"meta", "img", "br", "link", "input"}
NASTY = "<script>alert('&\"')</script>"


class Reader(HTMLParser):
    """Reads a page and refuses tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def whole_page(sections: int = 4) -> page.Html:
    parts = (
        page.paragraph(NASTY),
        page.table((NASTY, "n"), [(NASTY, "1"), ("b", page.Html("<b>2</b>"))], caption=NASTY, numeric=(1,)),
        page.gallery(page.figure(b"\x89PNG", "image/png", alt=NASTY, caption=NASTY, width=320)),
        page.details(NASTY, page.paragraph("inside"), NASTY),
    )
    return page.document(NASTY, NASTY, [page.section(f"{NASTY} {i}", *parts) for i in range(sections)])


def test_page_is_well_formed_and_has_its_parts() -> None:
    reader = Reader(whole_page())
    names = [tag for tag, _ in reader.tags]
    assert names[:3] == ["html", "head", "meta"]
    for once in ("title", "header", "h1", "nav", "main"):
        assert names.count(once) == 1
    for in_each_section in ("section", "figure", "figcaption", "table", "caption", "details", "summary"):
        assert names.count(in_each_section) == 4
    assert {"charset": "utf-8"} in reader.all("meta")
    assert any("width=device-width" in (meta.get("content") or "") for meta in reader.all("meta"))


def test_every_text_is_escaped() -> None:
    reader = Reader(whole_page(1))
    assert "script" not in [tag for tag, _ in reader.tags]
    places = 11  # title, h1, lead, h2, paragraph, caption, header, cell, figcaption, summary, part
    assert "".join(reader.text).count(NASTY) == places
    assert reader.all("img")[0]["alt"] == NASTY
    assert len(reader.all("b")) == 1  # Html is taken as it is


def test_the_page_loads_no_external_resources() -> None:
    html = whole_page()
    reader = Reader(html)
    assert "http:" not in html
    assert "https:" not in html
    assert "url(" not in html
    assert "@import" not in html
    for _, attributes in reader.tags:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert (attributes.get("href") or "#").startswith("#")
    assert {"script", "link", "iframe", "object", "base"}.isdisjoint(tag for tag, _ in reader.tags)
    assert any("default-src 'none'" in (meta.get("content") or "") for meta in reader.all("meta"))


@pytest.mark.parametrize("sections", [0, 3, 4])
def test_more_than_three_sections_get_a_table_of_contents(sections: int) -> None:
    reader = Reader(whole_page(sections))
    targets = [f"#{attributes['id']}" for attributes in reader.all("section")]
    assert [attributes["href"] for attributes in reader.all("a")] == (targets if sections > 3 else [])
    assert len(set(targets)) == sections


def test_picture_is_in_the_page() -> None:
    (image,) = Reader(page.figure(b"\x00\xff" * 50, "image/gif", alt="flow", caption="The flow.", width=300)).all("img")
    kind, _, data = (image["src"] or "").partition(",")
    assert kind == "data:image/gif;base64"
    assert base64.b64decode(data, validate=True) == b"\x00\xff" * 50
    assert image["width"] == "300"


def test_table_scrolls_by_itself_and_names_rows_and_columns() -> None:
    reader = Reader(page.table(("name", "size"), [("a", "1"), ("b", "22")], numeric=(1,)))
    assert reader.tags[0] == ("div", {"class": "scroll", "tabindex": "0"})
    assert [cell["scope"] for cell in reader.all("th")] == ["col", "col", "row", "row"]
    assert [cell.get("class") for cell in reader.all("td")] == ["number", "number"]
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", page.STYLE)


def test_a_phone_shows_the_cells_of_a_stacked_table_below_each_other_with_the_names_of_their_columns() -> None:
    header, rows = ("", "claim & more", "verdict"), [("1", "a", "b")]
    reader = Reader(page.table(header, rows, stacked=True))
    assert reader.all("table") == [{"class": "stacked"}]
    assert [cell.get("data-name") for cell in reader.all("td")] == ["claim & more", "verdict"]
    assert 'content: attr(data-name) ": "' in page.STYLE
    assert [cell.get("data-name") for cell in Reader(page.table(header, rows)).all("td")] == [None, None]


def test_edges_of_a_table_that_scrolls_are_shaded() -> None:
    rule = re.search(r"\.scroll \{[^}]*\}", page.STYLE)
    assert rule
    assert rule[0].count("var(--shade)") == 2
    assert rule[0].count("local") == 2  # what hides the shade at the ends moves with the table


def test_words_have_a_sign_and_a_colour() -> None:
    for tone, sign in page.SIGNS.items():
        assert page.mark("a < b", tone) == f'<span class="{tone}">{sign} a &lt; b</span>'
        assert f".{tone} {{ color: var(--" in page.STYLE


def test_a_picture_can_be_seen_in_its_full_size() -> None:
    reader = Reader(page.figure(b"x", "image/png", alt="a", caption="b"))
    names = [tag for tag, _ in reader.tags]
    assert names.index("label") < names.index("input") < names.index("img")
    assert reader.all("input") == [{"type": "checkbox", "aria-label": "show full size"}]
    assert ".zoom input:checked ~ .frame img { max-width: none; width: auto; }" in page.STYLE


def test_a_film_can_be_paused() -> None:
    reader = Reader(page.film(b"x", "image/png", frames=5, seconds=2.5, size=(40, 30), alt="a", caption="b"))
    assert "".join(reader.text).strip().startswith("pause")
    assert reader.all("input") == [{"type": "checkbox"}]
    assert reader.all("img")[0]["style"] == "animation-duration: 2.5s; animation-timing-function: steps(5)"
    assert reader.all("div")[0]["style"] == "width: 40px; aspect-ratio: 40 / 30"
    assert ".film:has(:checked) .reel img { animation-play-state: paused; }" in page.STYLE


def test_anchor_is_given_or_made_from_the_heading() -> None:
    assert page.section("Time steps: h!").anchor == "time-steps-h"
    assert page.section("Time steps", anchor="steps").anchor == "steps"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: page.table(("a", "b"), [("1",)]), r"a row has 1 cells, but the header has 2: \('1',\)"),
        (lambda: page.table(("a", "b"), [], numeric=(2,)), "numeric must have columns from 0 to 1, got 2"),
        (lambda: page.figure(b"", "text/html", alt="a", caption=""), "mime must be the type of a picture"),
        (lambda: page.figure(b"", "image/png", alt=" ", caption=""), "alt must say what the picture shows"),
        (lambda: page.mark("a", "loud"), "tone must be one of good, fair, bad, none, got 'loud'"),
        (
            lambda: page.film(b"", "image/png", frames=0, seconds=1, size=(1, 1), alt="a", caption=""),
            "a film has at least one frame",
        ),
        (lambda: page.section("!"), "an anchor must be text without spaces, got ''"),
        (lambda: page.section("a", anchor="a b"), "got 'a b'"),
        (lambda: page.document("t", "l", [page.section("a"), page.section("A")]), "two sections have the anchor 'a'"),
    ],
)
def test_misuse_is_named(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
