"""Checkpoints of tests, of which several trainings resume."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import ocdl

_folder = tempfile.TemporaryDirectory()
_numbers = itertools.count()


def resume_copy(path: str | os.PathLike[str]) -> ocdl.Checkpoint:
    """Return a checkpoint to resume from that leaves the file as it is."""
    copy = Path(_folder.name) / str(next(_numbers))
    shutil.copyfile(path, copy)
    return ocdl.Checkpoint(copy, resume=True)
