"""The targets of an estimator: classes and their indices, or numbers and their scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ocdl.base import validation
from ocdl.base.names import pluralise
from ocdl.base.validation import FloatArray, LabelArray
from ocdl.estimator.samples import Samples, quartiles
from ocdl.model.losses import Huber, Loss, Quantile
from ocdl.model.objective import resolve_loss
from ocdl.storage.container import require_keys

SEVERAL = (list, tuple, set, np.ndarray)  # types that hold several labels of one sample
ROBUST = (Huber, Quantile)  # robust losses
NORMAL_QUARTILES = 1.349  # distance of the quartiles of normal numbers, in standard deviations


class Targets(Protocol):
    """Converts between the targets of a user and those of a loss. Its fields are attributes of the fitted estimator."""

    @property
    def n_outputs(self) -> int: ...
    def encode(self, y: Any) -> NDArray[Any]: ...
    def to_json(self) -> dict[str, Any]: ...
    @classmethod
    def from_json(cls, stored: Any, n_outputs: int) -> Self: ...


@dataclass(frozen=True, eq=False)
class ClassTargets:
    """Classes in their order; a label becomes the number of its class."""

    classes_: NDArray[Any]

    loss_kind: ClassVar = "classes"

    @property
    def n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    @classmethod
    def learn(cls, y: NDArray[Any], name: str = "y") -> Self:
        """Return the classes of labels, at least two."""
        try:
            classes = np.unique(y)
        except TypeError as error:
            raise TypeError(f"{name} must hold labels of one kind, all numbers or all texts: {error}") from error
        with np.errstate(over="ignore", invalid="ignore"):  # y is compared with whole numbers
            from sklearn.utils.multiclass import check_classification_targets  # takes long to import

            check_classification_targets(y)
        if len(classes) < 2:
            raise ValueError(
                f"{name} has one class, {_plain(classes[0])!r}; a classifier needs samples of at least 2 classes"
            )
        return cls(classes)

    def encode(self, y: Any) -> LabelArray:
        try:
            labels = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
            unknown = np.flatnonzero(self.classes_[labels] != y)
        except TypeError as error:
            raise TypeError(f"y must hold labels of the kind of the classes, {self.classes_}: {error}") from error
        if len(unknown):
            raise ValueError(f"y has the class {_plain(y[unknown[0]])!r}, which is not one of {self.classes_}")
        numbers: LabelArray = labels.astype(np.int64)
        return numbers

    def to_json(self) -> dict[str, Any]:
        return {"classes": classes_to(self.classes_)}

    @classmethod
    def from_json(cls, stored: Any, n_outputs: int) -> Self:
        return cls(classes_from(require_keys(stored, "the targets", ("classes",))["classes"], n_outputs))


@dataclass(frozen=True, eq=False)
class NumberTargets:
    """The scale of numbers: the loss compares (y - mean) / scale. `target_ndim_` is the number of dimensions of y."""

    target_mean_: FloatArray
    target_scale_: FloatArray
    target_ndim_: int

    loss_kind: ClassVar = "numbers"

    @property
    def n_outputs(self) -> int:
        return len(self.target_mean_)

    @classmethod
    def learn(cls, samples: Samples, loss: Loss) -> Self:
        """Return the scale of the targets of samples that the loss is for."""
        targets, weights = samples.y.reshape(len(samples.y), -1), samples.row_weights
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.average(targets, axis=0, weights=weights)
            spread = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weights))
        if loss.minimum_target == 0 and np.isfinite(mean).all():
            return cls(np.zeros_like(mean), np.where(mean > 0, mean, 1.0), samples.y.ndim)
        if not np.isfinite(mean).all() or not np.isfinite(spread).all():
            raise ValueError("y holds numbers whose squares are beyond the range of float64; scale it down")
        if isinstance(loss, ROBUST):
            low, median, high = quartiles(targets, weights)
            is_wide = high > low  # if most targets are equal, the others determine the scale
            mean = np.where(is_wide, median, mean)
            spread = np.where(is_wide, (high - low) / NORMAL_QUARTILES, spread)
        return cls(mean, np.where(spread > 0, spread, 1.0), samples.y.ndim)

    def encode(self, y: Any, loss: Any = None) -> NDArray[Any]:
        targets = np.asarray(y, np.float64).reshape(len(y), -1)
        if targets.shape[1] != self.n_outputs:
            raise ValueError(
                f"y has {pluralise(targets.shape[1], 'target')}, but the model has learned {self.n_outputs}"
            )
        if loss is not None and targets.min() < resolve_loss(loss).minimum_target:
            raise ValueError(f"y has the target {targets.min()}; the loss {loss!r} takes none below 0")
        with np.errstate(over="ignore"):
            scaled = np.ascontiguousarray((targets - self.target_mean_) / self.target_scale_)
        if not np.isfinite(scaled).all():
            raise ValueError(
                f"y has the target {targets[~np.isfinite(scaled)][0]}, and those that the model has learned spread by "
                f"{self.target_scale_.min():.3g}: the one divided by the other overflows"
            )
        return scaled[:, 0] if self.target_ndim_ == 1 else scaled

    def to_json(self) -> dict[str, Any]:
        mean, scale = self.target_mean_.tolist(), self.target_scale_.tolist()
        return {"mean": mean, "scale": scale, "single": self.target_ndim_ == 1}

    @classmethod
    def from_json(cls, stored: Any, n_outputs: int) -> Self:
        spec = require_keys(stored, "the targets", ("mean", "scale", "single"))
        dtype = np.dtype(np.float64)
        mean, scale = (
            validation.array_of_shape(spec[name], name, (n_outputs,), "(targets,)", dtype) for name in ("mean", "scale")
        )
        is_single = validation.boolean(spec["single"], "single")
        if is_single and n_outputs != 1:
            raise ValueError(f"single targets need one output, got {n_outputs}")
        return cls(mean, scale, 1 if is_single else 2)


def _plain(label: Any) -> Any:
    """Return a label as Python writes it."""
    return label.item() if isinstance(label, np.generic) else label


def classes_to(classes: NDArray[Any]) -> dict[str, Any]:
    """Return classes as JSON can hold them."""
    return {"dtype": classes.dtype.str, "values": plain_list(classes, "classes_")}


def plain_list(values: NDArray[Any], name: str) -> list[Any]:
    """Return texts, numbers or booleans as JSON can hold them."""
    plain: list[Any] = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    for value in plain:
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError(
                f"{name} must be text, numbers or booleans to be saved, got {value!r} ({type(value).__name__})"
            )
    return plain


def classes_from(stored: Any, n_outputs: int) -> NDArray[Any]:
    """Return the classes of `classes_to`, if they fit so many outputs."""
    spec = require_keys(stored, "the classes", ("dtype", "values"))
    dtype = np.dtype("O" if spec["dtype"] == "|O" else str(spec["dtype"]))
    if dtype.kind not in "OUSbiuf" or not isinstance(spec["values"], list):
        raise ValueError(f"classes of dtype {spec['dtype']!r:.80} cannot be read")
    classes = np.array(spec["values"], dtype=object).astype(dtype)
    if classes.shape != (max(n_outputs, 2),):
        raise ValueError(
            f"a network with {pluralise(n_outputs, 'output')} needs {max(n_outputs, 2)} classes, got {classes.shape}"
        )
    return classes


def class_factors(class_weight: Any, classes: NDArray[Any], samples: Samples) -> FloatArray:
    """Return the weight of each class; if balanced, all classes have the same total weight."""
    from sklearn.utils import compute_class_weight

    if isinstance(class_weight, str) and class_weight == "balanced":
        order = np.argsort(samples.y)
        ends = np.searchsorted(samples.y[order], np.arange(1, len(classes)))
        totals = np.array([*map(math.fsum, np.split(samples.row_weights[order], ends))])
        return samples.total / np.count_nonzero(totals) / np.where(totals > 0, totals, 1.0)
    if not isinstance(class_weight, dict):
        accepted = "a dict of classes and their weights, 'balanced' or None"
        raise TypeError(f"class_weight must be {accepted}, got {validation.format_with_type(class_weight)}")
    for label, weight in class_weight.items():
        validation.not_negative(weight, f"class_weight[{validation.format_value(label)}]")
    factors: FloatArray = compute_class_weight(class_weight, classes=classes, y=classes)
    return factors


def require_one_label(y: Any) -> None:
    """Raise a ValueError if samples have several labels."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    is_table = len(shape) == 2 and shape[1] > 1
    if is_table or (isinstance(y, (list, tuple)) and any(isinstance(labels, SEVERAL) for labels in y)):
        given = f"shape {tuple(shape)}" if is_table else "a list for each sample"
        raise ValueError(
            f"y has {given}, several labels for each sample; wrap the estimator in "
            "sklearn.multioutput.MultiOutputClassifier to have one for each column"
        )
