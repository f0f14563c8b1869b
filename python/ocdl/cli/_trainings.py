"""Several trainings side by side."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from ocdl.base.threads import get_num_threads, limited_threads
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.training.loop import Result, Stop, train
from ocdl.training.watching import TrainingState

LOOK = 0.1  # seconds between two looks at the trainings

Samples = tuple[FloatArray, LabelArray]


def train_all(
    starts: Mapping[str, tuple[Network, Controls]], data: Samples, test: Samples, *, max_iter: int, progress: bool
) -> dict[str, Result]:
    """Train each network with Algorithm 2 and the paper's constants.

    As many at a time as ocdl has threads, each on one: on small problems that is faster than one after the other on
    all threads, and changes no bit. Ctrl-C ends them all.
    """
    from tqdm.auto import tqdm

    stop = Stop()
    reached = dict.fromkeys(starts, 0)

    def train_one(name: str) -> Result:
        def note(state: TrainingState) -> None:
            reached[name] = state.iteration

        with limited_threads(1):
            return train(*starts[name], *data, validation=test, max_iter=max_iter, callback=note, stop=stop)

    with (
        tqdm(total=max_iter * len(starts), unit="it", desc="training", disable=not progress) as bar,
        ThreadPoolExecutor(min(get_num_threads(), len(starts))) as pool,
    ):
        try:
            trainings = {name: pool.submit(train_one, name) for name in starts}
            waiting = set(trainings.values())
            while waiting:
                done, waiting = wait(waiting, LOOK, FIRST_COMPLETED)
                bar.update(sum(reached.values()) - bar.n)
                for training in done:
                    training.result()  # which raises what it has raised
            return {name: training.result() for name, training in trainings.items()}
        except BaseException:
            stop.request()  # the end of the pool waits for those at work
            raise
