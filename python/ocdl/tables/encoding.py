"""The encoding of the columns of a table as numbers by scikit-learn's encoders, fitted once and stored with a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.tables.categories import TargetMeans, looks_like_codes
from ocdl.tables.columns import MAX_VALUES, Feature, factorize_texts, infer_feature, to_cycles, to_numbers
from ocdl.tables.dialect import MISSING
from ocdl.tables.frame import TableError, TableFrame, TableWarning, column_numbers, join_names

MAX_UNSEEN = 3  # texts in a warning
MIN_MISSING, MIN_MISSING_FRACTION = 10, 0.01  # cells of a column from which on it has an indicator
TARGET_TYPES = ("binary", "multiclass", "continuous")
MIN_ROWS_OF_INDEX = 10  # from which on a first column without a name that counts the rows is an index


@dataclass(frozen=True)
class Target:
    """The column that is predicted; without a name in a table without names."""

    name: str | None
    position: int


@dataclass(frozen=True)
class EncodingOptions:
    """How columns are encoded; `TablePreprocessor` describes each."""

    categorical: tuple[str, ...] = ()
    max_categories: int = MAX_VALUES
    scaling: bool = True
    keep_index: bool = False  # whether a column that looks like an index is used
    random_state: Any = None


@dataclass(frozen=True, eq=False)
class Encoding:
    """The encoding of a row: numbers and target means, imputed and standardised; indicators; zeros and ones.

    Attributes
    ----------
    features : tuple of Feature
    width : int
        The number of columns of the table that it was fitted to, including the target and those left out.
    has_names : bool
        Whether its columns have names.
    target : Target or None
    imputer : SimpleImputer or None
        Of the numbers; None: a missing number is an error.
    scaler : StandardScaler or None
        Of the numbers; None: they are taken as they are.
    means : dict of TargetMeans
        Of the texts that are not one-hot encoded, by their names.
    suggested : tuple of str
        Columns of numbers that look like codes. They are not stored.
    """

    features: tuple[Feature, ...]
    width: int
    has_names: bool
    target: Target | None = None
    imputer: Any = None
    scaler: Any = None
    means: Mapping[str, TargetMeans] = field(default_factory=dict)
    suggested: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[Feature]:
        """The features that are not one-hot encoded."""
        return [feature for feature in self.features if not feature.is_one_hot]

    @property
    def texts(self) -> list[Feature]:
        """The features that are one-hot encoded."""
        return [feature for feature in self.features if feature.is_one_hot]

    @property
    def number_slices(self) -> dict[str, slice]:
        """The slice of the numbers that encodes each feature."""
        ends = list(accumulate((feature.n_numbers for feature in self.numbers), initial=0))
        return {feature.name: slice(*pair) for feature, pair in zip(self.numbers, pairwise(ends), strict=True)}

    @property
    def n_inputs(self) -> int:
        """The number of entries of an encoded row."""
        return sum(feature.n_numbers + feature.has_indicator for feature in self.features)

    @property
    def input_names(self) -> list[str]:
        """The names of these entries."""
        numbers = [name for feature in self.numbers for name in feature.number_names]
        indicators = [f"{feature.name}_missing" for feature in self.features if feature.has_indicator]
        return numbers + indicators + [name for feature in self.texts for name in feature.number_names]

    @property
    def feature_names(self) -> list[str] | None:
        """The columns that are needed, or None where they have no names."""
        return [feature.name for feature in self.features] if self.has_names else None

    @cached_property
    def _one_hot(self) -> Any:
        from sklearn.preprocessing import OneHotEncoder

        categories = [np.array(feature.values, object) for feature in self.texts]
        encoder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
        return encoder.fit(np.array([[feature.values[0] for feature in self.texts]], object))

    def select(self, names: list[str], has_names: bool, source: str) -> tuple[list[int], set[int]]:
        """Return the positions of the columns to read of a table, and which of them to read as text."""
        positions = self._positions(names, has_names, source)
        pairs = zip(positions, self.features, strict=True)
        return positions, {position for position, feature in pairs if feature.kind not in ("number", "code")}

    def transform(self, frame: TableFrame) -> FloatArray:
        """Return the numbers of a table, (rows, inputs). Unseen texts become zeros, with one warning."""
        columns = self._columns(frame)
        return self._encode(frame, columns, self._read_numbers(frame, columns))

    def _read_numbers(self, frame: TableFrame, columns: Mapping[str, str]) -> FloatArray:
        """Return the numbers as they are, NaN where one is missing."""
        slices = self.number_slices
        numbers = np.empty((len(frame), sum(feature.n_numbers for feature in self.numbers)))
        for feature in self.numbers:
            if feature.name in self.means:
                codes, texts = _present_texts(frame, columns[feature.name], feature.kind)
                values = self.means[feature.name].transform(codes, texts)
            elif feature.is_category:
                continue  # its means are being fitted
            else:
                values = to_cycles(to_numbers(frame, feature, columns[feature.name]), feature.cycles)
            numbers[:, slices[feature.name]] = values
        return numbers

    def _encode(self, frame: TableFrame, columns: Mapping[str, str], numbers: FloatArray) -> FloatArray:
        slices, first = self.number_slices, [feature for feature in self.features if feature.has_indicator]
        indicators = [np.isnan(numbers[:, slices[feature.name].start]) for feature in first]
        names = [columns[feature.name] for feature in self.numbers for _ in range(feature.n_numbers)]
        if self.imputer is None:
            _require_finite(frame, names, numbers, "the value is missing")
        elif names:
            numbers = self.imputer.transform(numbers)
        if self.scaler is not None and names:
            with np.errstate(over="ignore"):
                numbers = self.scaler.transform(numbers)
            _require_finite(frame, names, numbers, "{} is too large for the model")
        blocks = [numbers, *(np.asarray(column, np.float64)[:, None] for column in indicators)]
        if self.texts:
            blocks.append(self._encode_texts(frame, columns))
        return np.hstack(blocks) if len(blocks) > 1 else numbers

    def _encode_texts(self, frame: TableFrame, columns: Mapping[str, str]) -> FloatArray:
        cells = np.empty((len(frame), len(self.texts)), object)
        unseen = []
        for j, feature in enumerate(self.texts):
            name = columns[feature.name]
            codes, texts = factorize_texts(frame, name, feature.kind)
            cells[:, j] = np.array([*texts, ""], object)[codes]
            others = [text for text in texts if text not in feature.values and text not in MISSING]
            if others:
                more = f" and {len(others) - MAX_UNSEEN} more" if len(others) > MAX_UNSEEN else ""
                unseen.append(f"{_quote(others)}{more} in {frame.describe(name)}")
        if unseen:
            _warn(f"{frame.source}the model was not trained with {', '.join(unseen)}; it treats them as missing")
        encoded: FloatArray = self._one_hot.transform(cells)
        return encoded

    def _columns(self, frame: TableFrame) -> dict[str, str]:
        """Return the name of each feature's column in a table."""
        names = frame.names
        if frame.has_names and self.has_names:
            columns = [names[position] for position in self._positions(names, True, frame.source)]
        else:
            positions = self._positions(column_numbers(frame.width), False, frame.source)
            columns = [names[frame.positions.index(position)] for position in positions]
        return dict(zip((feature.name for feature in self.features), columns, strict=True))

    def _positions(self, names: list[str], has_names: bool, source: str) -> list[int]:
        """Return the positions of the features among the columns of a table: by their names, or else in order."""
        if has_names and self.has_names:
            position = {name: j for j, name in enumerate(names)}
            missing = [feature.name for feature in self.features if feature.name not in position]
            if missing:
                columns = f"column {missing[0]!r:.80}" if len(missing) == 1 else f"columns {join_names(missing)}"
                known = join_names(self.feature_names or [])
                raise TableError(f"{source}the header lacks {columns}; the model was trained on {known}")
            return [position[feature.name] for feature in self.features]
        if len(names) == self.width:
            return [feature.position for feature in self.features]
        if self.target is not None and len(names) == self.width - 1:
            return [feature.position - (feature.position > self.target.position) for feature in self.features]
        if len(names) == len(self.features):
            order = sorted(feature.position for feature in self.features)
            return [order.index(feature.position) for feature in self.features]
        start = f"{source}row 1" if source else "the table"
        expected = pluralise(len(self.features), "feature")
        raise TableError(f"{start} has {pluralise(len(names), 'column')}, but the model takes {expected}")


NO_OPTIONS = EncodingOptions()


def plain_encoding(n_features: int, names: list[str] | None = None) -> Encoding:
    """Return the encoding of numbers that are taken as they are."""
    columns = column_numbers(n_features) if names is None else names
    return Encoding(tuple(Feature(name, j) for j, name in enumerate(columns)), n_features, names is not None)


def fit_encoding(
    frame: TableFrame,
    candidates: Iterable[str],
    target: str | None,
    y: NDArray[Any] | None = None,
    *,
    target_type: str = "auto",
    options: EncodingOptions = NO_OPTIONS,
) -> tuple[Encoding, FloatArray]:
    """Fit the encoding of the columns of a table; return it and the encoded rows.

    The target means of each of these rows are computed from the other folds, not from its own target.

    Parameters
    ----------
    frame : TableFrame
        The rows to learn from.
    candidates : iterable of str
        The columns to learn from; those that cannot be used are left out with a warning.
    target : str or None
        The column that is predicted.
    y : array, shape (rows,), optional
        What is predicted; without it, texts of too many values are left out.
    target_type : {"auto", "binary", "multiclass", "continuous"}
    options : EncodingOptions
    """
    from sklearn.impute import SimpleImputer

    kind = None if y is None else resolve_target_type(target_type, y)
    features = _infer_features(frame, candidates, options, has_targets=y is not None)
    means: dict[str, TargetMeans] = {}
    rows: dict[str, FloatArray] = {}
    for i, feature in enumerate(features):
        if feature.is_category and not feature.values:
            assert y is not None
            assert kind is not None
            codes, texts = _present_texts(frame, feature.name, feature.kind)
            target_means = TargetMeans.fit(codes, texts, y, kind, options.random_state)
            means[feature.name], rows[feature.name] = target_means
            features[i] = replace(feature, n_means=rows[feature.name].shape[1])
    predicted = None if target is None else Target(target if frame.has_names else None, frame.position(target))
    columns = {feature.name: feature.name for feature in features}
    encoding = Encoding(tuple(features), frame.width, frame.has_names, predicted)
    numbers, imputer, scaler = encoding._read_numbers(frame, columns), None, None
    slices, suggested = encoding.number_slices, []
    for i, feature in enumerate(features):
        if feature.name in rows:
            numbers[:, slices[feature.name]] = rows[feature.name]
        elif not feature.is_one_hot:
            column = numbers[:, slices[feature.name].start]
            n_missing = int(np.isnan(column).sum())
            has_indicator = max(MIN_MISSING, MIN_MISSING_FRACTION * len(column)) <= n_missing < len(column)
            features[i] = replace(feature, has_indicator=has_indicator)
            if feature.kind == "number" and y is not None and kind is not None and looks_like_codes(column, y, kind):
                suggested.append(feature.name)
    if encoding.numbers:
        imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(numbers)
        scaler = _fit_scaler(imputer.transform(numbers), encoding.numbers, frame) if options.scaling else None
    if suggested:
        columns_text = join_names([frame.describe(name) for name in suggested])
        _warn(f"{frame.source}{columns_text} may hold codes instead of amounts; if so, declare it as categorical")
    encoding = Encoding(
        *(tuple(features), frame.width, frame.has_names, predicted, imputer, scaler, means, tuple(suggested))
    )
    return encoding, encoding._encode(frame, columns, numbers)


def resolve_target_type(target_type: str, y: NDArray[Any]) -> str:
    """Return what the targets are: "binary", "multiclass" or "continuous"."""
    if target_type != "auto":
        return target_type
    from sklearn.utils.multiclass import type_of_target

    with np.errstate(invalid="ignore", over="ignore"):  # the ValueError says that y is not finite
        inferred = str(type_of_target(y, input_name="y"))
    return inferred if inferred in TARGET_TYPES else "continuous"


def _present_texts(frame: TableFrame, name: str, kind: str) -> tuple[LabelArray, list[str]]:
    """Return the texts of a column and which one each row has; those that stand for a missing cell are empty."""
    codes, texts = factorize_texts(frame, name, kind)
    return codes, ["" if text in MISSING else text for text in texts]


def _fit_scaler(rows: FloatArray, features: Sequence[Feature], frame: TableFrame) -> Any:
    from sklearn.preprocessing import StandardScaler

    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(rows)
    constant = (rows == rows[0]).all(axis=0)
    scaler.mean_[constant], scaler.scale_[constant] = rows[0, constant], 1.0  # of large numbers the mean is rounded
    wrong = np.flatnonzero(~(np.isfinite(scaler.mean_) & np.isfinite(scaler.scale_)))
    if len(wrong):
        column = frame.describe([feature.name for feature in features for _ in range(feature.n_numbers)][wrong[0]])
        raise TableError(f"{frame.source}{column}: the numbers are too large to be standardised")
    return scaler


def _infer_features(
    frame: TableFrame, candidates: Iterable[str], options: EncodingOptions, *, has_targets: bool
) -> list[Feature]:
    """Return the columns that can be used, and warn about the others."""
    features: list[Feature] = []
    left_out: dict[str, list[str]] = {}
    for name in candidates:
        is_index = not options.keep_index and _is_index(frame, name)
        feature = (
            "an index without a name"
            if is_index
            else infer_feature(frame, name, categorical=options.categorical, max_categories=options.max_categories)
        )
        if not isinstance(feature, str) and feature.is_category and not feature.values and not has_targets:
            feature = f"more than {options.max_categories} different texts, which need a target to be encoded"
        if isinstance(feature, str):
            left_out.setdefault(feature, []).append(frame.describe(name))
            continue
        features.append(feature)
        if feature.missing:
            texts = _quote(feature.missing)
            _warn(f"{frame.source}{frame.describe(name)} has numbers, and texts that count as missing: {texts}")
        elif frame.has_names and _is_row_number(frame, name):
            _warn(f"{frame.source}{frame.describe(name)} counts the rows; leave it out if that means nothing")
    reasons = [f"{join_names(n)} {'is' if len(n) == 1 else 'are'} left out: {why}" for why, n in left_out.items()]
    if not features:
        raise TableError(f"{frame.source}there is no column to learn from; {'; '.join(reasons)}")
    for reason in reasons:
        _warn(frame.source + reason)
    return features


def _is_index(frame: TableFrame, name: str) -> bool:
    if not frame.has_names:
        return frame.position(name) == 0 and len(frame) >= MIN_ROWS_OF_INDEX and _is_row_number(frame, name)
    return name in frame.unnamed and (frame.position(name) == 0 or _is_row_number(frame, name))


def _is_row_number(frame: TableFrame, name: str) -> bool:
    column = frame.data[name]
    if getattr(column.dtype, "kind", "") not in "iu" or len(column) < 2:
        return False
    numbers = column.to_numpy()
    return bool(numbers[0] in (0, 1) and np.all(np.diff(numbers) == 1))


def _require_finite(frame: TableFrame, names: list[str], numbers: FloatArray, reason: str) -> None:
    if not np.isfinite(numbers).all():
        row, j = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise frame.error(row, names[j], reason)


def _quote(texts: Sequence[str]) -> str:
    return ", ".join(f"{text!r:.80}" for text in texts[:MAX_UNSEEN])


def _warn(message: str) -> None:
    warnings.warn(message, TableWarning, stacklevel=3)
