"""Tables read from files: comma-separated text, plain or packed by gzip, Parquet, and NumPy's archives."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ocdl.base.memory import in_units
from ocdl.tables import archives
from ocdl.tables.dialect import MISSING, MISSING_LABELS, Dialect, detect
from ocdl.tables.sheet import Sheet, TableError
from ocdl.tables.source import LARGE, CheckedLines, Source, cell_of, open_source

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
TOKENISING = re.compile(r"(?:Error tokenizing data\. )?C error: ")
OUT_OF_MEMORY = "out of memory"  # pandas, of what is no MemoryError there
QUOTE_FROM = re.compile(r"EOF inside string starting at row ([0-9]+)")
MADE_OF_ONE_KIND = ("string", "boolean", "empty")  # columns of Python's objects that are


@dataclass(frozen=True)
class Choice:
    """Which columns to read, by their positions: those that are labels, or texts, are kept as they are written."""

    columns: list[int] | None = None
    labels: Collection[int] = ()
    texts: Collection[int] = ()


@dataclass(frozen=True)
class Request:
    """What to read of a table.

    Attributes
    ----------
    choose : callable
        Returns the `Choice`, given the names of the columns, whether they are names of their own, and how messages
        begin.
    known : collection of str
        Names that tell a header.
    label : int, optional
        The column of the labels, which tells one too; negative: counted from the end.
    labelled : bool
        Whether labels that stand beside a table, in an array of their own, are part of it.
    progress : bool
        Whether to show how far a large file has been read.
    """

    choose: Callable[[list[str], bool, str], Choice] = field(default=lambda *_: Choice())
    known: Collection[str] = ()
    label: int | None = None
    progress: bool = False
    labelled: bool = True


EVERYTHING = Request()


def read_sheet(path: str, request: Request = EVERYTHING) -> Sheet:
    """Return the table in a file; ``-`` is stdin, which has comma-separated text.

    Numbers are what Python reads, to the last bit. Those of a large file are what pandas reads by default, more than
    twice as fast: 16 digits of each, zeros after the decimal point included.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending == ".npz":
        return _chosen(archives.read_npz(path, labelled=request.labelled), request)
    if ending in PARQUET:
        return _chosen(_read_parquet(path), request)
    with open_source(path) as source:
        return _read_text(source, request)


def _chosen(sheet: Sheet, request: Request) -> Sheet:
    """Return the part of a table that was asked for."""
    choice = request.choose([str(name) for name in sheet.frame.columns], sheet.named, sheet.source)
    if choice.columns is None:
        return sheet
    columns = [*dict.fromkeys(choice.columns)]
    return replace(sheet, frame=sheet.frame.iloc[:, columns], positions=columns)


def not_parquet(path: str, error: Exception) -> TableError:
    """Return what to say of a file that failed as Parquet; what it says of itself to pandas can fail in any way.

    Where memory is short, that goes on as it is, unless the file asks for memory as none has it.
    """
    from pyarrow import ArrowException

    if isinstance(error, MemoryError) and not isinstance(error, ArrowException):
        raise error
    reason = " ".join(str(error).split())
    return TableError(f"{path}: it is no Parquet file that can be read: {reason:.200}")


def _read_parquet(path: str) -> Sheet:
    import pandas as pd

    with open(path, "rb"):  # whatever is wrong with the file itself is said before anything about its contents
        pass
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise TableError(f"{path}: a Parquet file needs pyarrow: pip install 'ocdl[parquet]'") from error
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except Exception as error:
        raise not_parquet(path, error) from error
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise TableError(f"{path}: it has two columns of the same name")
    frame.columns = pd.Index(names)
    return Sheet(frame, list(range(len(names))), len(names), f"{path}: ", first_row=1)


def _read_text(source: Source, request: Request) -> Sheet:
    dialect = detect(source, request.known, request.label)
    names = dialect.column_names()
    choice = request.choose(names, dialect.names is not None, f"{source.name}: ")
    columns = list(range(len(names))) if choice.columns is None else sorted({*choice.columns})
    kept: dict[str, Any] = {names[j]: "category" for j in choice.labels} | {names[j]: str for j in choice.texts}
    frame = _frame(source, dialect, columns, kept, request.progress)
    mixed = {name: str for name in frame.columns if _is_mixed(frame[name])}
    if mixed:  # its blocks were read as different kinds: once more, as it is written
        again = _frame(source, dialect, [names.index(name) for name in mixed], mixed, request.progress)
        frame = frame.assign(**{name: again[name] for name in mixed})
    layout = dialect.layout
    return Sheet(
        frame,
        columns,
        layout.width,
        f"{source.name}: ",
        named=dialect.names is not None,
        unnamed=[name for name, given in zip(names, dialect.names or names, strict=True) if not given],
        decimal=dialect.decimal,
        first_row=layout.lines_before + 1,
        find=None if source.path is None else partial(cell_of, source.path, layout),
    )


def _frame(
    source: Source, dialect: Dialect, columns: list[int], kept: Mapping[str, Any], progress: bool
) -> pd.DataFrame:
    import pandas as pd

    names = dialect.column_names()
    lines = CheckedLines(source, dialect.layout, progress)
    readable: Any = lines  # pandas asks for what can be read, the type checker for more
    missing = {name: MISSING_LABELS if kept.get(name) == "category" else MISSING for name in names}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                readable,
                sep=dialect.layout.separator,
                decimal=dialect.decimal,
                header=None,
                names=names,
                index_col=False,
                usecols=None if len(columns) == len(names) else columns,
                dtype=dict.fromkeys(kept, str),  # pandas 3.1 would make numbers of categories: 01 and 1. are two labels
                keep_default_na=False,
                na_values=missing,
                skipinitialspace=True,
                **_precision(source.size),
            )
    except pd.errors.EmptyDataError as error:
        raise source.error("it has a header, but no samples") from error
    except pd.errors.ParserWarning as error:
        raise source.error(f"a line has more cells than its {len(names)} columns") from error
    except pd.errors.ParserError as error:
        if OUT_OF_MEMORY in str(error):
            raise MemoryError(f"reading {source.name} takes several times its {in_units(source.size)}") from error
        raise source.error(_reason(str(error), dialect.layout.lines_before)) from error
    finally:
        lines.close()
    labels = {name: frame[name].astype("category") for name, kind in kept.items() if kind == "category"}
    frame = frame.assign(**labels) if labels else frame
    if not len(frame):
        raise source.error("it has a header, but no samples" if dialect.names else "it is empty")
    return frame


def _precision(size: int) -> dict[str, Any]:
    """Return how pandas is told to read numbers to the last bit; from 3.1 on it does so without being told."""
    import pandas as pd

    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if version < (3, 1) and size <= LARGE else {}


def _reason(message: str, lines_before: int) -> str:
    """Return what pandas says about a file as we would."""
    unclosed = QUOTE_FROM.search(message)
    if unclosed:
        return f"row {lines_before + int(unclosed[1]) + 1} has a quotation mark that is never closed"
    return f"it cannot be read: {TOKENISING.sub('', message).strip():.200}"


def _is_mixed(column: pd.Series[Any]) -> bool:
    from pandas.api.types import infer_dtype

    return column.dtype == object and infer_dtype(column, skipna=True) not in MADE_OF_ONE_KIND
