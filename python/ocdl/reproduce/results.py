"""The outcomes of finished runs, by experiment, data set, network and seed."""

from __future__ import annotations

from collections.abc import Iterable

from ocdl.reproduce.runs import EXPERIMENTS, Data, Run, load_data
from ocdl.reproduce.store import Outcome


class Results:
    """Outcomes by experiment, data set, network and seed."""

    def __init__(self, mnist: str | None = None) -> None:
        self._mnist = mnist
        self._outcomes: dict[tuple[str, str, str, int], Outcome] = {}

    def add(self, outcome: Outcome) -> None:
        """Add an outcome."""
        run = outcome.run
        self._outcomes[run.experiment, run.dataset, run.network, run.seed] = outcome

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, run: Run) -> bool:
        return (run.experiment, run.dataset, run.network, run.seed) in self._outcomes

    def get(self, experiment: str, dataset: str, network: str, seed: int) -> Outcome:
        """Return one outcome; raise a KeyError if it is missing."""
        return self._outcomes[experiment, dataset, network, seed]

    def networks(self, experiment: str, dataset: str, seed: int) -> dict[str, Outcome]:
        """Return the outcomes of all networks of a comparison, by their names; empty unless all are available."""
        keys = {name: (experiment, dataset, name, seed) for name in EXPERIMENTS[experiment].networks}
        if any(key not in self._outcomes for key in keys.values()):
            return {}
        return {name: self._outcomes[key] for name, key in keys.items()}

    def seeds(self, experiment: str, dataset: str) -> list[int]:
        """Return the seeds for which all networks are available."""
        seeds = {key[3] for key in self._outcomes if key[:2] == (experiment, dataset)}
        return sorted(seed for seed in seeds if self.networks(experiment, dataset, seed))

    def cases(self, experiment: str, datasets: Iterable[str]) -> list[tuple[str, int]]:
        """Return the pairs of data set and seed for which all networks are available."""
        return [(dataset, seed) for dataset in datasets for seed in self.seeds(experiment, dataset)]

    def data(self, experiment: str, dataset: str) -> Data:
        """Return the data of an experiment."""
        return load_data(dataset, EXPERIMENTS[experiment].samples, self._mnist)
