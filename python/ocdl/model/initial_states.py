"""Initial states that are learned beside the controls."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base import validation
from ocdl.base.names import pluralise

__all__ = ["InitialStates"]


@dataclass(frozen=True, eq=False)
class InitialStates:
    r"""Learn the state that each sample starts from, for `train`: X is then an observation with errors.

    With states :math:`s_i` in the place of the rows :math:`x_i` of X, the objective gains

    .. math:: \frac{\lambda}{2m} \sum_i w_i |s_i - x_i|^2 + \frac{\rho}{2m} \sum_i |y_i(T) - s_{n(i)}|^2.

    Entries of X that are NaN were not observed: they start at 0 and are left out of the first sum. So are augmented
    components. The second sum is multiple shooting: window :math:`n(i)` of the same series begins where window i ends.
    The states take memory of ``samples * dim`` numbers, as many times as the optimiser has vectors.

    Parameters
    ----------
    weight : float
        :math:`\lambda`; 0: the observations say nothing.
    continuity_weight : float, optional
        :math:`\rho`, positive; with `next_window` only.
    next_window : array_like of int of shape (samples,), optional
        :math:`n(i)`, or -1 where no window follows. No window follows two others, or itself.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, ocdl
    >>> net = ocdl.Network(2, 5, n_outputs=2, field="mlp", width=4, control_intervals=1)
    >>> X = np.array([[1.0, np.nan], [0.5, 0.2]])
    >>> objective = ocdl.Objective("squared_error")
    >>> states = ocdl.InitialStates(weight=0.1, continuity_weight=1.0, next_window=[1, -1])
    >>> r = ocdl.train(net, net.init(0), X, np.ones((2, 2)), objective=objective, initial_states=states, max_iter=5)
    >>> r.initial_states.shape
    (2, 2)
    """

    weight: float
    _: KW_ONLY
    continuity_weight: float | None = None
    next_window: ArrayLike | None = None

    def __post_init__(self) -> None:
        validation.not_negative(self.weight, "weight")
        if (self.continuity_weight is None) != (self.next_window is None):
            raise ValueError(
                "continuity_weight and next_window belong together: one is the weight of the jumps between windows, "
                "the other says which window follows which"
            )
        if self.continuity_weight is None:
            return
        validation.positive(self.continuity_weight, "continuity_weight")
        object.__setattr__(self, "next_window", _validate_windows(self.next_window))

    def _windows(self, n_samples: int) -> list[int]:
        """Return the following window of each sample; none where no window follows any other."""
        if self.next_window is None:
            return []
        following: list[int] = np.asarray(self.next_window).tolist()
        if len(following) != n_samples:
            windows = pluralise(len(following), "window")
            raise ValueError(f"next_window has {windows} but X has {pluralise(n_samples, 'sample')}")
        return following

    def _to_dict(self) -> dict[str, Any]:
        """Return what a checkpoint identifies them by."""
        windows = b"" if self.next_window is None else np.asarray(self.next_window).tobytes()
        return {
            "weight": float(self.weight),
            "continuity_weight": None if self.continuity_weight is None else float(self.continuity_weight),
            "next_window": hashlib.sha256(windows).hexdigest()[:12],
        }


def _validate_windows(given: Any) -> NDArray[np.int64]:
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(
            "next_window must be a sequence of whole numbers, one per sample, "
            f"got dtype {array.dtype} of shape {array.shape}"
        )
    windows = array.astype(np.int64)
    outside = (windows < -1) | (windows >= len(windows))
    if outside.any():
        first = int(np.argmax(outside))
        raise ValueError(f"next_window[{first}] is {windows[first]}; windows are 0 to {len(windows) - 1}, none is -1")
    itself = windows == np.arange(len(windows))
    if itself.any():
        raise ValueError(f"next_window[{int(np.argmax(itself))}] is the window itself")
    followed, counts = np.unique(windows[windows >= 0], return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"next_window has {followed[np.argmax(counts > 1)]} twice: a window follows one other at most")
    return windows
