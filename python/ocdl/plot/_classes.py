"""The classes of labels, with their colours and markers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocdl.base.names import pluralise
from ocdl.base.validation import LabelArray
from ocdl.plot._style import COLOURS, MARKERS, OKABE_ITO

__all__ = ["OKABE_ITO", "Classes"]

MAX_CLASSES = len(COLOURS) * len(MARKERS)  # pairs of a colour and a marker: the two numbers have no common factor


@dataclass(frozen=True)
class Classes:
    """The classes in the order that determines colours and markers."""

    names: NDArray[Any]

    @classmethod
    def from_labels(cls, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Return the given classes, or else those that occur in `y`."""
        try:
            names = distinct = np.unique(np.asarray(y if classes is None else classes))
        except (TypeError, ValueError) as error:
            raise TypeError(f"y must hold labels of one kind, numbers or text: {error}") from error
        if classes is not None:
            names = np.asarray(classes)
            if names.shape != distinct.shape:
                raise ValueError(f"classes must be a list of different labels, got {classes!r}")
        if names.dtype.kind == "f" and np.isnan(names).any():
            raise ValueError("y has missing labels (nan); drop these samples first")
        if len(names) > MAX_CLASSES:
            raise ValueError(f"y has {len(names)} different labels; at most {MAX_CLASSES} classes can be told apart")
        return cls(names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def colours(self) -> tuple[str, ...]:
        return tuple(COLOURS[i % len(COLOURS)] for i in range(len(self)))

    @property
    def markers(self) -> tuple[str, ...]:
        return tuple(MARKERS[i % len(MARKERS)] for i in range(len(self)))

    @property
    def labels(self) -> tuple[str, ...]:
        prefix = "" if self.names.dtype.kind in "OSTU" else "class "
        return tuple(f"{prefix}{name}" for name in self.names)

    def numbers(self, y: ArrayLike, n_samples: int) -> LabelArray:
        """Return the index of the class of each sample."""
        array = np.asarray(y)
        if array.ndim != 1:
            raise ValueError(f"y must have one dimension, (samples,), got shape {array.shape}")
        if len(array) != n_samples:
            raise ValueError(f"y has {pluralise(len(array), 'label')} but X has {pluralise(n_samples, 'sample')}")
        index = {name: i for i, name in enumerate(self.names.tolist())}
        for i, label in enumerate(array.tolist()):
            if label not in index:
                raise ValueError(f"y[{i}] is {label!r}; the classes are {', '.join(map(repr, index))}")
        return np.array([index[label] for label in array.tolist()], dtype=np.int64)
