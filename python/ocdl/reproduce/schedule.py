"""Many trainings side by side; what is finished is kept, whatever happens to the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed

from ocdl.base.threads import limited_threads
from ocdl.reproduce.runs import Run
from ocdl.reproduce.store import Outcome, Store
from ocdl.training.loop import Status, Stop


def outcomes(runs: Iterable[Run], store: Store, jobs: int, mnist: str | None = None) -> Iterator[Outcome]:
    """Yield the outcome of every run as soon as it is there: first those in the store, then the trained ones.

    The trainings share `jobs` threads, one each. An exception in the caller, Ctrl-C above all, or in a training stops
    the others; finished ones are in the store.
    """
    missing = []
    for run in runs:
        kept = store.load(run)
        if kept is None:
            missing.append(run)
        else:
            yield kept
    stop = Stop()
    with ThreadPoolExecutor(jobs) as pool:
        futures: list[Future[Outcome]] = [pool.submit(_trained, run, store, stop, mnist) for run in missing]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            stop.request()
            for future in futures:
                future.cancel()


def _trained(run: Run, store: Store, stop: Stop, mnist: str | None) -> Outcome:
    data = run.data(mnist)
    with limited_threads(1):
        result = run.train(data, stop)
        if result.status is Status.INTERRUPTED:
            raise CancelledError
        outcome = Outcome.of(run, result, data)
    store.save(outcome)
    return outcome
