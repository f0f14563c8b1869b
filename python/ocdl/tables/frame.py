"""A table in memory: a data frame and, for messages, the positions of its cells in the file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ocdl.base.names import suggestion
from ocdl.base.validation import LabelArray

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED = 8  # columns in a message


class TableError(ValueError):
    """A table that cannot be used; the message is one sentence that says where and why.

    Examples
    --------
    >>> import ocdl
    >>> issubclass(ocdl.TableError, ValueError)
    True
    """


class TableWarning(UserWarning):
    """A warning about a part of a table that is left out, or read in an unexpected way."""


@dataclass(frozen=True)
class Cell:
    """A cell as it stands in a file: the line that its row ends in, and its text."""

    line: int
    text: str


@dataclass(frozen=True, eq=False)
class TableFrame:
    """A table in memory.

    Attributes
    ----------
    data : DataFrame
        The names of its columns are texts, every name once.
    positions : list of int
        The position of each column in the whole table, of which `data` may have some columns only.
    width : int
        The number of columns of the whole table.
    source : str
        How messages begin: the name of the file and a colon; empty for a table from memory.
    has_names : bool
        Whether the columns have names in the table, or numbers only.
    unnamed : collection of str
        Columns that have none, in a table with names.
    decimal : {".", ","}
        The decimal mark of numbers that are still text.
    first_row : int
        The number of the first row in messages.
    locate : callable, optional
        Returns the `Cell` of the file, given a row of the table and the position of a column.
    rows : array of int, optional
        The row of the table that each row of `data` is; None: it has all of them.
    """

    data: pd.DataFrame
    positions: list[int]
    width: int
    source: str = ""
    has_names: bool = True
    unnamed: Collection[str] = ()
    decimal: str = "."
    first_row: int = 0
    locate: Callable[[int, int], Cell] | None = field(default=None, repr=False)
    rows: LabelArray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.data.columns]

    def take(self, rows: LabelArray) -> TableFrame:
        """Return some rows; messages still name those of the whole table."""
        return replace(self, data=self.data.iloc[rows], rows=rows if self.rows is None else self.rows[rows])

    def position(self, name: str) -> int:
        """Return the position of a column in the whole table."""
        return self.positions[int(self.data.columns.get_loc(name))]  # type: ignore[arg-type]

    def describe(self, name: str) -> str:
        """Return the name of a column for messages."""
        if not self.source:
            return f"column {name!r:.80}"
        number = column_number(self.position(name))
        if not self.has_names and name != number:
            return name  # of an array
        return f"{number} ({name!r:.80})" if self.has_names and name not in self.unnamed else number

    def error(self, row: int, name: str, reason: str) -> TableError:
        """Return the error about a cell; ``{}`` in the reason stands for its text."""
        number = row if self.rows is None else int(self.rows[row])
        if self.locate is None:
            text, line = self.data[name].iloc[[row]].tolist()[0], number + self.first_row
        else:
            cell = self.locate(number, self.position(name))
            text, line = cell.text, cell.line
        reason = reason.replace("{}", f"{text!r:.80}")
        return TableError(f"{self.source}row {line}, {self.describe(name)}: {reason}")


def column_number(position: int) -> str:
    """Return the name of a column that has none."""
    return f"column {position + 1}"


def column_numbers(width: int) -> list[str]:
    """Return names for columns that have none."""
    return [column_number(position) for position in range(width)]


def join_names(names: Collection[Any]) -> str:
    """Return the first few names for a message."""
    first = ", ".join(f"{name!s:.80}" for name in list(names)[:MAX_LISTED])
    return first + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


def resolve_column(entry: str, names: list[str], option: str, source: str = "") -> int:
    """Return the position of a column that a user names, or counts from 1 on."""
    if entry in names:
        return names.index(entry)
    if entry.isdecimal() and len(entry) < 10:
        if 1 <= int(entry) <= len(names):
            return int(entry) - 1
        raise TableError(f"{source}{option} {entry} is not a column; columns are counted from 1 to {len(names)}")
    known = join_names(names)
    raise TableError(f"{source}no column is named {entry!r:.80}; there are {known}{suggestion(entry, names)}")
