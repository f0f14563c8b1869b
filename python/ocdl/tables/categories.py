"""Columns of many different texts, encoded by means of the target as TargetEncoder computes them; and codes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocdl.base.validation import FloatArray, LabelArray

FOLDS = 5
CODES_P_VALUE, CODES_GAIN = (
    1e-4,
    0.01,
)  # largest p-value and smallest gain of the test for codes
MIN_CODES, MIN_ROWS_PER_CODE = 6, 5
MAX_TARGETS = 20  # classes that are tested


@dataclass(frozen=True, eq=False)
class TargetMeans:
    """The texts of a column and the mean of the target for each.

    The texts are one array of letters and not a list, so that a model file takes as much memory as it has bytes.

    Attributes
    ----------
    letters : array of uint8
        All texts in UTF-8, one after the other.
    lengths : array of int64
        The number of bytes of each text.
    means : array, shape (texts + 1, k)
        The last row is for all other texts. k is 1, or the number of classes if there are more than two.
    """

    letters: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    means: FloatArray

    @classmethod
    def fit(
        cls, codes: LabelArray, texts: Sequence[str], y: NDArray[Any], target_type: str, random_state: Any
    ) -> tuple[TargetMeans, FloatArray]:
        """Return the means, and those of the rows, (rows, k): each computed from the other folds.

        Parameters
        ----------
        codes : array of int
            For every row, which text it has; -1 where the cell is missing, which counts as the empty text.
        texts : sequence of str
        y : array, shape (rows,)
        target_type : {"binary", "multiclass", "continuous"}
        random_state : int, RandomState or None
            Of the folds.
        """
        from sklearn.model_selection import KFold, StratifiedKFold
        from sklearn.preprocessing import TargetEncoder

        known = sorted({*texts, ""})
        position = {text: i for i, text in enumerate(known)}
        cells = np.array([position[text] for text in (*texts, "")])[codes][:, None]
        is_continuous = target_type == "continuous"
        targets = np.asarray(y, np.float64)[:, None] if is_continuous else _indicators(y)
        max_count = len(y) if is_continuous else int(np.unique(y, return_counts=True)[1].max())
        folds: Any = KFold if is_continuous or max_count < 2 else StratifiedKFold
        folds = folds(max(2, min(FOLDS, max_count)), shuffle=True, random_state=random_state)
        rows = np.empty(targets.shape)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits = list(folds.split(cells, y))
        encoders = [TargetEncoder(target_type="continuous") for _ in targets.T]  # classes by their indicators
        for j, (encoder, target) in enumerate(zip(encoders, targets.T, strict=True)):
            for training, others in splits:
                rows[others, j] = encoder.fit(cells[training], target[training]).transform(cells[others])[:, 0]
            encoder.fit(cells, target)
        present = encoders[0].categories_[0]
        means = np.column_stack([[*encoder.encodings_[0], encoder.target_mean_] for encoder in encoders])
        letters = [known[i].encode("utf-8", "surrogatepass") for i in present]
        blob = np.frombuffer(b"".join(letters), np.uint8)
        return cls(blob, np.array([len(text) for text in letters], np.int64), means), rows

    @cached_property
    def texts(self) -> list[str]:
        """The texts as a list."""
        return list(self.iterate_texts())

    def iterate_texts(self) -> Iterator[str]:
        """Yield the texts; a ValueError where the letters of one are no UTF-8."""
        for start, end in pairwise(accumulate(map(int, self.lengths), initial=0)):
            yield self.letters[start:end].tobytes().decode("utf-8", "surrogatepass")

    @cached_property
    def _position(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.texts)}

    def transform(self, codes: LabelArray, texts: Sequence[str]) -> FloatArray:
        """Return the means of rows, (rows, k); those of other texts are the mean of all."""
        other = len(self.lengths)
        positions = np.array([self._position.get(text, other) for text in (*texts, "")])
        rows: FloatArray = self.means[positions[codes]]
        return rows


def _indicators(y: NDArray[Any]) -> FloatArray:
    """Return a column for each class, where there are two of them only one."""
    classes = np.unique(y)
    columns = classes[-1:] if len(classes) <= 2 else classes
    return np.asarray(y[:, None] == columns, np.float64)


def looks_like_codes(values: FloatArray, y: NDArray[Any], target_type: str) -> bool:
    """Whether the whole numbers of a column look like codes: they predict y better as categories than as amounts.

    An F test compares the means of y over the rows of each number with a cubic polynomial of the numbers.
    """
    present = ~np.isnan(values)
    values, y = values[present], y[present]
    if len(values) < MIN_CODES * MIN_ROWS_PER_CODE or not (values == np.round(values)).all():
        return False
    levels, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    k, n = len(levels), len(values)
    if k < MIN_CODES or n < k * MIN_ROWS_PER_CODE:
        return False
    from scipy.stats import f

    targets = y.astype(np.float64)[:, None] if target_type == "continuous" else _indicators(y)
    standard = (values - values.mean()) / values.std()
    powers = np.vander(standard, 4)
    for target in targets.T[:MAX_TARGETS]:
        total = np.sum((target - target.mean()) ** 2)
        if not np.isfinite(total) or total == 0:
            continue
        means = np.bincount(codes, target) / counts
        within = np.sum((target - means[codes]) ** 2)
        smooth = np.sum((target - powers @ np.linalg.lstsq(powers, target, rcond=None)[0]) ** 2)
        gain = smooth - within
        adjusted = gain / total - (k - 4) / n
        ratio = gain / (k - 4) / max(within / (n - k), 1e-300)
        if adjusted > CODES_GAIN and f.sf(ratio, k - 4, n - k) < CODES_P_VALUE:
            return True
    return False
