"""Whatever happens while a file is written, there is the old one or the new one."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.numpy
from fuzz_files import controls
from soak import Soak
from subprocesses import Forks, run_python

import ocdl
from ocdl import Network
from ocdl.files import load, save
from ocdl.model.architecture import PRESETS

NETWORKS = [Network.preset(name, 2, 3) for name in PRESETS]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.ocdl"


@pytest.fixture
def old(path: Path) -> bytes:
    """A file that is there already; return its bytes."""
    save(path, NETWORKS[0], controls(NETWORKS[0]), age="old")
    return path.read_bytes()


def save_new(path: Path) -> None:
    save(path, NETWORKS[0], controls(NETWORKS[0], seed=1), age="new")


def test_a_file_is_replaced_whole(path: Path, old: bytes) -> None:
    with open(path, "rb") as reader:
        save_new(path)
        assert reader.read() == old  # a reader of the old file can continue to read it
    assert load(path).metadata == {"age": "new"}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("fsync", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
        ("replace", PermissionError(errno.EPERM, os.strerror(errno.EPERM), "a", None, "b")),
        ("replace", OSError(errno.EIO, os.strerror(errno.EIO))),
        ("chmod", OSError(errno.EROFS, os.strerror(errno.EROFS))),
        ("replace", KeyboardInterrupt()),
        ("fsync", KeyboardInterrupt()),
        ("fsync", MemoryError()),
    ],
    ids=repr,
)
def test_the_old_file_survives_whatever_happens(
    function: str, error: BaseException, path: Path, old: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(type(error)) as caught:
            save_new(path)
    if isinstance(error, OSError):
        assert isinstance(caught.value, OSError)
        assert caught.value.errno == error.errno
        assert str(caught.value) == f"[Errno {error.errno}] {error.strerror}: {str(path)!r}"
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("limit", [0, 100, 2000])
def test_a_full_disk(limit: int, path: Path, old: bytes) -> None:
    net = Network(8, 40)  # beyond the buffer of a file
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match=f"File too large: {str(path)!r}") as caught:
            save(path, net, net.init(random_state=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_flushed_is_no_failure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EINVAL, "not here")

    monkeypatch.setattr(os, "open", fail)
    save_new(path)
    monkeypatch.undo()
    assert load(path).metadata == {"age": "new"}


def test_file_and_folder_are_flushed_before_and_after_the_renaming(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        order.append("folder" if name == str(path.parent) else "file")
        if order[-1] == "file":
            assert Path(name).name.startswith(".model.ocdl")
            assert safetensors.numpy.load_file(name).keys() == {"K", "b", "h", "W", "mu"}  # whole already
        fsync(descriptor)

    def record_replace(source: str, target: str) -> None:
        order.append("rename")
        assert (Path(source).parent, target) == (path.parent, str(path))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    save_new(path)
    assert order == ["file", "rename", "folder"]


def test_a_directory_or_device_is_not_replaced(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("text")
    before = sorted(tmp_path.iterdir())
    for target, error, message in [
        (tmp_path, IsADirectoryError, "Is a directory"),
        (tmp_path / "folder", IsADirectoryError, "Is a directory"),
        (str(tmp_path / "new") + "/", IsADirectoryError, "Is a directory"),
        (tmp_path / "pipe", OSError, "Not a regular file"),
        (tmp_path / "loop", OSError, "Too many levels of symbolic links"),
        (tmp_path / "absent" / "model", FileNotFoundError, "No such file or directory"),
        (tmp_path / "file" / "model", NotADirectoryError, "Not a directory"),
        (tmp_path / ("x" * 300), OSError, "File name too long"),
    ]:
        with pytest.raises(error, match=f"{message}: {str(target)!r}"):
            save_new(target)  # type: ignore[arg-type]
    assert sorted(tmp_path.iterdir()) == before


def test_symbolic_links_stay_and_their_targets_are_replaced(path: Path, old: bytes, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, chain, dangling = tmp_path / "folder" / "link", tmp_path / "chain", tmp_path / "dangling"
    link.symlink_to("../model.ocdl")
    chain.symlink_to(link)
    save_new(chain)
    assert chain.is_symlink()
    assert link.is_symlink()
    assert not path.is_symlink()
    assert load(path).metadata == load(link).metadata == load(chain).metadata == {"age": "new"}
    dangling.symlink_to(tmp_path / "folder" / "later")
    save_new(dangling)
    assert dangling.is_symlink()
    assert load(tmp_path / "folder" / "later").metadata == {"age": "new"}
    assert sorted(file.name for file in (tmp_path / "folder").iterdir()) == ["later", "link"]


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: list[Any] = [
        "plain",
        "x" * 255,
        "\N{SNOWMAN}" * 85,
        "with space\n",
        os.fsencode("bytes"),
        Path("path"),
        "\udcff",
    ]
    for name in names:
        save_new(name)
        assert load(name).metadata == {"age": "new"}
    assert len(list(tmp_path.iterdir())) == len(names)


def test_permissions_are_kept(path: Path) -> None:
    umask = os.umask(0o027)
    try:
        save_new(path)
        assert path.stat().st_mode & 0o777 == 0o640
        for mode in (0o600, 0o666, 0o644):
            path.chmod(mode)
            save_new(path)
            assert path.stat().st_mode & 0o777 == mode
    finally:
        os.umask(umask)


PROTECTED = """
import os, ocdl
from ocdl.files import save
net = ocdl.Network(1, 1)
u = net.init(random_state=0)
if os.geteuid() == 0:
    os.setuid(65534)  # nobody: root may write everywhere
for path in {paths!r}:
    try:
        save(path, net, u)
    except PermissionError as error:
        print(error)
"""


def test_protected_files_stay_unchanged() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / "locked" / "model", folder / "open" / "model"]
        for path in paths:
            path.parent.mkdir()
        paths[1].write_text("old")
        paths[1].chmod(0o444)
        paths[0].parent.chmod(0o555)
        paths[1].parent.chmod(0o777)
        folder.chmod(0o755)
        printed = run_python(PROTECTED.format(paths=[str(path) for path in paths])).splitlines()
        assert printed == [f"[Errno 13] Permission denied: {str(path)!r}" for path in paths]
        assert not paths[0].exists()
        assert paths[1].read_text() == "old"
        assert list(paths[1].parent.iterdir()) == [paths[1]]
        paths[0].parent.chmod(0o755)


READER = """
import os, ocdl
net = ocdl.Network(1, 1)
u = net.init(random_state=0)
X, y = [[0.0], [1.0]], [0, 1]
classifier = ocdl.ODEClassifier  # imported by a user who may read the library
if os.geteuid() == 0:
    os.setuid(65534)
for call in (
    lambda: ocdl.load({secret!r}),
    lambda: ocdl.load({secret!r}, classifier),
    lambda: ocdl.train(net, u, X, y, checkpoint=ocdl.Checkpoint({secret!r}, resume=True)),
    lambda: ocdl.train(net, u, X, y, checkpoint={folder!r} + "/state"),
):
    try:
        call()
    except PermissionError as error:
        print(error)
"""


def test_values_that_a_file_cannot_hold_are_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, secret = Path(name), Path(name, "secret")
        save_new(secret)
        secret.chmod(0o000)
        folder.chmod(0o755)
        printed = run_python(READER.format(secret=str(secret), folder=name)).splitlines()
        refused = [str(secret)] * 3 + [f"{name}/state"]
        assert printed == [f"[Errno 13] Permission denied: {path!r}" for path in refused]
        assert list(folder.iterdir()) == [secret]


def test_a_checkpoint_on_a_full_disk_keeps_the_old_one(path: Path) -> None:
    net = Network(2, 10)
    u, X, y = net.init(random_state=0), [[0.0, 1.0], [1.0, 0.0]], [0, 1]
    ocdl.train(net, u, X, y, max_iter=3, checkpoint=path)
    old = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=f"File too large: {str(path)!r}"):
            ocdl.train(net, u, X, y, max_iter=6, checkpoint=ocdl.Checkpoint(path, resume=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_strange_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path means what it means to the system: no wildcard, no variable, no home, no scheme; no zero byte."""
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    for name in ("~", "$HOME", "*", "%s", "file:x", "-", "..."):
        save_new(Path(name))
        assert load(name).metadata == {"age": "new"}
        assert (tmp_path / "inside" / name).is_file()
    save_new(Path("../inside/../outside"))
    assert load(tmp_path / "outside").metadata == {"age": "new"}
    for call in (load, save_new):
        with pytest.raises(ValueError, match="null"):
            call("model\0.ocdl")  # type: ignore[arg-type]
    assert len(list(tmp_path.iterdir())) == 2


NETWORK = """
import sys
import ocdl
from ocdl.files import save
net = ocdl.Network(2, 3)
u = net.init(random_state=0)
"""
WRITER = """
for i in range(int(sys.argv[2])):
    save(sys.argv[1], net, u, i=i)
"""


def writing(path: Path, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", NETWORK + WRITER, str(path), str(count)])


def test_writers_at_the_same_time_leave_one_whole_file(path: Path) -> None:
    writers = [writing(path, 100) for _ in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert load(path).metadata == {"i": 99}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.slow
def test_a_killed_writer_leaves_a_whole_file(path: Path, old: bytes, soak: Soak) -> None:
    with Forks(NETWORK, WRITER) as writer:
        for i in range(soak.times(500, least=3)):
            writer.start(str(path), str(10**9))
            while path.read_bytes() == old:
                time.sleep(0.001)
            time.sleep(i % 50 / 1000)
            assert writer.kill() == -signal.SIGKILL
            assert load(path).metadata["i"] >= 0
            path.write_bytes(old)
    save_new(path)
    assert list(path.parent.iterdir()) == [path]


STOPPED = """
import os, time
from ocdl.storage import disk
def stop(source, target):
    print("stopped", flush=True)
    time.sleep(1000)
os.replace = stop
disk.replace_file({path!r}, b"new")
"""


def test_leftovers_of_killed_writers_are_removed_and_files_of_running_ones_are_not(path: Path, old: bytes) -> None:
    with subprocess.Popen([sys.executable, "-c", STOPPED.format(path=str(path))], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"stopped\n"
        others = [
            path.with_name(name) for name in (".model.ocdl.mine", ".model.ocdl." + "0" * 15, ".other." + "0" * 16)
        ]
        for other in others:
            other.touch()
        kept = {path, *others}
        (path.parent / (".model.ocdl." + "1" * 16)).symlink_to(path)
        (path.parent / (".model.ocdl." + "2" * 16)).mkdir()
        kept |= {path.parent / (".model.ocdl." + digit * 16) for digit in "12"}
        save_new(path)
        assert len(set(path.parent.iterdir()) - kept) == 1  # that of the writer, who is alive
        writer.kill()
    save_new(path)
    assert set(path.parent.iterdir()) == kept


def test_a_file_that_was_taken_for_a_leftover_is_made_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process removes it in the moment between its making and its locking."""
    lock, removed = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        if not removed:
            removed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.unlink(removed[0])
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    save_new(path)
    assert len(removed) == 1
    assert load(path).metadata == {"age": "new"}
    assert list(path.parent.iterdir()) == [path]


def test_a_file_system_without_locks(path: Path, old: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    leftover = path.with_name(".model.ocdl." + "0" * 16)
    leftover.touch()
    monkeypatch.setattr(fcntl, "flock", fail)
    save_new(path)
    assert load(path).metadata == {"age": "new"}
    assert leftover.exists()  # its owner is unknown
