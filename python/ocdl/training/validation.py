"""The validation data of a training, and when they end it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike

from ocdl.base import validation as checks
from ocdl.base.keywords import known_keywords
from ocdl.data.row_source import Rows, is_source

__all__ = ["Validation"]


@known_keywords({"early_stopping_rounds": "patience", "n_iter_no_change": "patience", "weights": "sample_weight"})
@dataclass(frozen=True, eq=False)
class Validation:
    """Data on which a training evaluates loss and score, but does not train.

    Parameters
    ----------
    X : array_like of shape (samples, features), or RowSource
        The rows of a `RowSource` carry targets and weights: leave out `y` and `sample_weight`.
    y : array_like of shape (samples,) or (samples, outputs), or Observations
        As for `train`.
    sample_weight : array_like of shape (samples,), optional
        Weights of the samples in loss and score.
    inputs : array_like of shape (samples, layers [+ 1], inputs), optional
        As for `train`.
    patience : int, optional
        The training ends after this many evaluations without a lower validation loss, and returns the controls of the
        lowest one.

    Raises
    ------
    TypeError, ValueError
        If `patience` is not a positive whole number.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(200, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> held_out = ocdl.Validation(X[150:], y[150:], patience=5)
    >>> r = ocdl.train(net, net.init(0), X[:150], y[:150], validation=held_out, eval_every=2, max_iter=1000)
    >>> bool(r.history.val_loss.min() < r.history.val_loss[0])
    True
    """

    X: ArrayLike | Rows
    y: Any = None
    _: KW_ONLY
    sample_weight: ArrayLike | None = None
    inputs: ArrayLike | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.patience is not None:
            object.__setattr__(self, "patience", checks.integer(self.patience, "patience", minimum=1))


def as_validation(validation: Any) -> Validation | None:
    """Return the argument `validation` of `train` as a Validation."""
    if validation is None or isinstance(validation, Validation):
        return validation
    if is_source(validation):
        return Validation(validation)
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        return Validation(*validation)
    kind = type(validation).__name__ + (f" of {len(validation)}" if isinstance(validation, (tuple, list)) else "")
    raise TypeError(f"validation must be a pair (X, y), an ocdl.RowSource or an ocdl.Validation, got {kind}")
