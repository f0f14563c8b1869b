"""Open files without blocking, and replace them atomically."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from contextlib import suppress
from typing import BinaryIO


def open_nonblocking(name: str, flags: int) -> int:
    """Open a file without blocking: a pipe without a writer would block."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def replace_file(path: str, *chunks: bytes | memoryview) -> None:
    """Write a temporary file, flush it to the disk and rename it to `path`."""
    mode = _read_mode(path)
    folder, name = os.path.split(os.path.realpath(path))
    beginning = os.fsdecode(os.fsencode(name)[:200])  # file systems end a name at 255 bytes
    _remove_leftovers(folder, beginning)
    temporary = ""
    try:
        with _open_locked_temporary(folder, beginning) as file:
            temporary = file.name
            if mode is not None:
                os.chmod(temporary, mode)
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, os.path.join(folder, name))  # before the lock ends
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), path) from error
        raise
    with suppress(OSError):  # the file is complete; some systems cannot flush a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _open_locked_temporary(folder: str, beginning: str) -> BinaryIO:
    """Create and lock a temporary file; the lock protects it from removal as a leftover."""
    while True:
        file = open(os.path.join(folder, f".{beginning}.{secrets.token_hex(8)}"), "xb")  # noqa: SIM115
        with suppress(OSError):  # some file systems have no locks; leftovers stay there
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if os.path.lexists(file.name):
            return file
        file.close()  # removed as a leftover before it was locked


def _remove_leftovers(folder: str, beginning: str) -> None:
    """Remove the unlocked temporary files that killed processes left."""
    pattern = re.compile(re.escape(f".{beginning}.") + "[0-9a-f]{16}")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "rb", opener=open_nonblocking) as file:
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def _read_mode(path: str) -> int | None:
    """Return the permissions of the file to replace, None if it does not exist; refuse anything but a file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.basename(path):
            return None
        mode = stat.S_IFDIR
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return stat.S_IMODE(mode)
