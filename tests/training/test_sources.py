"""Files and arrays as sources: the rows that they hold, and the errors where they are damaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ocdl
from ocdl import RowSource

ROWS = 1000


def samples() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, 3)), rng.integers(0, 2, ROWS), rng.uniform(size=ROWS)


def check(source: Any, *arrays: Any) -> None:
    assert source.n_rows == ROWS
    for i, j in ((0, ROWS), (0, 1), (ROWS - 1, ROWS), (123, 789), (333, 334)):
        for actual, expected in zip(source.rows(i, j), arrays, strict=True):
            assert np.array_equal(actual, expected[i:j])


def trained(source: Any) -> bytes:
    net = ocdl.Network(3, 2)
    return ocdl.train(net, net.init(random_state=0), source, max_iter=3).controls.to_vector().tobytes()


def stored(folder: Path, **arrays: Any) -> list[Path]:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_are_read(tmp_path: Path, kind: Any, order: Any) -> None:
    X, y, weights = samples()
    X = np.asarray(X, kind, order=order)
    files = stored(tmp_path, X=X, y=y, weights=weights)
    check(RowSource.from_npy(*files), X, y, weights)
    check(RowSource.from_npy(*map(str, files[:2])), X, y)
    check(RowSource.from_npy(*(np.load(file, mmap_mode="r") for file in files)), X, y, weights)
    assert trained(RowSource.from_npy(*files)) == trained(RowSource.from_arrays(X, y, weights))


def test_damaged_npy_files_are_named(tmp_path: Path) -> None:
    X, y, _ = samples()
    X_file, y_file = stored(tmp_path, X=X, y=y)
    source = RowSource.from_npy(X_file, y_file)
    X_file.write_bytes(X_file.read_bytes()[:-8])
    with pytest.raises(
        RuntimeError,
        match=r"rows 0 to 999 of X, RowSource\('.*X.npy', .*\) could not be read: .*X.npy: the file has become shorter",
    ):
        trained(source)
    with pytest.raises(ValueError, match=r"X.npy: it is truncated: 24120 bytes of 24128"):
        RowSource.from_npy(X_file, y_file)
    X_file.write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"X.npy: it cannot be read as an .npy file"):
        RowSource.from_npy(X_file, y_file)
    X_file.unlink()
    with pytest.raises(FileNotFoundError, match=r"X.npy"):
        RowSource.from_npy(X_file, y_file)
    with pytest.raises(RuntimeError, match=r"could not be read: FileNotFoundError: .*X.npy"):
        trained(source)
    np.save(X_file, np.array([[None]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"X.npy: arrays of Python objects"):
        RowSource.from_npy(X_file, y_file)


@pytest.mark.parametrize("shape", ["(4, -2)", "(-4, 2)", "(4, 2", "(04, 2)", "(1e3, 2)", "((4, 2)"])
def test_npy_files_with_a_strange_header_are_named(shape: str, tmp_path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path = tmp_path / "X.npy"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + bytes(64))
    with pytest.raises(ValueError, match=r"X.npy: it cannot be read as an .npy file: "):
        RowSource.from_npy(path, np.zeros(4))


class Sliced:
    """What Zarr, HDF5 and Dask arrays have in common."""

    def __init__(self, array: Any) -> None:
        self._array, self.shape = array, array.shape

    def __getitem__(self, rows: slice) -> Any:
        assert isinstance(rows, slice)
        assert type(rows.start) is type(rows.stop) is int
        return self._array[rows]


def test_arrays_with_a_shape_are_sliced() -> None:
    X, y, weights = samples()
    check(RowSource.from_arrays(Sliced(X), Sliced(y), Sliced(weights)), X, y, weights)
    assert trained(RowSource.from_arrays(Sliced(X), Sliced(y))) == trained(RowSource.from_arrays(X, y))
    with pytest.raises(TypeError, match=r"X must have a shape and take \[i:j\], got list"):
        RowSource.from_arrays(X.tolist(), y)
    with pytest.raises(ValueError, match="all arrays must have the same number of rows, got 1000 in X, 999 in y"):
        RowSource.from_arrays(X, y[:-1])
    assert repr(RowSource.from_arrays(X, y)) == "RowSource(ndarray of shape (1000, 3), ndarray of shape (1000,))"


def parquet(path: Path, X: Any, y: Any, weights: Any, **options: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"first": X[:, 0], "label": y, "second": X[:, 1], "weight": weights, "third": X[:, 2].astype(np.float32)}
    pq.write_table(pa.table(columns), path, **options)


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Any, Any, Any]:
    """Three files with several row groups each."""
    pytest.importorskip("pyarrow")
    X, y, weights = samples()
    X[:, 2] = X[:, 2].astype(np.float32)
    for number, (i, j) in enumerate([(0, 400), (400, 410), (410, ROWS)]):
        parquet(tmp_path / f"part-{number}.parquet", X[i:j], y[i:j], weights[i:j], row_group_size=150)
    return tmp_path, X, y, weights


@pytest.mark.extras
def test_parquet_files_are_read(parts: tuple[Path, Any, Any, Any]) -> None:
    folder, X, y, weights = parts
    for path in (folder, str(folder), f"{folder}/part-*.parquet"):
        check(RowSource.from_parquet(path, "label", sample_weight="weight"), X, y, weights)
    check(RowSource.from_parquet(folder, "label", features=["third", "first"]), X[:, [2, 0]], y)
    check(RowSource.from_parquet(folder, ["second", "first"], features=["third"]), X[:, 2:], X[:, [1, 0]])
    one = RowSource.from_parquet(folder / "part-1.parquet", "label")
    assert one.n_rows == 10
    assert np.array_equal(one.rows(0, 10)[0][:, 2], weights[400:410])  # the column between
    source = RowSource.from_parquet(folder, "label", sample_weight="weight")
    assert trained(source) == trained(RowSource.from_arrays(X, y, weights))


@pytest.mark.extras
def test_damaged_parquet_files_are_named(parts: tuple[Path, Any, Any, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, X, y, weights = parts
    source = RowSource.from_parquet(folder, "label", sample_weight="weight")
    path = folder / "part-2.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])  # the pages, not the footer
    with pytest.raises(
        RuntimeError,
        match=r"rows 0 to 999 of X, RowSource\(.*\) could not be read: .*part-2.parquet: row group 0 cannot be read",
    ):
        trained(source)
    parquet(path, X[:500], y[:500], weights[:500])
    with pytest.raises(
        RuntimeError, match=r"part-2.parquet: the file has changed: row group 0 has 500 rows instead of 150"
    ):
        trained(source)
    path.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"part-2.parquet: it is not a readable Parquet file"):
        RowSource.from_parquet(folder, "label")
    path.unlink()
    with pytest.raises(RuntimeError, match=r"could not be read: .*part-2.parquet"):
        trained(source)
    pq.write_table(pa.table({"first": [1.0], "label": [0]}), path)
    with pytest.raises(ValueError, match=r"part-2.parquet: it has no column 'second'; its columns are first, label"):
        RowSource.from_parquet(folder, "label", sample_weight="weight")
    pq.write_table(pa.table({"first": ["a"], "label": [0]}), path)
    with pytest.raises(RuntimeError, match=r"TypeError: .*part-2.parquet: the column 'first' has type string"):
        trained(RowSource.from_parquet(path, "label"))
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        RowSource.from_parquet(folder / "none-*.parquet", "label")
    (folder / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="the directory has no files that end in"):
        RowSource.from_parquet(folder / "empty", "label")


@pytest.mark.extras
def test_arrays_of_dask_zarr_and_hdf5_are_sources(tmp_path: Path) -> None:
    dask, zarr, h5py = (pytest.importorskip(name) for name in ("dask.array", "zarr", "h5py"))
    X, y, _ = samples()
    in_memory = trained(RowSource.from_arrays(X, y))
    assert trained(RowSource.from_arrays(dask.from_array(X, 70), dask.from_array(y, 70))) == in_memory
    stored_X, stored_y = zarr.array(X, chunks=(64, 3)), zarr.array(y, chunks=(64,))
    assert trained(RowSource.from_arrays(stored_X, stored_y)) == in_memory
    with h5py.File(tmp_path / "samples.h5", "w") as file:
        file["X"], file["y"] = X, y
        assert trained(RowSource.from_arrays(file["X"], file["y"])) == in_memory


@pytest.mark.parametrize("optimiser", [ocdl.LBFGS(), ocdl.Adam(batch_size=100)])
@pytest.mark.parametrize("weighted", [False, True])
def test_inputs_are_read_with_the_rows(optimiser: Any, weighted: bool, tmp_path: Path) -> None:
    X, y, weights = samples()
    inputs = np.random.default_rng(1).normal(size=(ROWS, 4, 2))
    net = ocdl.Network(3, 3, field="mlp", width=5, n_inputs=2, control_intervals=1, tableau="kutta4")
    given = weights if weighted else None
    settings: dict[str, Any] = {"optimiser": optimiser, "max_iter": 4, "random_state": 0}
    held_out = ocdl.Validation(X, y, sample_weight=given, inputs=inputs)
    arrays: dict[str, Any] = {"sample_weight": given, "inputs": inputs, "validation": held_out}
    expected = ocdl.train(net, net.init(0), X, y, **arrays, **settings)
    X_file, y_file, weights_file, inputs_file = stored(tmp_path, X=X, y=y, weights=weights, inputs=inputs)
    for source in (
        RowSource.from_arrays(X, y, given, inputs),
        RowSource.from_npy(X_file, y_file, weights_file if weighted else None, inputs_file),
    ):
        result = ocdl.train(net, net.init(0), source, validation=source, **settings)
        assert np.array_equal(result.controls.to_vector(), expected.controls.to_vector())
        assert np.array_equal(result.history.loss, expected.history.loss)
        assert np.array_equal(result.history.val_loss, expected.history.val_loss)


def test_inputs_of_rows_are_checked() -> None:
    X, y, _ = samples()
    net = ocdl.Network(3, 3, field="mlp", width=5, n_inputs=2)
    with pytest.raises(ValueError, match=r"rows 0 to 63 of X, .*inputs is missing: the network takes an"):
        ocdl.train(net, net.init(0), RowSource.from_arrays(X, y))
    with pytest.raises(ValueError, match=r"inputs must be left out: the network takes none"):
        trained(RowSource.from_arrays(X, y, None, np.zeros((ROWS, 3, 2))))
    with pytest.raises(ValueError, match=r"inputs .*\(64, 4, 2\)"):
        ocdl.train(net, net.init(0), RowSource.from_arrays(X, y, None, np.zeros((ROWS, 3, 2))))
