"""Models for tables: a fitted estimator and the encoding of the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base.validation import FloatArray
from ocdl.estimator import files as estimator_files
from ocdl.network import Network, files
from ocdl.storage.container import FilePath, Migration, ModelFileError, file_error, migrate
from ocdl.tables.encoding import Encoding, plain_encoding
from ocdl.tables.frame import TableError, TableFrame, column_numbers
from ocdl.tables.spec import from_spec, to_arrays, to_spec

if TYPE_CHECKING:
    from ocdl.estimator import ODEClassifier, ODERegressor

__all__ = ["TableModel", "read_table_model"]

KEY = "table"  # of the metadata
MIGRATIONS: dict[int, Migration] = {}  # by the version of the file


class TableModel:
    """A fitted estimator with the encoding of a table's columns, as ``ocdl train`` writes it and `load` returns it.

    Attributes
    ----------
    estimator : ODEClassifier or ODERegressor
    encoding : Encoding
        The columns that it needs, and how they are encoded.

    Examples
    --------
    >>> import ocdl, pandas as pd
    >>> from ocdl.cli import main
    >>> frame = pd.DataFrame({"x": range(20), "city": ["Oslo", "Bonn"] * 10, "y": ["a", "b"] * 10})
    >>> frame.to_csv("table.csv", index=False)
    >>> _ = main("train --data table.csv --target y --max-iter 5 --alpha 0 --quiet --out model.ocdl".split())
    >>> model = ocdl.load("model.ocdl", ocdl.TableModel)
    >>> model
    <ODEClassifier for x, city>
    >>> type(model.estimator).__name__, model.encoding.n_inputs
    ('ODEClassifier', 3)
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
            The columns of a data frame are matched by name, in any order, and others are ignored. Those of an
            array are taken in order.

        Returns
        -------
        ndarray of shape (rows,) or (rows, targets)

        Raises
        ------
        TableError
            If a column is missing, or a cell of a column of numbers is not a number; the message names it.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> from ocdl.cli import main
        >>> frame = pd.DataFrame({"x": range(20), "city": ["Oslo", "Bonn"] * 10, "y": ["a", "b"] * 10})
        >>> frame.to_csv("table.csv", index=False)
        >>> _ = main("train --data table.csv --target y --max-iter 5 --alpha 0 --quiet --out model.ocdl".split())
        >>> model = ocdl.load("model.ocdl", ocdl.TableModel)
        >>> model.predict(frame[["city", "x"]]).shape
        (20,)
        """
        predictions: NDArray[Any] = self.estimator.predict(self.inputs(table))
        return predictions

    def predict_proba(self, table: Any) -> FloatArray:
        """Return the probabilities of the classes for every row of a table, (rows, classes).

        Parameters
        ----------
        table : DataFrame of pandas or polars, or array
            The columns of a data frame are matched by name, in any order, and others are ignored. Those of an
            array are taken in order.

        Returns
        -------
        ndarray of shape (rows, classes)
            In the order of ``classes_``.

        Raises
        ------
        TableError
            If a column is missing, or a cell of a column of numbers is not a number; the message names it.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> from ocdl.cli import main
        >>> frame = pd.DataFrame({"x": range(20), "city": ["Oslo", "Bonn"] * 10, "y": ["a", "b"] * 10})
        >>> frame.to_csv("table.csv", index=False)
        >>> _ = main("train --data table.csv --target y --max-iter 5 --alpha 0 --quiet --out model.ocdl".split())
        >>> model = ocdl.load("model.ocdl", ocdl.TableModel)
        >>> model.predict_proba(frame).shape
        (20, 2)
        """
        probabilities: FloatArray = self.estimator.predict_proba(self.inputs(table))
        return probabilities

    def inputs(self, table: Any) -> Any:
        """Return the inputs of the estimator for a table: numbers, with names if the estimator has names.

        Parameters
        ----------
        table : DataFrame of pandas or polars, or array
            The columns of a data frame are matched by name, in any order, and others are ignored. Those of an
            array are taken in order.

        Returns
        -------
        ndarray or DataFrame of shape (rows, inputs)

        Raises
        ------
        TableError
            If a column is missing, or a cell of a column of numbers is not a number; the message names it.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> from ocdl.cli import main
        >>> frame = pd.DataFrame({"x": range(20), "city": ["Oslo", "Bonn"] * 10, "y": ["a", "b"] * 10})
        >>> frame.to_csv("table.csv", index=False)
        >>> _ = main("train --data table.csv --target y --max-iter 5 --alpha 0 --quiet --out model.ocdl".split())
        >>> model = ocdl.load("model.ocdl", ocdl.TableModel)
        >>> model.inputs(frame).shape
        (20, 3)
        """
        import pandas as pd

        values = self.encoding.transform(table if isinstance(table, TableFrame) else to_frame(table))
        names = getattr(self.estimator, "feature_names_in_", None)
        return values if names is None else pd.DataFrame(values, columns=names, copy=False)

    def save(self, path: FilePath) -> None:
        """Write the model to a file without code in it (no pickle), for `ocdl.load`.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        OSError
            If the file cannot be written; the old one is intact.

        Examples
        --------
        >>> import ocdl, pandas as pd
        >>> from ocdl.cli import main
        >>> frame = pd.DataFrame({"x": range(20), "city": ["Oslo", "Bonn"] * 10, "y": ["a", "b"] * 10})
        >>> frame.to_csv("table.csv", index=False)
        >>> _ = main("train --data table.csv --target y --max-iter 5 --alpha 0 --quiet --out model.ocdl".split())
        >>> model = ocdl.load("model.ocdl", ocdl.TableModel)
        >>> model.save("again.ocdl")
        """
        estimator_files.save(path, self.estimator, to_arrays(self.encoding), **{KEY: to_spec(self.encoding)})

    def __repr__(self) -> str:
        columns = "columns without names" if self.feature_names is None else ", ".join(self.feature_names)
        return f"<{type(self.estimator).__name__} for {columns:.200}>"


def read_table_model(path: FilePath) -> TableModel:
    """Return the model of a file for tables; an estimator that was fitted to numbers takes the columns as they are."""
    stored = files.read(path)
    if "estimator" not in stored.model.metadata:
        advice = "ocdl train and the save of an estimator write files with them"
        raise file_error(path, f"holds a network without classes or targets; {advice}")
    result = restore(path, stored)
    if isinstance(result, TableModel):
        return result
    names = getattr(result, "feature_names_in_", None)
    return TableModel(result, plain_encoding(result.n_features_in_, None if names is None else names.tolist()))


def restore(path: FilePath, stored: files.Stored) -> TableModel | ODEClassifier | ODERegressor:
    """Return the estimator from the contents of a file, as a `TableModel` if it was fitted to a table."""
    model, version, _, arrays = stored
    metadata = model.metadata
    try:
        migrate(metadata, {}, version, MIGRATIONS)
        estimator_arrays = estimator_files.take_arrays(arrays)
        encoding = from_spec(metadata.pop(KEY), arrays) if KEY in metadata else None
        n_features = estimator_files.count_features(estimator_arrays, model.network)
        if encoding is not None and encoding.n_inputs != n_features:
            raise ValueError(f"its columns become {encoding.n_inputs} numbers, not {n_features}")
    except ModelFileError:
        raise
    except (TypeError, ValueError) as error:
        raise file_error(path, f"holds no estimator that this ocdl can load: {error!s:.300}") from error
    estimator = estimator_files.restore(path, model, estimator_arrays, version, _estimator_class(metadata))
    return estimator if encoding is None else TableModel(estimator, encoding)


def _estimator_class(metadata: dict[str, Any]) -> type[ODEClassifier] | type[ODERegressor]:
    """Return the class of the estimator in a file."""
    from ocdl.estimator import ODEClassifier, ODERegressor

    stored = metadata.get("estimator")
    is_regressor = isinstance(stored, dict) and stored.get("kind") == ODERegressor.__name__
    return ODERegressor if is_regressor else ODEClassifier


def to_frame(table: Any) -> TableFrame:
    """Return a data frame of pandas or polars, or an array, as a table."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        frame, has_names = table, not isinstance(table.columns, pd.RangeIndex)
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # polars
        frame, has_names = pd.DataFrame({str(name): table[name].to_numpy() for name in table.columns}), True
    else:
        array = _to_array(table)
        frame, has_names = pd.DataFrame(array).infer_objects(), False
    width = frame.shape[1]
    frame = frame.set_axis([str(name) for name in frame.columns] if has_names else column_numbers(width), axis=1)
    if frame.columns.has_duplicates:
        raise TableError(f"the table has several columns {frame.columns[frame.columns.duplicated()][0]!r:.80}")
    return TableFrame(frame, list(range(frame.shape[1])), frame.shape[1], has_names=has_names)


def _to_array(table: ArrayLike) -> NDArray[Any]:
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(f"a table has rows and columns, got an array of shape {array.shape}")
    return array
