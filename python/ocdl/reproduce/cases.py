"""The comparisons behind the claims of the paper, each with its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ocdl.model.objective import predict_class
from ocdl.reproduce import measures
from ocdl.reproduce.results import Results
from ocdl.reproduce.runs import DATASETS, EXPERIMENTS, METHODS, MNIST
from ocdl.reproduce.store import Outcome

ODE_NETWORKS = ("ResNet", "ODENet", "ODENet+Simplex")


@dataclass(frozen=True)
class Case:
    """One comparison: its group, its data set and seed, whether the claim holds, and the numbers."""

    group: str
    where: str
    holds: bool
    numbers: dict[str, float]


def _final_losses(networks: dict[str, Outcome]) -> dict[str, float]:
    return {name: float(outcome.history.loss[-1]) for name, outcome in networks.items()}


def _architectures(results: Results) -> Iterator[tuple[str, str, dict[str, Outcome]]]:
    """Yield data set, description and outcomes of each comparison of the four architectures."""
    for dataset, seed in results.cases("architectures", DATASETS):
        yield dataset, f"{dataset}, seed {seed}", results.networks("architectures", dataset, seed)


def final_rankings(results: Results) -> Iterator[Case]:
    """Check whether Net ends with a larger loss and a lower test accuracy than each of the others."""
    for dataset, where, networks in _architectures(results):
        losses = _final_losses(networks)
        best = {name: float(outcome.history.val_accuracy[-1]) for name, outcome in networks.items()}
        numbers = {f"loss of {name}": loss for name, loss in losses.items()}
        numbers |= {f"test accuracy of {name}": accuracy for name, accuracy in best.items()}
        worse = all(losses["Net"] > losses[name] and best["Net"] < best[name] for name in ODE_NETWORKS)
        yield Case(dataset, where, worse, numbers)


def early_and_final_losses(results: Results) -> Iterator[Case]:
    """Check whether ODENet has the lowest loss after 1 % of the iterations, and ResNet a lower one at the end."""
    for dataset, where, networks in _architectures(results):
        early = max(1, len(networks["Net"].history) // 100)
        at_first = {name: float(outcome.history.loss[early]) for name, outcome in networks.items()}
        at_end = _final_losses(networks)
        leads = at_first["ODENet"] == min(at_first.values())
        overtaken = at_end["ResNet"] < at_end["ODENet"]
        numbers = {
            "ODENet is lowest after 1 % of the iterations": float(leads),
            "ResNet is below ODENet at the end": float(overtaken),
            "loss of ODENet over ResNet, early": at_first["ODENet"] / at_first["ResNet"],
            "loss of ODENet over ResNet, at the end": at_end["ODENet"] / at_end["ResNet"],
        }
        yield Case(dataset, where, leads and overtaken, numbers)


def final_loss_ratios(results: Results) -> Iterator[Case]:
    """Check whether the final losses of the three ODE networks are within a factor of two."""
    for dataset, where, networks in _architectures(results):
        losses = [_final_losses(networks)[name] for name in ODE_NETWORKS]
        ratio = max(losses) / min(losses)
        yield Case(dataset, where, ratio <= 2, {"largest over smallest loss": ratio})


def generalisation_gaps(results: Results) -> Iterator[Case]:
    """Check whether accuracy and loss on the test data are close to those on the training data."""
    for dataset, where, networks in _architectures(results):
        for name, outcome in networks.items():
            history = outcome.history
            gap = float(history.accuracy[-1] - history.val_accuracy[-1])
            ratio = float(history.val_loss[-1] / history.loss[-1])
            numbers = {"accuracy gap": gap, "test over training loss": ratio}
            yield Case(dataset, f"{name} on {where}", gap <= 0.02 and ratio <= 2, numbers)


def step_signs(results: Results) -> Iterator[Case]:
    """Check whether ODENet has steps of both signs, none zero, larger than T/N in the mean."""
    for dataset, where, networks in _architectures(results):
        h, fixed = networks["ODENet"].steps, networks["ResNet"].steps
        size = float(np.abs(h).mean() / fixed.mean())
        numbers = {
            "negative steps": float(np.sum(h < 0)),
            "zero steps": float(np.sum(h == 0)),
            "mean size over T/N": size,
        }
        yield Case(dataset, where, bool(h.min() < 0 < h.max() and size > 1 and np.all(h != 0)), numbers)


def step_counts(results: Results) -> Iterator[Case]:
    """Check whether two or three steps of ODENet+Simplex remain."""
    for dataset, where, networks in _architectures(results):
        kept = int(np.count_nonzero(networks["ODENet+Simplex"].steps))
        yield Case(dataset, where, kept in (2, 3), {"steps kept": float(kept)})


def point_spreads(results: Results) -> Iterator[Case]:
    """Check whether ODENet has the largest spread and band, but not the spread if the classifier is fixed."""
    for dataset, seed in results.cases("fixed_classifier", EXPERIMENTS["fixed_classifier"].iterations):
        trained = results.networks("architectures", dataset, seed)
        if not trained:
            continue
        fixed = results.networks("fixed_classifier", dataset, seed)
        data = results.data("architectures", dataset)
        far, far_fixed = (
            {name: measures.spread(networks[name], data) for name in ODE_NETWORKS} for networks in (trained, fixed)
        )
        band = {name: measures.band_width(trained[name]) for name in ODE_NETWORKS}
        others = ("ResNet", "ODENet+Simplex")
        out = all(far["ODENet"] > far[name] and band["ODENet"] > band[name] for name in others)
        calm = far_fixed["ODENet"] <= 1.5 * max(far_fixed[name] for name in others)
        numbers = {f"spread of {name}": value for name, value in far.items()}
        numbers |= {f"spread of {name}, W fixed": value for name, value in far_fixed.items()}
        numbers |= {f"band of {name}": value for name, value in band.items()}
        yield Case(dataset, f"{dataset}, seed {seed}", out and calm, numbers)


def cloud_thicknesses(results: Results) -> Iterator[Case]:
    """Check whether Net and ODENet squeeze the cloud, and ResNet and ODENet+Simplex do not."""
    for dataset, where, networks in _architectures(results):
        data = results.data("architectures", dataset)
        thick = {name: measures.thickness(measures.final_states(outcome, data.X)) for name, outcome in networks.items()}
        squeezed = max(thick["Net"], thick["ODENet"]) < 0.25
        kept = min(thick["ResNet"], thick["ODENet+Simplex"]) >= 0.25
        yield Case(dataset, where, squeezed and kept, {f"thickness of {name}": value for name, value in thick.items()})


def region_counts(results: Results) -> Iterator[Case]:
    """Check whether the classifiers of two seeds divide the surroundings of the data into equally many regions."""
    for dataset in DATASETS:
        data = results.data("architectures", dataset)
        for seed, following in pairwise(results.seeds("architectures", dataset)):
            ours, others = (results.networks("architectures", dataset, s) for s in (seed, following))
            for name in ours:
                first, second = (measures.regions(networks[name], data) for networks in (ours, others))
                numbers = {"regions, first seed": float(sum(first)), "regions, second seed": float(sum(second))}
                yield Case(dataset, f"{name} on {dataset}, seeds {seed} and {following}", first == second, numbers)


def transformation_distances(results: Results) -> Iterator[Case]:
    """Check whether two Runge-Kutta methods move the points to similar places."""
    for dataset, seed in results.cases("runge_kutta", DATASETS):
        data = results.data("runge_kutta", dataset)
        networks = results.networks("runge_kutta", dataset, seed)
        for one, other in combinations(METHODS, 2):
            apart = measures.distance(networks[one], networks[other], data)
            agree = _agreement(networks[one], networks[other], data.X_test)
            numbers = {"distance over displacement": apart, "equal predictions on test data": agree}
            pair = f"{one} and {other}"
            yield Case(pair, f"{pair} on {dataset}, seed {seed}", apart <= 0.5, numbers)


def _agreement(one: Outcome, other: Outcome, X: Any) -> float:
    """Return the fraction of samples for which two networks predict the same class."""
    classes = [predict_class(net.predict(u, X)) for net, u in (one.model, other.model)]
    return float(np.mean(classes[0] == classes[1]))


def digit_accuracies(results: Results) -> Iterator[Case]:
    """Check whether an ODE network classifies nearly all images of both sets."""
    for _, seed in results.cases(MNIST, (MNIST,)):
        for name in ODE_NETWORKS:
            history = results.get(MNIST, MNIST, name, seed).history
            on_training, on_test = float(history.accuracy[-1]), float(history.val_accuracy[-1])
            numbers = {"training accuracy": on_training, "test accuracy": on_test}
            yield Case(name, f"{name}, seed {seed}", on_training >= 0.99 and on_test >= 0.95, numbers)
