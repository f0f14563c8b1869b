"""Resolve names as users type them, and suggest known names for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

NO_ALIASES: Mapping[str, str] = MappingProxyType({})
MIN_SIMILARITY = 0.7  # difflib's ratio from which a name is suggested
MAX_LENGTH = 60  # characters; the comparison takes quadratic time, and no name is longer


def resolve_name(text: str, known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> str | None:
    """Return the known name for a text, ignoring case, "-", "_" and " "; None if there is none.

    An alias stands for the name that it maps to. A text that matches two names matches neither.
    """
    names = list(known)
    if text in names:
        return names[names.index(text)]
    matches = {name for spelling, name in _spellings(names, aliases) if spelling == _normalise(text)}
    return matches.pop() if len(matches) == 1 else None


def suggestion(text: str, known: Iterable[str], aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the end of an error message, ``; did you mean 'kutta4'?``; empty if no known name is similar."""
    if len(text) > MAX_LENGTH:
        return ""
    spellings = dict(_spellings(list(known), aliases))
    close = get_close_matches(_normalise(text), spellings, n=1, cutoff=MIN_SIMILARITY)
    return f"; did you mean {spellings[close[0]]!r}?" if close else ""


def pluralise(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun, ``1 output``, ``2 outputs``; `several` is an irregular plural."""
    return f"{count} {one}" if count == 1 else f"{count} {several or one + 's'}"


def _spellings(names: list[str], aliases: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return normalised spellings with their names; aliases only of the given names."""
    return [(_normalise(name), name) for name in names] + [
        (_normalise(alias), name) for alias, name in aliases.items() if name in names
    ]


def _normalise(text: str) -> str:
    return text.casefold().replace("-", "").replace("_", "").replace(" ", "")
