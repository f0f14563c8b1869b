"""A table in memory: columns with names, and where a cell stands for those who have to mend it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ocdl.base.names import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMES = 8  # columns that a message lists


class TableError(ValueError):
    """A table that cannot be used; the message is one sentence that says where and why."""


class TableWarning(UserWarning):
    """Something in a table that is left out or taken in a way that may surprise."""


@dataclass(frozen=True)
class Cell:
    """A cell as it stands in a file: the line that its row ends in, and its text."""

    line: int
    text: str


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table in memory.

    Attributes
    ----------
    frame : DataFrame
        Its columns have names of text, every name once.
    positions : list of int
        Where each column stands in the whole table, of which the frame may have a part.
    width : int
        The number of columns of the whole table.
    source : str
        What messages begin with: the name of the file and a colon; empty for a table that came as one.
    named : bool
        Whether the columns have names of their own, or were counted.
    unnamed : collection of str
        Columns of a named table without a name; they were counted.
    decimal : {".", ","}
        The decimal mark of numbers that are still text.
    first_row : int
        How messages count the first row.
    find : callable, optional
        Returns a `Cell` of the file, given a row of the frame and the position of a column.
    """

    frame: pd.DataFrame
    positions: list[int]
    width: int
    source: str = ""
    named: bool = True
    unnamed: Collection[str] = ()
    decimal: str = "."
    first_row: int = 0
    find: Callable[[int, int], Cell] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.frame)

    def position(self, name: str) -> int:
        """Return where a column stands in the whole table."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return dict(zip(self.frame.columns, self.positions, strict=True))

    def column(self, name: str) -> str:
        """Return how a message calls a column."""
        if not self.source:
            return f"column {name!r:.80}"
        number = counted_name(self.position(name))
        if not self.named and name != number:
            return name  # of an array
        return f"{number} ({name!r:.80})" if self.named and name not in self.unnamed else number

    def complaint(self, row: int, name: str, reason: str) -> TableError:
        """Return the error about a cell; ``{}`` in the reason is what stands there."""
        if self.find is None:
            text, line = self.frame[name].iloc[[row]].tolist()[0], row + self.first_row
        else:
            cell = self.find(row, self.position(name))
            text, line = cell.text, cell.line
        shown = reason.replace("{}", f"{text!r:.80}")
        return TableError(f"{self.source}row {line}, {self.column(name)}: {shown}")


def counted_name(position: int) -> str:
    """Return the name of a column that has none."""
    return f"column {position + 1}"


def counted_names(width: int) -> list[str]:
    """Return names for columns that have none."""
    return [counted_name(position) for position in range(width)]


def listed(names: Collection[Any]) -> str:
    """Return the first few names for a message."""
    shown = ", ".join(f"{name!s:.80}" for name in list(names)[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def resolved(entry: str, names: list[str], option: str, source: str = "") -> int:
    """Return the place of a column that a user names, or counts from 1 on."""
    if entry in names:
        return names.index(entry)
    if entry.isdecimal() and len(entry) < 10:
        if 1 <= int(entry) <= len(names):
            return int(entry) - 1
        raise TableError(f"{source}{option} {entry} is none of the columns, which are counted from 1 to {len(names)}")
    raise TableError(f"{source}no column is named {entry!r:.80}; there are {listed(names)}{did_you_mean(entry, names)}")
