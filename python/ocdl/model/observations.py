"""Observations of the outputs at times within the horizon, some of them missing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.model.architecture import Architecture
from ocdl.model.losses import LOSSES, Loss

__all__ = ["Observations"]

TOLERANCE = 1e-9  # of the horizon: times that differ by less are equal
FLOAT64 = np.dtype(np.float64)
NO_FIT = (None, None, b"", None)  # of a network, a loss and steps


@known_keywords({"t": "times", "ts": "times", "y": "values", "ys": "values"})
@dataclass(frozen=True, init=False, eq=False)
class Observations:
    """What was observed of each sample, at any times: given in the place of y.

    The value that a network has at a time t is ``W y(t) + mu``. At the time of a layer, ``t_j = h[0] + ... + h[j-1]``,
    y(t) is the state of that layer; between layers it is the cubic polynomial through the states of the nearest four,
    whose error is of the order h^4 where the controls are smooth. The loss of a sample is the sum over what was
    observed of it; the mean of an objective divides by the number of all observed values, weighted, over the number of
    outputs. A custom loss is called with the rows (sample, time) with something observed, NaN where a component is
    missing; its gradients there become 0.

    Where the steps are learned, and in a feed-forward network, times are the numbers of layers, 0 to n_layers.

    Parameters
    ----------
    times : array_like of shape (k,) or (samples, k)
        Increasing times from 0 to the horizon, of all samples or of each one. Those of a sample with fewer of them end
        with NaN, where its values are NaN, too.
    values : array_like of shape (samples, k, outputs), or (samples, k) of one output
        NaN where nothing was observed; of each sample there has to be something. ``y[rows]`` are those of some
        samples.

    Attributes
    ----------
    times : ndarray of shape (k,) or (samples, k)
    values : ndarray of shape (samples, k, outputs)

    Raises
    ------
    TypeError, ValueError
        If an array has another shape, times do not increase, or nothing was observed of a sample.

    Examples
    --------
    A decay y' = -y, of which two series are observed at three times each:

    >>> import numpy as np, ocdl
    >>> times = np.array([[0.1, 0.5, 1.0], [0.2, 0.7, 0.9]])
    >>> X = np.array([[1.0], [2.0]])
    >>> y = ocdl.Observations(times, X * np.exp(-times))
    >>> y.values.shape, len(y)
    ((2, 3, 1), 2)
    >>> net = ocdl.Network(1, 8, tableau="kutta4", activation="identity", control_intervals=1)
    >>> u = net.controls(K=[[[-1.0]]], W=[[1.0]])
    >>> net.value(u, X, y, ocdl.Objective("squared_error")) < 1e-9
    True
    """

    times: FloatArray
    values: FloatArray

    def __init__(self, times: ArrayLike, values: ArrayLike) -> None:
        is_single = getattr(values, "dtype", None) == np.float32
        dtype = np.dtype(np.float32) if is_single else FLOAT64
        given = validation.plain_array(values, "values", dtype)
        if given.ndim == 2:
            given = given[:, :, None]
        if given.ndim != 3 or 0 in given.shape[1:]:
            raise ValueError(
                "values must have shape (samples, times, outputs), or (samples, times) of one output, "
                f"got {given.shape}"
            )
        clock = validation.plain_array(times, "times", FLOAT64)
        if clock.shape not in (given.shape[1:2], given.shape[:2]):
            raise ValueError(
                f"times must have shape {given.shape[1:2]}, (times,), or {given.shape[:2]}, (samples, times), "
                f"for values of shape {given.shape}, got {clock.shape}"
            )
        present = ~np.isnan(given)
        _require_observed(given, present)
        _validate_times(clock, np.asarray(present.any(axis=2)))
        object.__setattr__(self, "times", _read_only(clock))
        object.__setattr__(self, "values", _read_only(given))
        object.__setattr__(self, "_prepared", {})
        object.__setattr__(self, "_last_fit", NO_FIT)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | LabelArray) -> Observations:
        chosen = rows if isinstance(rows, slice) else np.atleast_1d(rows)
        return Observations(self.times if self.times.ndim == 1 else self.times[chosen], self.values[chosen])

    def __repr__(self) -> str:
        whose = "shared" if self.times.ndim == 1 else "own"
        return f"<Observations of {pluralise(len(self), 'sample')} at {self.times.shape[-1]} {whose} times>"

    def _targets(self, net: Architecture, loss: Loss, samples: int, h: FloatArray | None) -> ObservedTargets:
        """Return the targets as the core takes them, for the steps h; None: those of the horizon."""
        if loss.targets == "classes" and not loss.is_custom:
            numbers = ", ".join(repr(name) for name, kind in LOSSES.items() if kind.targets == "numbers")
            raise ValueError(
                f"Observations are real numbers, which the loss {loss.name!r} of labels does not take; "
                f"choose one of {numbers}, as in ocdl.Objective('squared_error')"
            )
        if len(self) != samples:
            raise ValueError(f"y has observations of {pluralise(len(self), 'sample')} but X has {samples}")
        outputs = self.values.shape[2]
        if outputs != net.n_outputs:
            raise ValueError(f"y observes {pluralise(outputs, 'output')} but the network has {net.n_outputs}")
        if net.dtype not in self._cache:
            self._cache[net.dtype] = self._prepare(net.dtype)
        targets = self._cache[net.dtype]
        if not loss.is_custom and targets.smallest < loss.minimum_target:
            raise ValueError(f"y observes {targets.smallest}; this loss takes targets from {loss.minimum_target:g} on")
        require_times(net, self.times, h)
        if h is not None:
            object.__setattr__(self, "_last_fit", (net, loss, h.tobytes(), targets))
        return targets

    def _targets_if_known(self, net: Architecture, loss: Loss, h: FloatArray, X: Any) -> Observations | ObservedTargets:
        """Return the targets if nothing has changed since they were checked last, else the observations themselves."""
        checked_net, checked_loss, steps, targets = self.__dict__["_last_fit"]
        is_known = checked_net is net and checked_loss is loss and steps == h.tobytes()
        return targets if is_known and getattr(X, "shape", ())[:1] == (len(self),) else self

    @property
    def _cache(self) -> dict[np.dtype[Any], ObservedTargets]:
        cache: dict[np.dtype[Any], ObservedTargets] = self.__dict__["_prepared"]
        return cache

    def _prepare(self, dtype: np.dtype[Any]) -> ObservedTargets:
        samples, count, outputs = self.values.shape
        with np.errstate(over="ignore"):
            rows = np.require(self.values, dtype, ["C", "A"]).reshape(samples, count * outputs)
        if np.isinf(rows).any():
            sample, place = np.argwhere(np.isinf(rows))[0]
            index = f"[{sample}, {place // outputs}, {place % outputs}]"
            raise ValueError(
                f"values{index} = {self.values.reshape(samples, -1)[sample, place]} is too large for {dtype}"
            )
        smallest = float(np.nanmin(rows)) if rows.size else math.inf
        if self.times.ndim == 1:
            return ObservedTargets(rows, count, outputs, self.times, smallest)
        own = np.fmax.accumulate(self.times, axis=1).astype(dtype)  # in the place of NaN, where no value is, any time
        return ObservedTargets(np.ascontiguousarray(np.hstack([rows, own])), count, outputs, None, smallest)

    def __getstate__(self) -> dict[str, Any]:
        return {"times": self.times, "values": self.values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _prepared={}, _last_fit=NO_FIT)


@dataclass(frozen=True, eq=False)
class ObservedTargets:
    """Observations as the core takes them: a row of values and, unless all samples share them, times per sample."""

    observed_rows: FloatArray
    count: int  # of times
    outputs: int
    shared_times: NDArray[np.float64] | None
    smallest: float

    def __len__(self) -> int:
        return len(self.observed_rows)

    def __getitem__(self, rows: slice | LabelArray) -> ObservedTargets:
        return replace(self, observed_rows=np.ascontiguousarray(self.observed_rows[rows]))

    @property
    def values(self) -> FloatArray:
        """The values, (samples, times, outputs)."""
        return self.observed_rows[:, : self.count * self.outputs].reshape(len(self), self.count, self.outputs)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.observed_rows.dtype

    def astype(self, dtype: np.dtype[Any], copy: bool = True) -> ObservedTargets:
        """Return the same in another precision."""
        return replace(self, observed_rows=self.observed_rows.astype(dtype, copy=copy))

    def observed_fractions(self) -> NDArray[np.float64]:
        """Return the number of observed values of each sample over the number of outputs."""
        counts: NDArray[np.float64] = (~np.isnan(self.values)).sum(axis=(1, 2)) / self.outputs
        return counts

    def same_times(self, other: ObservedTargets) -> bool:
        """Whether rows of both can stand in one table."""
        return self.count == other.count and self.times_digest() == other.times_digest()

    def times_digest(self) -> bytes:
        """Return what identifies the times that all samples share."""
        return b"own" if self.shared_times is None else self.shared_times.tobytes()


def validate_targets(net: Architecture, loss: Loss, y: Any, samples: int, h: FloatArray | None = None) -> Any:
    """Return the targets of so many samples as the loss takes them, for the steps h; None: those of the horizon."""
    if isinstance(y, Observations):
        return y._targets(net, loss, samples, h)
    return loss._validate_targets(y, samples, net.n_outputs, net.dtype)


def times_as_targets(net: Architecture, times: ArrayLike, samples: int, h: FloatArray) -> ObservedTargets:
    """Return times of so many samples as the core takes them, without values."""
    clock = validation.real_array(times, "times", FLOAT64)
    if clock.ndim not in (1, 2) or clock.shape[-1] == 0 or clock.shape[:-1] not in ((), (samples,)):
        raise ValueError(f"times must have shape (times,) or ({samples}, times), one row per sample, got {clock.shape}")
    _validate_times(clock, np.ones((len(clock) if clock.ndim == 2 else 1, clock.shape[-1]), bool))
    require_times(net, clock, h)
    count = clock.shape[-1]
    if clock.ndim == 1:
        return ObservedTargets(np.zeros((samples, 0), net.dtype), count, net.n_outputs, clock, math.nan)
    return ObservedTargets(np.require(clock, net.dtype, ["C", "A"]), count, net.n_outputs, None, math.nan)


def require_times(net: Architecture, times: FloatArray, h: FloatArray | None) -> None:
    """Raise if a time is none of the network with these steps; None: those of the horizon."""
    if not times.size:
        return
    times = times[~np.isnan(times)]
    last = float(times.max())
    if net.time_steps != "fixed" or not net.residual:
        if last > net.n_layers or not np.array_equal(times, np.round(times)):
            why = "the steps are learned" if net.residual else "there are no time steps"
            wrong = _find_invalid_time(net, times)
            raise ValueError(f"times must be the numbers of layers, 0 to {net.n_layers}, where {why}, got {wrong}")
        return
    steps = np.full(net.n_layers, net.horizon / net.n_layers) if h is None else h
    lowest = int(np.argmin(steps))
    if steps[lowest] <= 0:
        raise ValueError(f"observations at times need positive steps, but h[{lowest}] is {steps[lowest]}")
    end = float(np.sum(steps, dtype=np.float64))
    if last > end * (1 + max(TOLERANCE, 4 * float(np.finfo(net.dtype).eps))):
        raise ValueError(f"times must lie between 0 and the horizon {end:g}, got {last}")


def _find_invalid_time(net: Architecture, times: FloatArray) -> float:
    wrong = (times > net.n_layers) | (times != np.round(times))
    return float(times[wrong].flat[0])


def _require_observed(values: FloatArray, present: NDArray[np.bool_]) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        index = ", ".join(map(str, np.argwhere(infinite)[0]))
        raise ValueError(f"values[{index}] is infinite; values must be finite, or NaN where nothing was observed")
    if present.size and not present.any():
        raise ValueError("values are all NaN: nothing was observed")
    empty = np.flatnonzero(~present.any(axis=(1, 2)))
    if empty.size:
        raise ValueError(f"nothing was observed of sample {empty[0]}: all of values[{empty[0]}] are NaN")


def _validate_times(times: NDArray[np.float64], is_observed: NDArray[np.bool_]) -> None:
    """Raise unless times increase and are finite, but for NaN at the end of rows; `is_observed`: where values are."""
    padding = np.isnan(times)
    if padding.any():
        if times.ndim == 1:
            raise ValueError(f"times[{np.argmax(padding)}] is NaN; only samples with times of their own may have fewer")
        wrong = padding & is_observed
        wrong[:, 1:] |= padding[:, :-1] & ~padding[:, 1:]
        if wrong.any():
            index = ", ".join(map(str, np.argwhere(wrong)[0]))
            raise ValueError(
                f"times[{index}]: NaN stands for no more times, at the end of a row and where its values are NaN, too"
            )
    rows = np.atleast_2d(times)
    late = ~((rows[:, 1:] > rows[:, :-1]) | np.atleast_2d(padding)[:, 1:])
    if late.any():
        row, place = np.argwhere(late)[0]
        prefix = f"{row}, " if times.ndim == 2 else ""
        raise ValueError(
            f"times must increase, but times[{prefix}{place + 1}] = {rows[row, place + 1]} comes after "
            f"{rows[row, place]}"
        )
    if times.size and np.nanmin(times) < 0:
        raise ValueError(f"times must not be negative, got {np.nanmin(times)}")
    if np.isinf(times).any():
        raise ValueError("times must be finite, got inf")


def _read_only(array: FloatArray) -> FloatArray:
    view = array.view()
    view.flags.writeable = False
    return view
