"""Names as people type them: which of the known ones is meant, and which one might have been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

NO_ALIASES: Mapping[str, str] = MappingProxyType({})
CLOSE = 0.7  # difflib's ratio from which on a name is suggested
LONGEST = 60  # characters; comparing takes their square, and nobody means a name by more


def meant(text: str, known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> str | None:
    """Return the known name that a text spells, without regard to case, "-", "_" and " "; None if there is none.

    An alias stands for the name that it is mapped to. A text that would spell two names spells neither.
    """
    names = list(known)
    if text in names:
        return names[names.index(text)]
    found = {name for spelling, name in _spellings(names, aliases) if spelling == _plain(text)}
    return found.pop() if len(found) == 1 else None


def did_you_mean(text: str, known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the end of a message that refuses a text, ``; did you mean 'kutta4'?``; empty where no name is close."""
    if len(text) > LONGEST:
        return ""
    spellings = dict(_spellings(list(known), aliases))
    close = get_close_matches(_plain(text), spellings, n=1, cutoff=CLOSE)
    return f"; did you mean {spellings[close[0]]!r}?" if close else ""


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: ``1 output``, ``2 outputs``; where the plural is no "s", it is given."""
    return f"{count} {one}" if count == 1 else f"{count} {several or one + 's'}"


def _spellings(names: list[str], aliases: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return plain spellings and what they stand for; of aliases only those of names that are known here."""
    return [(_plain(name), name) for name in names] + [
        (_plain(alias), name) for alias, name in aliases.items() if name in names
    ]


def _plain(text: str) -> str:
    return text.casefold().replace("-", "").replace("_", "").replace(" ", "")
