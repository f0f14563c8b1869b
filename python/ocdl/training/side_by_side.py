"""Several trainings side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from ocdl.base.threads import limited_threads
from ocdl.training.result import Stop
from ocdl.training.watching import TrainingState

Name = TypeVar("Name")
Made = TypeVar("Made")


def side_by_side(
    trainings: Mapping[Name, Callable[[Stop], Made]], at_once: int, backend: str | None = None
) -> Iterator[tuple[Name, Made]]:
    """Yield what each training returns, with its name, as soon as it is there.

    So many run at once, each on one thread: on small problems that is faster than one after the other on all threads,
    and changes no bit. An exception in the caller, Ctrl-C above all, or in a training stops the others by the handle
    that each was given; whoever passes it to `train` sees `Status.INTERRUPTED`. They run in threads of this process, or
    in other processes where a backend of joblib is named, "loky" or "dask" say, which ends them itself.
    """
    if backend is not None:
        yield from _elsewhere(trainings, at_once, backend)
        return
    stop = Stop()
    with ThreadPoolExecutor(at_once) as pool:
        names = {pool.submit(_on_one_thread, training, stop): name for name, training in trainings.items()}
        try:
            for done in as_completed(names):
                yield names[done], done.result()
        finally:
            for future in names:
                future.cancel()  # first, so that none begins when another one ends
            stop.request()  # the end of the pool waits for those at work


def _on_one_thread(training: Callable[[Stop], Made], stop: Stop) -> Made:
    with limited_threads(1):
        return training(stop)


def _elsewhere(
    trainings: Mapping[Name, Callable[[Stop], Made]], at_once: int, backend: str
) -> Iterator[tuple[Name, Made]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend=backend, n_jobs=at_once):
        parallel = Parallel(return_as="generator_unordered", pre_dispatch="all", batch_size=1)
        yield from parallel(delayed(_named)(name, training) for name, training in trainings.items())


def _named(name: Name, training: Callable[[Stop], Made]) -> tuple[Name, Made]:
    return name, _on_one_thread(training, Stop())


@contextmanager
def shared_bar(iterations: int, *, shown: bool) -> Iterator[Callable[[], Callable[[TrainingState], None]]]:
    """Show one progress bar for several trainings; what it gives makes a callback for one more of them."""
    from tqdm.auto import tqdm

    lock = Lock()
    with tqdm(total=iterations, unit="it", desc="training", disable=not shown) as bar:

        def for_one_more() -> Callable[[TrainingState], None]:
            reached = 0

            def note(state: TrainingState) -> None:
                nonlocal reached
                with lock:
                    bar.update(state.iteration - reached)
                reached = state.iteration

            return note

        yield for_one_more
