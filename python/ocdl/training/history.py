"""What happened in a training, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocdl.base.validation import FloatArray, LabelArray

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["History"]

EVERY_ITERATION = ("loss", "gradient_norm", "lipschitz", "trials", "seconds")  # in the order of the core's records


@dataclass(frozen=True, eq=False)
class History:
    """The course of a training.

    The first five arrays have an entry for the start and one per iteration. The others belong to the iterations in
    `evaluated`: the start, every `eval_every` iterations, and the end unless the training was asked to stop.

    Attributes
    ----------
    loss : ndarray
        The objective, regulariser included; with Adam on batches that of the batch.
    gradient_norm : ndarray
        The norm of the gradient; with steps on the simplex that of ``P(u - g) - u``.
    lipschitz : ndarray
        The L of an accepted step of length 1/L; NaN at the start and for methods without.
    trials : ndarray of int
        Evaluations of the objective in the iteration, or what took as long.
    seconds : ndarray
        Time spent iterating up to here.
    evaluated : ndarray of int
        The iterations to which the following arrays belong.
    accuracy : ndarray
        Share of the training samples that are classified correctly, weighted as in the training.
    val_loss, val_accuracy : ndarray
        The objective and the accuracy on the validation data; NaN without.
    time_steps : ndarray of shape (evaluated, layers)
        Snapshots of the time steps.
    """

    loss: FloatArray
    gradient_norm: FloatArray
    lipschitz: FloatArray
    trials: LabelArray
    seconds: FloatArray
    evaluated: LabelArray
    accuracy: FloatArray
    val_loss: FloatArray
    val_accuracy: FloatArray
    time_steps: FloatArray

    def __len__(self) -> int:
        return len(self.loss)

    def __repr__(self) -> str:
        return f"<History of {len(self) - 1} iterations, loss {self.loss[0]:.6g} to {self.loss[-1]:.6g}>"

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row per iteration; accuracies and validation are NaN where not evaluated.

        Needs pandas. The time steps are columns h0, h1, ...
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("History.to_pandas needs pandas: pip install pandas") from error
        rows = {name: getattr(self, name) for name in EVERY_ITERATION}
        frame = pandas.DataFrame(rows, index=pandas.RangeIndex(len(self), name="iteration"))
        sparse = {name: getattr(self, name) for name in ("accuracy", "val_loss", "val_accuracy")}
        sparse |= {f"h{j}": self.time_steps[:, j] for j in range(self.time_steps.shape[1])}
        return frame.join(pandas.DataFrame(sparse, index=self.evaluated))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the loss over the iterations on logarithmic axes, that of the validation data dashed; return the axes.

        The start has no place on a logarithmic axis and is drawn at 1/2.
        """
        from ocdl import plot

        return plot.history(self, ax=ax).ax
