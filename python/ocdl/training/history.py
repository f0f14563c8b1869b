"""What happened in a training, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray, LabelArray

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["History"]

SPARSE = ("score", "val_loss", "val_score", "time_steps")  # what belongs to the evaluated iterations
EVERY_ITERATION = ("loss", "gradient_norm", "lipschitz", "trials", "seconds")  # in the order of the core's records


@dataclass(frozen=True, eq=False)
class History:
    """The course of a training.

    The first five arrays have an entry for the start and one per iteration. The others belong to the iterations in
    `evaluated`: the start, those of `eval_every`, and the end unless the callback ended the training.

    Attributes
    ----------
    loss : ndarray
        The objective, penalties included; with Adam on batches that of the batch.
    gradient_norm : ndarray
        The norm of the gradient; with steps on the simplex that of ``P(u - g) - u``.
    lipschitz : ndarray
        The L of an accepted step of length 1/L; NaN at the start and for methods without.
    trials : ndarray of int
        Evaluations of the objective in the iteration, or work that took as long.
    seconds : ndarray
        Time spent iterating up to here.
    evaluated : ndarray of int
        The iterations to which the following arrays belong.
    score : ndarray
        The score on the training samples, weighted as in the training: the accuracy (the fraction that is classified
        correctly), R^2 for real targets, or the score of a custom loss; NaN if it has none.
    val_loss, val_score : ndarray
        The objective and the score on the validation data; NaN without.
    time_steps : ndarray of shape (evaluated, layers)
        Snapshots of the time steps.
    score_name : str
        The name of the score: "accuracy", "R^2", or "score" for a custom loss.
    accuracy, val_accuracy : ndarray
        The scores where they are accuracies.

    Examples
    --------
    >>> import ocdl
    >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
    >>> net = ocdl.Network(2, 5)
    >>> history = ocdl.train(net, net.init(random_state=0), X, y, max_iter=100, eval_every=50).history
    >>> len(history.loss), len(history.gradient_norm), len(history.lipschitz), len(history.trials), len(history.seconds)
    (101, 101, 101, 101, 101)
    >>> history.evaluated.tolist(), history.score.shape, history.score_name, history.time_steps.shape
    ([0, 50, 100], (3,), 'accuracy', (3, 5))
    >>> history.val_loss, history.val_score
    (array([nan, nan, nan]), array([nan, nan, nan]))
    """

    loss: FloatArray
    gradient_norm: FloatArray
    lipschitz: FloatArray
    trials: LabelArray
    seconds: FloatArray
    evaluated: LabelArray
    score: FloatArray
    val_loss: FloatArray
    val_score: FloatArray
    time_steps: FloatArray
    score_name: str = "accuracy"

    @property
    def accuracy(self) -> FloatArray:
        """The scores of the training samples, where they are accuracies; AttributeError where they are not.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> history = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10).history
        >>> bool((history.accuracy == history.score).all())
        True
        """
        self.require_accuracy()
        return self.score

    @property
    def val_accuracy(self) -> FloatArray:
        """The scores of the validation samples, where they are accuracies; AttributeError where they are not.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> history = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10).history
        >>> history.val_accuracy  # there were none
        array([nan, nan])
        """
        self.require_accuracy()
        return self.val_score

    def require_accuracy(self) -> None:
        """Raise where the score is something else than an accuracy.

        Raises
        ------
        AttributeError
            The message names the score.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> history = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10).history
        >>> history.require_accuracy()
        """
        if self.score_name != "accuracy":
            raise AttributeError(f"this history has no accuracy: its score, in history.score, is {self.score_name}")

    def followed_by(self, other: History) -> History:
        """Return the history of this training and of another one that continued it from its end.

        Parameters
        ----------
        other : History
            The history of the second training.

        Returns
        -------
        History

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> first = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10)
        >>> second = ocdl.train(net, first.controls, X, y, max_iter=5)
        >>> first.history.followed_by(second.history)  # doctest: +ELLIPSIS
        <History of 15 iterations, loss ...>
        """
        trials, seconds = other.trials[1:], self.seconds[-1] + other.seconds[1:]
        iterations = len(self) - 1
        rows = {name: np.concatenate([getattr(self, name), getattr(other, name)[1:]]) for name in EVERY_ITERATION}
        sparse = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in SPARSE}
        evaluated = np.concatenate([self.evaluated, iterations + other.evaluated])
        kept = np.append(evaluated[1:] != evaluated[:-1], True)  # the later of two evaluations of one iterate
        rows |= {"trials": np.concatenate([self.trials, trials]), "seconds": np.concatenate([self.seconds, seconds])}
        return History(
            **rows,
            evaluated=evaluated[kept],
            **{name: values[kept] for name, values in sparse.items()},
            score_name=other.score_name,
        )

    def __len__(self) -> int:
        return len(self.loss)

    def __repr__(self) -> str:
        return f"<History of {pluralise(len(self) - 1, 'iteration')}, loss {self.loss[0]:.6g} to {self.loss[-1]:.6g}>"

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row per iteration; scores and validation are NaN where not evaluated.

        The time steps are columns h0, h1, ...

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> history = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10).history
        >>> list(history.to_pandas().columns[:3])
        ['loss', 'gradient_norm', 'lipschitz']
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("History.to_pandas needs pandas: pip install pandas") from error
        rows = {name: getattr(self, name) for name in EVERY_ITERATION}
        frame = pandas.DataFrame(rows, index=pandas.RangeIndex(len(self), name="iteration"))
        accuracies = ("accuracy", "val_accuracy") if self.score_name == "accuracy" else ()
        sparse = {name: getattr(self, name) for name in ("score", "val_loss", "val_score", *accuracies)}
        sparse |= {f"h{j}": self.time_steps[:, j] for j in range(self.time_steps.shape[1])}
        return frame.join(pandas.DataFrame(sparse, index=self.evaluated))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the loss over the iterations on logarithmic axes, that of the validation data dashed; return the axes.

        The start has no place on a logarithmic axis and is drawn at 1/2, where the axis says 0.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; none: on a new figure.

        Returns
        -------
        Axes

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import ocdl
        >>> X, y = ocdl.datasets.make_donut1d(100, random_state=0)
        >>> net = ocdl.Network(2, 5)
        >>> history = ocdl.train(net, net.init(random_state=0), X, y, max_iter=10).history
        >>> history.plot().get_xlabel()
        'iteration'
        """
        from ocdl import plot

        return plot.history(self, ax=ax).ax
