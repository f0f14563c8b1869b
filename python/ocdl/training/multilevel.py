"""Multilevel training: first with few layers, then with more, each level from the refined controls of the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.data.row_source import Rows
from ocdl.depth.refinement import INTERPOLATIONS
from ocdl.model.controls import Controls
from ocdl.model.inputs import refuse_inputs
from ocdl.model.observations import Observations
from ocdl.network import Network
from ocdl.training.loop import FOREIGN_KEYWORDS, train
from ocdl.training.optimisers import Chain, Optimiser
from ocdl.training.result import Result, Status

__all__ = ["MultilevelResult", "train_multilevel"]


@dataclass(frozen=True, eq=False)
class MultilevelResult:
    """What a multilevel training returns.

    Attributes
    ----------
    networks : tuple of Network
        From few layers to many.
    results : tuple of Result
        Their trainings; fewer than levels if a callback ended one of them.
    network, controls
        Those of the last level.
    status, message
        Of the last level: why it ended.
    n_iter : int
        Iterations on all levels.
    work : float
        Evaluations of the objective with its gradient, counted in evaluations of the finest network: one of a network
        with half as many layers counts half.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 8)
    >>> r = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=10, random_state=0)
    >>> [level.n_layers for level in r.networks], [result.n_iter for result in r.results], r.work < 30
    ([4, 8], [10, 10], True)
    """

    networks: tuple[Network, ...]
    results: tuple[Result, ...]
    work: float

    @property
    def network(self) -> Network:
        """The finest network.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 8)
        >>> r = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=10, random_state=0)
        >>> r.network == net
        True
        """
        return self.networks[-1]

    @property
    def controls(self) -> Controls:
        """The controls of the last level.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 8)
        >>> r = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=10, random_state=0)
        >>> r.controls.K.shape
        (8, 2, 2)
        """
        return self.results[-1].controls

    @property
    def status(self) -> Status:
        """Why the last level ended.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 8)
        >>> r = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=10, random_state=0)
        >>> r.status.name
        'ITERATION_LIMIT'
        """
        return self.results[-1].status

    @property
    def message(self) -> str:
        """Why the last level ended, with the numbers.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 8)
        >>> r = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=10, random_state=0)
        >>> r.message == r.results[-1].message
        True
        """
        return self.results[-1].message

    @property
    def n_iter(self) -> int:
        """Iterations on all levels.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 8)
        >>> r = ocdl.train_multilevel(net, None, X, y, levels=(4, 8), max_iter=10, random_state=0)
        >>> r.n_iter
        20
        """
        return sum(result.n_iter for result in self.results)


@known_keywords(FOREIGN_KEYWORDS, forwards_to=train)
def train_multilevel(
    net: Network,
    u: Controls | None,
    X: ArrayLike | Rows,
    y: Any = None,
    *,
    levels: int | Sequence[int] = 3,
    optimiser: Optimiser | Chain | Sequence[Optimiser | Chain] | None = None,
    max_iter: int | Sequence[int] = 1000,
    interpolation: str = "constant",
    random_state: Any = None,
    **options: Any,
) -> MultilevelResult:
    """Train a network with few layers, refine it and train again, until it has the layers of `net`.

    An iteration on few layers is cheap, and their flow is a good start for more layers.

    Parameters
    ----------
    net : Network
        The finest network; with time steps (``residual=True``).
    u : Controls or None
        Controls of `net`, which are resampled to the coarsest level; None: `Network.init` of the coarsest network.
    X : array_like of shape (samples, features)
    y : array_like of shape (samples,) or (samples, outputs)
        As for `train`.
    levels : int or sequence of int
        Numbers of layers, increasing, the last one that of `net`; or the number of levels, each with half as many
        layers as the next. With control intervals the first level must have more layers than intervals.
    optimiser : optimiser or sequence of optimisers
        For all levels, or one for each.
    max_iter : int or sequence of int
        The maximum number of iterations on each level, or one number for each.
    interpolation : {"linear", "constant"}
        How the controls of the next level are computed: by `Network.refine`, which keeps learned steps, if its number
        of layers is a multiple, else by `Network.resample`. "constant" keeps the ODE, so that the loss changes little.
    random_state : None, int, numpy Generator or RandomState
        The source of the first controls and of random batches.
    **options
        All other arguments of `train`, except `checkpoint`. `freeze` and `validation` apply on all levels.

    Returns
    -------
    MultilevelResult

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, the network is feed-forward, or `checkpoint` is given.
    FloatingPointError
        If the objective is not finite at the start of a level.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut2d(300, random_state=0)
    >>> net = ocdl.Network.preset("resnet", 2, 20)
    >>> r = ocdl.train_multilevel(net, None, X, y, levels=(5, 10, 20), max_iter=100, random_state=0)
    >>> [result.n_iter for result in r.results], r.network.n_layers
    ([100, 100, 100], 20)
    >>> r.work < 0.65 * sum(result.n_evals for result in r.results)
    True
    """
    if not isinstance(net, Network):
        raise TypeError(f"net must be a Network, got {type(net).__name__}")
    if not net.residual:
        raise ValueError("net must have time steps: a feed-forward network (residual=False) cannot be refined")
    if options.get("checkpoint") is not None:
        raise ValueError("checkpoint must be left out: it holds the training of one network, not of several")
    interpolation = validation.choice(interpolation, "interpolation", INTERPOLATIONS)
    refuse_inputs(net, "train_multilevel")
    layers = _levels(levels, net.n_layers)
    iterations = _iterations(max_iter, len(layers))
    optimisers = _optimisers(optimiser, len(layers))
    intervals = None if net.control_intervals is None else net.parts[0].shape[0]
    if intervals is not None and layers[0] <= intervals:
        raise ValueError(
            f"levels must begin with more layers than the {intervals} control intervals of the network, got {layers[0]}"
        )
    coarse = replace(net, n_layers=layers[0], control_intervals=intervals)
    if u is None:
        controls = coarse.init(random_state=random_state)
    else:
        coarse, controls = _with_layers(net, u, layers[0], interpolation)
    if isinstance(y, Observations) and (net.time_steps != "fixed" or not net.residual):
        raise ValueError(
            "train_multilevel does not take Observations where times are numbers of layers, which levels change"
        )
    networks, results = [coarse], []
    for level, (count, method) in enumerate(zip(iterations, optimisers, strict=True)):
        if level > 0:
            finer, controls = _with_layers(networks[-1], controls, layers[level], interpolation)
            networks.append(finer)
        settings = {"optimiser": method, "max_iter": count, "random_state": random_state}
        results.append(train(networks[-1], controls, X, y, **settings, **options))
        controls = results[-1].controls
        if results[-1].status is Status.INTERRUPTED:
            break
    work = sum(r.n_evals * n.n_layers / net.n_layers for r, n in zip(results, networks, strict=True))
    return MultilevelResult(tuple(networks), tuple(results), work)


def _with_layers(net: Network, u: Controls, layers: int, interpolation: str) -> tuple[Network, Controls]:
    if layers % net.n_layers == 0:
        return net.refine(u, layers // net.n_layers, interpolation=interpolation)
    return net.resample(u, layers, interpolation=interpolation)


def _levels(levels: int | Sequence[int], finest: int) -> list[int]:
    if not isinstance(levels, Sequence):
        count = validation.integer(levels, "levels", minimum=1)
        if finest < 2 ** (count - 1):
            raise ValueError(f"levels must be at most {finest.bit_length()} for {finest} layers, got {count}")
        return [finest // 2**k for k in reversed(range(count))]
    layers = [validation.integer(n, f"levels[{i}]", minimum=1) for i, n in enumerate(levels)]
    if not layers or layers[-1] != finest or any(a >= b for a, b in pairwise(layers)):
        raise ValueError(f"levels must increase and end with the {finest} layers of the network, got {levels!r}")
    return layers


def _iterations(max_iter: int | Sequence[int], levels: int) -> list[int]:
    if not isinstance(max_iter, Sequence):
        return [validation.integer(max_iter, "max_iter", minimum=0)] * levels
    if len(max_iter) != levels:
        raise ValueError(f"max_iter has {len(max_iter)} entries but there are {levels} levels")
    return [validation.integer(n, f"max_iter[{i}]", minimum=0) for i, n in enumerate(max_iter)]


def _optimisers(
    optimiser: Optimiser | Chain | Sequence[Optimiser | Chain] | None, levels: int
) -> Sequence[Optimiser | Chain | None]:
    if not isinstance(optimiser, Sequence):
        return [optimiser] * levels
    if len(optimiser) != levels:
        raise ValueError(f"optimiser has {len(optimiser)} entries but there are {levels} levels")
    return optimiser
