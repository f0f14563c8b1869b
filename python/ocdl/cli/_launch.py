"""Commands that mpiexec or srun starts on several ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ocdl.cli._output import UserError
from ocdl.distributed.collectives import RankError
from ocdl.storage.container import ModelFileError
from ocdl.tables.frame import TableError

# Environment variables of launchers: MPICH and others, Open MPI, Slurm's srun (sbatch alone sets none).
COUNTS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def world() -> Any:
    """Return the communicator of all ranks, or None if there is one process."""
    n_launched = max((int(count) for name in COUNTS if (count := os.environ.get(name, "")).isdecimal()), default=1)
    if n_launched < 2:
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UserError(
            f"to run on {n_launched} ranks, ocdl needs mpi4py and an MPI library: pip install 'ocdl[mpi]' "
            f"({error!s:.200})"
        ) from error
    communicator = MPI.COMM_WORLD
    if communicator.size < n_launched and communicator.size == 1:
        raise UserError(
            f"the launcher started {n_launched} ranks, but MPI reports one: mpiexec and the MPI library of mpi4py "
            "belong to different installations"
        )
    return communicator if communicator.size > 1 else None


@contextmanager
def report_on_root(communicator: Any) -> Iterator[bool]:
    """Report errors of all ranks on the root only; yield whether this is the root."""
    is_root = communicator is None or communicator.rank == 0
    try:
        yield is_root
    except TimeoutError as error:
        raise UserError(str(error)) from error
    except RankError as error:
        raise (UserError(str(error)) if is_root else SystemExit(2)) from error
    except (UserError, TableError, ModelFileError, OSError, KeyboardInterrupt):
        if is_root:
            raise
        raise SystemExit(2) from None
