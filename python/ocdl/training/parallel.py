"""Several trainings in parallel, each on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from threading import Event, Lock
from typing import TypeVar

from ocdl.base.threads import limit_threads
from ocdl.training.watching import TrainingState

Name = TypeVar("Name")
Outcome = TypeVar("Outcome")
ShouldStop = Callable[[], bool]


def run_parallel(
    runs: Mapping[Name, Callable[[ShouldStop], Outcome]], jobs: int, backend: str | None = None
) -> Iterator[tuple[Name, Outcome]]:
    """Yield the name and the result of each run, in the order in which they end.

    `jobs` of them run at a time, each on one thread: for small problems this is faster than one after the other on all
    threads, and the bits are the same. Each run receives a function that returns True once the run should end, after an
    exception in the caller, such as KeyboardInterrupt, or in another run; use it in the callback for `train`. The runs
    use threads of this process, or, with a `backend` of joblib such as "loky" or "dask", other processes, which joblib
    ends itself.
    """
    if backend is not None:
        yield from _run_in_processes(runs, jobs, backend)
        return
    stop = Event()
    with ThreadPoolExecutor(jobs) as pool:
        names = {pool.submit(_run_on_one_thread, run, stop.is_set): name for name, run in runs.items()}
        try:
            for finished in as_completed(names):
                yield names[finished], finished.result()
        finally:
            for future in names:
                future.cancel()  # first, so that no run begins when another one ends
            stop.set()  # leaving the pool waits for the runs at work


def _run_on_one_thread(run: Callable[[ShouldStop], Outcome], should_stop: ShouldStop) -> Outcome:
    with limit_threads(1):
        return run(should_stop)


def _run_in_processes(
    runs: Mapping[Name, Callable[[ShouldStop], Outcome]], jobs: int, backend: str
) -> Iterator[tuple[Name, Outcome]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend=backend, n_jobs=jobs):
        parallel = Parallel(return_as="generator_unordered", pre_dispatch="all", batch_size=1)
        yield from parallel(delayed(_run_named)(name, run) for name, run in runs.items())


def _run_named(name: Name, run: Callable[[ShouldStop], Outcome]) -> tuple[Name, Outcome]:
    return name, _run_on_one_thread(run, _never_stop)


def _never_stop() -> bool:
    return False


@contextmanager
def shared_progress(
    iterations: int, *, shown: bool
) -> Iterator[Callable[[ShouldStop], Callable[[TrainingState], bool]]]:
    """Show one progress bar for several trainings; yield a function that makes the callback of each of them."""
    from tqdm.auto import tqdm

    lock = Lock()
    with tqdm(total=iterations, unit="it", desc="training", disable=not shown) as bar:

        def make_callback(should_stop: ShouldStop) -> Callable[[TrainingState], bool]:
            last_iteration = 0

            def update(state: TrainingState) -> bool:
                nonlocal last_iteration
                with lock:
                    bar.update(state.iteration - last_iteration)
                last_iteration = state.iteration
                return should_stop()

            return update

        yield make_callback
