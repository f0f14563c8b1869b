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


def side_by_side(trainings: Mapping[Name, Callable[[Stop], Made]], at_once: int) -> Iterator[tuple[Name, Made]]:
    """Yield what each training returns, with its name, as soon as it is there.

    So many run at once, each on one thread: on small problems that is faster than one after the other on all threads,
    and changes no bit. An exception in the caller, Ctrl-C above all, or in a training stops the others by the handle
    that each was given; whoever passes it to `train` sees `Status.INTERRUPTED`.
    """
    stop = Stop()

    def on_one_thread(training: Callable[[Stop], Made]) -> Made:
        with limited_threads(1):
            return training(stop)

    with ThreadPoolExecutor(at_once) as pool:
        names = {pool.submit(on_one_thread, training): name for name, training in trainings.items()}
        try:
            for done in as_completed(names):
                yield names[done], done.result()
        finally:
            for future in names:
                future.cancel()  # first, so that none begins when another one ends
            stop.request()  # the end of the pool waits for those at work


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
