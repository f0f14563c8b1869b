"""`TablePreprocessor`: the encoding of a table as a transformer of scikit-learn.

skrub's TableVectorizer does a similar job. It is not used for three reasons. skrub would bring jinja2, matplotlib,
requests, pydot and cloudpickle into every installation. Its encoder of texts with many values, StringEncoder, keeps a
vocabulary of n-grams and a singular value decomposition, which are large and have no format but pickle. And the command
line needs more than numbers: the line of a wrong cell, and a graph in ONNX.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.tables.columns import MAX_VALUES
from ocdl.tables.encoding import TARGET_TYPES, Encoding, EncodingOptions, fit_encoding
from ocdl.tables.frame import TableFrame, resolve_column
from ocdl.tables.model import to_frame

__all__ = ["TablePreprocessor"]


class TablePreprocessor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the columns of a table into numbers: numbers, categories, texts, dates, booleans, missing cells.

    ``ocdl train`` uses the same encoding. In Python, put it before any estimator in a pipeline.

    - Numbers are imputed with the median and standardised; texts such as ``12,345``, ``$3,366.33`` and ``32%`` are
      numbers. A column with at least 10 missing cells, and 1 % of the rows, has an indicator of missing cells.
    - Texts of up to `max_categories` values are one-hot encoded; missing and unknown texts become zeros.
    - Texts of more values become the mean of y over the rows with that text, as `sklearn.preprocessing.TargetEncoder`
      computes it. `fit_transform` takes the mean of a row from the other folds. Without y these columns are left out.
    - Dates become days since 1970 and, where they cover them, the cosine and sine of the year, the week and the day.
    - An index without a name, and columns without a value or with a different text in nearly every row, are left out
      with a `UserWarning`.

    Parameters
    ----------
    categorical : sequence of str or int, optional
        Columns, by name or counted from 0 on, that are categories although they hold numbers, such as postal codes.
    max_categories : int
        Texts of more values become means of y.
    scaling : bool
        Whether numbers are standardised.
    target_type : {"auto", "binary", "multiclass", "continuous"}
        The kind of y; "auto" infers it from the values, as in TargetEncoder. Counts need "continuous".
    random_state : int, RandomState or None
        Of the folds.

    Attributes
    ----------
    suggested_categorical_ : list of str
        Columns of whole numbers that look like codes: their values say more about y as categories than as amounts.
    n_features_in_ : int
    feature_names_in_ : array of str
        If the columns have names.

    Raises
    ------
    TypeError, ValueError
        `fit` raises them if a parameter or a column is not as described above.

    Examples
    --------
    >>> import ocdl, pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]})
    >>> ocdl.TablePreprocessor().fit(frame).get_feature_names_out().tolist()
    ['size', 'colour_blue', 'colour_red']
    >>> model = make_pipeline(ocdl.TablePreprocessor(), ocdl.ODEClassifier(tol=10, random_state=0))
    >>> model.fit(frame, ["a", "a", "b", "b"]).predict(frame).shape
    (4,)
    """

    def __init__(
        self,
        *,
        categorical: Iterable[str | int] | None = None,
        max_categories: int = MAX_VALUES,
        scaling: bool = True,
        target_type: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.categorical = categorical
        self.max_categories = max_categories
        self.scaling = scaling
        self.target_type = target_type
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None) -> TablePreprocessor:
        """Fit the encoding of the columns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array
            The columns of a data frame are found by their names in `transform`; those of an array in order.
        y : array, optional
            What is to be predicted, one entry per row.

        Returns
        -------
        TablePreprocessor
            Itself.

        Raises
        ------
        TypeError, ValueError
            If X is no table, a column of `categorical` is missing, or y does not fit `target_type`.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]})
        >>> encoder = ocdl.TablePreprocessor().fit(frame)
        >>> encoder.n_features_in_, encoder.feature_names_in_.tolist(), encoder.suggested_categorical_
        (2, ['size', 'colour'], [])
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> FloatArray:
        """Fit the encoding of the columns and return the encoded X, with means of y from the other folds.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array
        y : array, optional
            As in `fit`.

        Returns
        -------
        array, shape (rows, numbers)

        Raises
        ------
        TypeError, ValueError
            As `fit`.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 3.0], "colour": ["red", "blue"]})
        >>> ocdl.TablePreprocessor().fit_transform(frame).tolist()
        [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
        """
        return self._fit(X, y)

    def transform(self, X: Any) -> FloatArray:
        """Return the numbers of a table.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array

        Returns
        -------
        array, shape (rows, numbers)

        Raises
        ------
        ValueError
            If a column is missing, or a cell is no number where one was learned; the message says which.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 3.0], "colour": ["red", "blue"]})
        >>> encoder = ocdl.TablePreprocessor().fit(frame)
        >>> encoder.transform(pd.DataFrame({"size": [2.0], "colour": ["red"]})).tolist()
        [[0.0, 0.0, 1.0]]
        """
        check_is_fitted(self)
        return self._encoding.transform(to_frame(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each number: of the column, and the value or part that it stands for.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        array of str

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` has not been called.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> ocdl.TablePreprocessor().fit(pd.DataFrame({"size": [1.0, 3.0]})).get_feature_names_out().tolist()
        ['size']
        """
        check_is_fitted(self)
        return np.array(self._encoding.input_names, dtype=object)

    def _fit(self, X: Any, y: ArrayLike | None) -> FloatArray:
        frame = to_frame(X)
        validation.choice(self.target_type, "target_type", ("auto", *TARGET_TYPES))
        options = EncodingOptions(
            categorical=tuple(_column_name(entry, frame) for entry in self.categorical or ()),
            max_categories=validation.integer(self.max_categories, "max_categories", minimum=1),
            scaling=bool(self.scaling),
            random_state=self.random_state,
        )
        targets = None if y is None else column_or_1d(y)
        if targets is not None and len(targets) != len(frame):
            raise ValueError(f"X has {len(frame)} rows, but y has {len(targets)} entries")
        if not len(frame):
            raise ValueError("X has no rows")
        result: tuple[Encoding, FloatArray] = fit_encoding(
            frame, frame.names, None, targets, target_type=self.target_type, options=options
        )
        self._encoding, values = result
        self.n_features_in_ = frame.width
        if frame.has_names:
            self.feature_names_in_ = np.array(frame.names, dtype=object)
        self.suggested_categorical_ = list(self._encoding.suggested)
        return values


def _column_name(entry: str | int, frame: TableFrame) -> str:
    if isinstance(entry, str):
        return frame.names[resolve_column(entry, frame.names, "categorical")]
    number = validation.integer(entry, "categorical", minimum=0)
    if number >= frame.width:
        raise ValueError(f"categorical has column {number}, but X has columns 0 to {frame.width - 1}")
    return frame.names[number]
