"""What is minimised: the loss over the samples and the regulariser of the controls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocdl import _core
from ocdl.base import validation
from ocdl.base.keywords import known_keywords
from ocdl.base.names import counted
from ocdl.base.validation import FloatArray
from ocdl.model import losses
from ocdl.model.losses import Loss, OwnLoss
from ocdl.model.own_loss import OwnLossOnSamples, name_of
from ocdl.model.penalties import PENALTIES, Penalty, Regulariser, title_of

__all__ = ["Objective"]

NO_PENALTY = Regulariser()


@known_keywords({"weight_decay": "regulariser=ocdl.Tikhonov(...)", "alpha": "regulariser=ocdl.Tikhonov(...)"})
@dataclass(frozen=True)
class Objective:
    """The function to minimise, J(u) = R(u) + mean or sum over the samples of loss(W y(T) + mu, target).

    Parameters
    ----------
    loss : str, loss of `ocdl.losses`, or object
        For labels: "squared", the paper's ``1/2 |C(z) - c|^2`` with ``C(z) = 1 / (1 + exp(-z))``, c the label or, with
        several outputs, its one-hot vector; "cross_entropy", the logistic or softmax cross entropy. For real targets,
        one for each output: "squared_error", "huber", "quantile", "poisson", or with their parameters
        ``ocdl.losses.Huber(delta=0.5)``. Or a loss of one's own: any object with a method ``value_and_slope(outputs,
        targets)`` that returns the losses (samples,) and their slopes (samples, outputs).
    reduction : {"mean", "sum"}
        How the losses of the samples are combined; with sample weights the mean divides by their sum.
    regulariser : Regulariser, optional
        A sum of `Tikhonov`, `L1` and `TimeSmoothness`.

    Attributes
    ----------
    loss : str or object
        The loss: its name, where it was given by one.
    reduction : str
    regulariser : Regulariser or None

    Raises
    ------
    TypeError, ValueError
        If there is no such loss or reduction, or the regulariser is none.

    Examples
    --------
    >>> import ocdl
    >>> ocdl.Objective("cross_entropy", regulariser=ocdl.Tikhonov(1e-4))
    Objective(loss='cross_entropy', reduction='mean', regulariser=Tikhonov(0.0001))

    A loss of one's own, the absolute error:

    >>> import numpy as np
    >>> class AbsoluteError:
    ...     def value_and_slope(self, outputs, targets):
    ...         residual = outputs - targets[:, None]
    ...         return np.abs(residual).sum(axis=1), np.sign(residual)
    >>> net = ocdl.Network(1, 5)
    >>> u, X = net.init(random_state=0), np.array([[0.0], [1.0]])
    >>> net.value(u, X, np.array([0.5, 2.0]), ocdl.Objective(AbsoluteError())) > 0
    True
    >>> objective = ocdl.Objective("log_loss")
    >>> objective.loss, objective.reduction, objective.regulariser
    ('cross_entropy', 'mean', None)
    """

    loss: Any = "squared"
    reduction: str = "mean"
    regulariser: Regulariser | None = None

    def __post_init__(self) -> None:
        loss = losses.resolved(self.loss)
        if isinstance(self.loss, str) and isinstance(loss, Loss):
            object.__setattr__(self, "loss", loss.name)
        object.__setattr__(self, "reduction", validation.choice(self.reduction, "reduction", ("mean", "sum")))
        if self.regulariser is not None and not isinstance(self.regulariser, Regulariser):
            *some, last = map(title_of, PENALTIES)
            raise TypeError(
                f"regulariser must be a sum of {', '.join(some)} and {last}, or None, "
                f"got {type(self.regulariser).__name__}"
            )

    def slopes(self, outputs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the derivative of the losses by the outputs, (samples, outputs), weighted and reduced.

        It is what `Network.value_and_grad` pulls back: without a regulariser, ``net.pull_back(u, X,
        objective.slopes(net.predict(u, X), y))`` is the gradient, to the last bit.

        Parameters
        ----------
        outputs : array_like of shape (samples, outputs)
        y : array_like of shape (samples,) or (samples, outputs)
            The targets, as for `Network.value`.
        sample_weight : array_like of shape (samples,), optional

        Returns
        -------
        ndarray of shape (samples, outputs)

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the others or the loss.
        FloatingPointError
            If the slopes are beyond the range of the numbers.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective("squared_error").slopes([[1.0], [2.0]], [0.0, 0.0]).tolist()
        [[0.5], [1.0]]
        """
        dtype = np.dtype(np.float32 if getattr(outputs, "dtype", None) == np.float32 else np.float64)
        z = validation.real_array(outputs, "outputs", dtype)
        if z.ndim != 2 or z.shape[1] == 0:
            raise ValueError(f"outputs must have two dimensions, (samples, outputs), got shape {z.shape}")
        weights = validation.weights(sample_weight, len(z), dtype, mean=self.reduction == "mean")
        targets = self._checked_targets(y, z.shape[0], z.shape[1], dtype)
        if isinstance(self.record, Loss):
            slopes = self._core_objective.slopes(z, targets, weights)
        else:
            _, slopes = self._on_samples(targets, weights, len(z)).value_and_slopes(z)
        if _core.first_non_finite(slopes) >= 0:
            raise FloatingPointError(f"the slopes of the loss overflow {dtype}; scale the outputs or the targets down")
        return slopes

    @cached_property
    def record(self) -> Loss | OwnLoss:
        """The loss itself, where it was given by name.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective("huber").record
        Huber(delta=1.0)
        """
        return losses.resolved(self.loss)

    @property
    def score_name(self) -> str:
        """What the score of the loss is called: "accuracy", "R^2", or "score" of a loss of one's own.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective("huber").score_name
        'R^2'
        """
        return self.record.score if isinstance(self.record, Loss) else "score"

    @property
    def loss_name(self) -> str:
        """The name of the loss, whether it was given by its name or not.

        Examples
        --------
        >>> import ocdl
        >>> ocdl.Objective(ocdl.losses.Quantile(level=0.9)).loss_name
        'quantile'
        """
        return self.record.name if isinstance(self.record, Loss) else name_of(self.record)

    def _checked_targets(self, y: Any, samples: int, outputs: int, dtype: np.dtype[Any]) -> Any:
        """Return targets as the loss takes them: labels, numbers of this type, or what came for a loss of one's own."""
        if not isinstance(self.record, Loss):
            if getattr(y, "shape", None) == ():
                raise ValueError(f"y has shape () but X has {counted(samples, 'sample')}")
            if hasattr(y, "__len__") and not isinstance(y, dict) and len(y) != samples:
                raise ValueError(f"y has {counted(len(y), 'target')} but X has {counted(samples, 'sample')}")
            return y
        if self.record.targets == "classes":
            return validation.labels(y, samples, outputs)
        return validation.numbers(y, samples, outputs, dtype, self.record.least_target)

    def _on_samples(self, targets: Any, weights: FloatArray | None, samples: int) -> OwnLossOnSamples:
        """Return a loss of one's own with its samples."""
        assert not isinstance(self.record, Loss)
        return OwnLossOnSamples(self.record, targets, weights, samples, self.reduction == "mean")

    def _to_dict(self) -> dict[str, Any]:
        """Return what identifies the objective, as JSON can hold it; a loss of one's own needs a name."""
        if isinstance(self.record, Loss):
            loss: dict[str, Any] = {"name": self.record.name, "parameters": self.record.parameters()}
        else:
            name = getattr(self.record, "name", None)
            if not isinstance(name, str):
                raise ValueError(
                    f"a checkpoint knows a loss of one's own by its name: give {type(self.record).__name__} an "
                    "attribute 'name' that is a text"
                )
            loss = {"own": name}
        return {"loss": loss, "reduction": self.reduction, "regulariser": (self.regulariser or NO_PENALTY).to_list()}

    @property
    def _nonsmooth_terms(self) -> tuple[Penalty, ...]:
        """The penalties that have no gradient where a control is 0."""
        return tuple(term for term in (self.regulariser or NO_PENALTY).terms if term.is_nonsmooth)

    def _require_second_derivatives(self) -> None:
        """Raise where the loss is one of the user's own: nobody knows how it is curved."""
        if not isinstance(self.record, Loss):
            raise ValueError(
                f"the loss {self.loss_name} is one of your own, of which ocdl knows no second derivative: Hessian and "
                f"Gauss-Newton products, and NewtonCG, take one of {', '.join(map(repr, losses.LOSSES))}"
            )

    @cached_property
    def _core_objective(self) -> _core.Objective:
        """What the core takes; of a loss of one's own nothing but the penalties counts."""
        record = self.record if isinstance(self.record, Loss) else losses.resolved("squared")
        assert isinstance(record, Loss)
        terms = [(term.name, term.weight, term.parts) for term in (self.regulariser or NO_PENALTY).terms]
        return _core.Objective(record.name, record.parameters(), self.reduction == "mean", terms)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Objective, (self.loss, self.reduction, self.regulariser))


DEFAULT_OBJECTIVE = Objective()


def meaning_of_outputs(outputs: FloatArray, loss: Any) -> FloatArray:
    """Return what outputs (samples, outputs) stand for after a training with this loss.

    Of classes their probabilities, (samples, classes): one output z means C(z) = 1 / (1 + exp(-z)) for class 1; several
    the softmax, or after a training with the squared loss C of each, normalised. Of numbers the predicted ones.
    """
    means = Objective(loss)._core_objective.mean(np.ascontiguousarray(outputs))
    bad = _core.first_non_finite(means)
    if bad >= 0:
        sample, output = divmod(bad, means.shape[1])
        raise FloatingPointError(
            f"the mean of output {output} of sample {sample} overflows {means.dtype}; "
            "scale the data or the controls down"
        )
    return means


def decided(outputs: FloatArray) -> Any:
    """Return the class that each row of outputs decides for: by the sign of one output, by the largest of several."""
    return _core.decisions(np.ascontiguousarray(outputs))
