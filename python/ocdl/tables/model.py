"""Models for tables: a fitted estimator, and what the columns of a table become before it sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base.validation import FloatArray
from ocdl.estimator import files as estimator_files
from ocdl.network import Network, files
from ocdl.storage.container import FilePath, Migration, ModelFileError, migrate, refusal
from ocdl.tables import record
from ocdl.tables.encoding import Encoding, plain
from ocdl.tables.sheet import Sheet, TableError, counted_names

if TYPE_CHECKING:
    from ocdl.estimator import ODEClassifier, ODERegressor

__all__ = ["TableModel", "load_model"]

KEY = "table"  # of the metadata
MIGRATIONS: dict[int, Migration] = {}  # by the version of the file


class TableModel:
    """A fitted estimator that takes the columns of a table.

    Attributes
    ----------
    estimator : ODEClassifier or ODERegressor
    encoding : Encoding
        Which columns it needs, and what they become.
    """

    def __init__(self, estimator: ODEClassifier | ODERegressor, encoding: Encoding) -> None:
        self.estimator, self.encoding = estimator, encoding

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, in the order of the probabilities; a regressor has none."""
        classes: NDArray[Any] = self.estimator.classes_
        return classes

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts classes, and not measurements."""
        return hasattr(self.estimator, "classes_")

    @property
    def feature_names(self) -> list[str] | None:
        """The columns that are needed; None: they have no names and are taken in order."""
        return self.encoding.feature_names

    @property
    def network(self) -> Network:
        """The network that predicts."""
        return self.estimator.network_

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the prediction for every row of a table.

        Parameters
        ----------
        table : DataFrame of pandas or polars, or array
            The columns of a data frame are found by their names, in any order; others may be there. Those of an array
            are taken in order.

        Raises
        ------
        TableError
            A ValueError that says which column is missing, or which cell is no number where one was learned.
        """
        predictions: NDArray[Any] = self.estimator.predict(self.inputs(table))
        return predictions

    def predict_proba(self, table: Any) -> FloatArray:
        """Return the probabilities of the classes for every row of a table, (rows, classes)."""
        probabilities: FloatArray = self.estimator.predict_proba(self.inputs(table))
        return probabilities

    def inputs(self, table: Any) -> Any:
        """Return what the estimator sees of a table: numbers of shape (rows, inputs), with names if it knows some."""
        import pandas as pd

        values = self.encoding.matrix(table if isinstance(table, Sheet) else sheet_from(table))
        names = getattr(self.estimator, "feature_names_in_", None)
        return values if names is None else pd.DataFrame(values, columns=names, copy=False)

    def save(self, path: FilePath) -> None:
        """Write the model to a file without code in it (no pickle), for `load_model`."""
        estimator_files.save(path, self.estimator, **{KEY: record.to_record(self.encoding)})

    def __repr__(self) -> str:
        needed = "counted columns" if self.feature_names is None else ", ".join(self.feature_names)
        return f"<{type(self.estimator).__name__} for {needed:.200}>"


def load_model(path: FilePath) -> TableModel:
    """Read what ``ocdl train`` wrote, or the `save` of an estimator: a model that predicts from tables.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    TableModel
        Its `predict` and `predict_proba` take data frames, whose columns are found by their names, and arrays.

    Raises
    ------
    ModelFileError
        If the file is damaged, truncated, foreign or newer, or holds no estimator; the message says which.

    Examples
    --------
    >>> import ocdl, pandas as pd
    >>> frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 0.0, 1.0, 0.0]})
    >>> ocdl.ODEClassifier(tol=10, random_state=0).fit(frame, ["a", "a", "b", "b"]).save("model.ocdl")
    >>> ocdl.load_model("model.ocdl").predict(frame[["y", "x"]]).shape
    (4,)
    """
    model, version, _ = files.read(path)
    metadata = model.metadata
    if "estimator" not in metadata:
        advice = "ocdl train and the save of an estimator write files with them"
        raise refusal(path, f"holds a network without classes or targets; {advice}")
    try:
        migrate(metadata, {}, version, MIGRATIONS)
        encoding = record.from_record(metadata.pop(KEY)) if KEY in metadata else None
        if encoding is not None and encoding.n_inputs != model.network.n_features:
            raise ValueError(f"its columns become {encoding.n_inputs} numbers, not {model.network.n_features}")
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise refusal(path, f"holds no estimator that this ocdl can load: {error!s:.300}") from error
    estimator = estimator_files.restored(path, model, version, _kind(metadata))
    if encoding is None:
        names = getattr(estimator, "feature_names_in_", None)
        encoding = plain(model.network.n_features, None if names is None else names.tolist())
    return TableModel(estimator, encoding)


def _kind(metadata: dict[str, Any]) -> type[ODEClassifier] | type[ODERegressor]:
    """Return the kind of estimator in a file; there was one kind first, and its files do not say which."""
    from ocdl.estimator import ODEClassifier, ODERegressor

    stored = metadata.get("estimator")
    is_regressor = isinstance(stored, dict) and stored.get("kind") == ODERegressor.__name__
    return ODERegressor if is_regressor else ODEClassifier


def sheet_from(table: Any) -> Sheet:
    """Return a data frame of pandas or polars, or an array, as a table."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        frame, named = table, not isinstance(table.columns, pd.RangeIndex)
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # polars
        frame, named = pd.DataFrame({str(name): table[name].to_numpy() for name in table.columns}), True
    else:
        array = _array(table)
        frame, named = pd.DataFrame(array).infer_objects(), False
    width = frame.shape[1]
    frame = frame.set_axis([str(name) for name in frame.columns] if named else counted_names(width), axis=1)
    if frame.columns.has_duplicates:
        raise TableError(f"the table has several columns {frame.columns[frame.columns.duplicated()][0]!r:.80}")
    return Sheet(frame, list(range(frame.shape[1])), frame.shape[1], named=named)


def _array(table: ArrayLike) -> NDArray[Any]:
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(f"a table has rows and columns, got an array of shape {array.shape}")
    return array
