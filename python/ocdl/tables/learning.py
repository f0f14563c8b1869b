"""An encoding learned from a table: what its columns are, medians for missing cells, means and scales."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ocdl.base.validation import FloatArray, LabelArray
from ocdl.tables.columns import Feature, recognised
from ocdl.tables.encoding import MOST_UNSEEN, Encoding, Target, raw_numbers, single_numbers, warn
from ocdl.tables.sheet import Sheet, TableError, listed

FEWEST_TO_COUNT = 10  # rows, from which on a column without a header that counts them is no accident


def learn(
    sheet: Sheet,
    candidates: Iterable[str],
    target: str | None,
    training: LabelArray,
    *,
    scaling: bool = True,
    keep_index: bool = False,
) -> tuple[Encoding, FloatArray]:
    """Return what the columns of a table become, and the numbers of all its rows.

    Parameters
    ----------
    sheet : Sheet
    candidates : iterable of str
        The columns to learn from; those that cannot be used are left out with a warning.
    target : str or None
        The column that is predicted.
    training : array of int
        The rows that medians, means and scales are taken from.
    scaling : bool
        Whether numbers are standardised.
    keep_index : bool
        Whether to keep a column that looks like an index.
    """
    features = _usable(sheet, candidates, keep_index)
    columns = [feature.name for feature in features]
    values, _ = raw_numbers(sheet, features, columns)
    features = _filled(values, features, training)
    if scaling:
        features = _standardised(values, features, training, sheet)
    predicted = None if target is None else Target(target if sheet.named else None, sheet.position(target))
    return Encoding(tuple(features), sheet.width, sheet.named, predicted), values


def _usable(sheet: Sheet, candidates: Iterable[str], keep_index: bool) -> list[Feature]:
    """Return the columns that can be used, and warn of the others."""
    found: list[Feature] = []
    left_out: dict[str, list[str]] = {}
    for name in candidates:
        is_index = not keep_index and _is_index(sheet, name)
        feature = "an index without a name" if is_index else recognised(sheet, name)
        if isinstance(feature, str):
            left_out.setdefault(feature, []).append(sheet.column(name))
            continue
        found.append(feature)
        if feature.missing:
            texts = ", ".join(f"{text!r:.80}" for text in feature.missing[:MOST_UNSEEN])
            warn(f"{sheet.source}{sheet.column(name)} has numbers, and texts that count as missing: {texts}")
        elif sheet.named and _counts_rows(sheet, name):
            warn(f"{sheet.source}{sheet.column(name)} counts the rows; leave it out if that means nothing")
    said = [f"{listed(names)} {'is' if len(names) == 1 else 'are'} left out: {why}" for why, names in left_out.items()]
    if not found:
        raise TableError(f"{sheet.source}there is no column to learn from; {'; '.join(said)}")
    for sentence in said:
        warn(f"{sheet.source}{sentence}")
    return found


def _is_index(sheet: Sheet, name: str) -> bool:
    if not sheet.named:
        return sheet.position(name) == 0 and len(sheet) >= FEWEST_TO_COUNT and _counts_rows(sheet, name)
    return name in sheet.unnamed and (sheet.position(name) == 0 or _counts_rows(sheet, name))


def _counts_rows(sheet: Sheet, name: str) -> bool:
    column = sheet.frame[name]
    if getattr(column.dtype, "kind", "") not in "iu" or len(column) < 2:
        return False
    numbers = column.to_numpy()
    return bool(numbers[0] in (0, 1) and np.all(np.diff(numbers) == 1))


def _filled(values: FloatArray, features: list[Feature], training: LabelArray) -> list[Feature]:
    """Put the median, of booleans the more frequent value, where a number is missing; return features that know it."""
    found = list(features)
    for i, j in single_numbers(features):
        column = values[training, j]
        column = column[~np.isnan(column)]
        fill = float(np.median(column)) if len(column) else 0.0
        if features[i].kind == "boolean":
            fill = float(fill >= 0.5)
        values[np.isnan(values[:, j]), j] = fill
        found[i] = replace(features[i], fill=fill)
    return found


def _standardised(values: FloatArray, features: list[Feature], training: LabelArray, sheet: Sheet) -> list[Feature]:
    """Standardise all numbers but those of texts, as scikit-learn does; return features that know how."""
    from sklearn.preprocessing import StandardScaler

    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(values[training])
    found = list(features)
    mean, scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
    for i, j in single_numbers(features):
        mean[j], scale[j] = scaler.mean_[j], scaler.scale_[j]
        first = values[training[0], j]
        if np.all(values[training, j] == first):  # the mean is exact then, whatever adding up makes of it
            mean[j], scale[j] = first, 1.0
        if not (np.isfinite(mean[j]) and np.isfinite(scale[j])):
            where = f"{sheet.source}{sheet.column(features[i].name)}"
            raise TableError(f"{where}: the numbers are too large to be standardised")
        found[i] = replace(features[i], mean=float(mean[j]), scale=float(scale[j]))
    values -= mean
    values /= scale
    return found
