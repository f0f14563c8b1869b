"""Multilevel training: first few layers, then more of them, from the refined controls on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.depth.refinement import INTERPOLATIONS
from ocdl.model.controls import Controls
from ocdl.network import Network
from ocdl.streaming.source import Rows
from ocdl.training.loop import DEFAULT_OPTIMISER, KEYWORDS_OF_OTHERS, train
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
        Their trainings. Fewer than there are levels if one of them was asked to stop.
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


@known_keywords(KEYWORDS_OF_OTHERS, also=train)
def train_multilevel(
    net: Network,
    u: Controls | None,
    X: ArrayLike | Rows,
    y: Any = None,
    *,
    levels: int | Sequence[int] = 3,
    optimiser: Optimiser | Chain | Sequence[Optimiser | Chain] = DEFAULT_OPTIMISER,
    max_iter: int | Sequence[int] = 1000,
    interpolation: str = "constant",
    random_state: Any = None,
    **options: Any,
) -> MultilevelResult:
    """Train a network with few layers, refine it, go on, until it has the layers of `net`.

    An iteration on few layers is cheap, and the flow that they find is a good start for more of them.

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
        Numbers of layers, increasing, the last one that of `net`; or how many levels, each with half as many layers as
        the next.
    optimiser : optimiser or sequence of optimisers
        For all levels, or one for each: what finds its way on few layers need not be what ends best on many.
    max_iter : int or sequence of int
        Iterations at most on each level.
    interpolation : {"linear", "constant"}
        How controls become those of the next level; where its layers are a multiple by `Network.refine`, which keeps
        learned steps, else by `Network.resample`. "constant" keeps the ODE, so that the loss changes little.
    random_state : None, int, numpy Generator or RandomState
        The source of the first controls and of random batches.
    **options
        Everything else that `train` takes, but no checkpoints. `freeze` and `validation` hold on all levels.

    Returns
    -------
    MultilevelResult

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit, the network is feed-forward, or a checkpoint is asked for.
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
    for name in ("checkpoint", "checkpoint_every", "resume"):
        if options.get(name) is not None:
            raise ValueError(f"{name} is not taken: a checkpoint holds the training of one network, not of several")
    interpolation = validation.choice(interpolation, "interpolation", INTERPOLATIONS)
    layers = _levels(levels, net.n_layers)
    iterations = _iterations(max_iter, len(layers))
    optimisers = _optimisers(optimiser, len(layers))
    coarse = replace(net, n_layers=layers[0])
    if u is None:
        controls = coarse.init(random_state=random_state)
    else:
        coarse, controls = _with_layers(net, u, layers[0], interpolation)
    networks, results = [coarse], []
    for level, (most, method) in enumerate(zip(iterations, optimisers, strict=True)):
        if level > 0:
            finer, controls = _with_layers(networks[-1], controls, layers[level], interpolation)
            networks.append(finer)
        how = {"optimiser": method, "max_iter": most, "random_state": random_state}
        results.append(train(networks[-1], controls, X, y, **how, **options))
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
        count = validation.integer(levels, "levels", least=1)
        if finest < 2 ** (count - 1):
            raise ValueError(f"levels must be at most {finest.bit_length()} for {finest} layers, got {count}")
        return [finest // 2**k for k in reversed(range(count))]
    layers = [validation.integer(n, f"levels[{i}]", least=1) for i, n in enumerate(levels)]
    if not layers or layers[-1] != finest or any(a >= b for a, b in pairwise(layers)):
        raise ValueError(f"levels must increase and end with the {finest} layers of the network, got {levels!r}")
    return layers


def _iterations(max_iter: int | Sequence[int], levels: int) -> list[int]:
    if not isinstance(max_iter, Sequence):
        return [validation.integer(max_iter, "max_iter", least=0)] * levels
    if len(max_iter) != levels:
        raise ValueError(f"max_iter has {len(max_iter)} entries but there are {levels} levels")
    return [validation.integer(n, f"max_iter[{i}]", least=0) for i, n in enumerate(max_iter)]


def _optimisers(optimiser: Optimiser | Chain | Sequence[Optimiser | Chain], levels: int) -> Sequence[Optimiser | Chain]:
    if not isinstance(optimiser, Sequence):
        return [optimiser] * levels
    if len(optimiser) != levels:
        raise ValueError(f"optimiser has {len(optimiser)} entries but there are {levels} levels")
    return optimiser
