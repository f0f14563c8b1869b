"""The plane in which points of any dimension are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray

PROJECTED = "projection onto two principal axes"
ROWS = 1024  # per chunk: keeps temporary arrays small for trajectories of images
CROWDED = 0.01  # fraction of the coordinates below which a window needs long tick labels
MARGIN = 1.08  # of a window around its points


class Window(NamedTuple):
    """The visible square of a plot."""

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def from_points(cls, points: FloatArray) -> Self:
        """Return the smallest square with a margin around points of shape (..., 2)."""
        flat = points.reshape(-1, 2)
        low, high = flat.min(axis=0), flat.max(axis=0)
        middle, half = (low + high) / 2, MARGIN * float(np.max(high - low)) / 2
        size = float(np.abs(flat).max())
        if half <= 1e-9 * size or half == 0:  # a single point
            half = size or 1.0
        (x, y) = middle
        return cls(float(x - half), float(x + half), float(y - half), float(y + half))

    def grid(self, resolution: int) -> FloatArray:
        """Return the centres of resolution x resolution pixels, (pixels, 2), row by row from the bottom."""
        step = (np.arange(resolution) + 0.5) / resolution
        x = self.left + (self.right - self.left) * step
        y = self.bottom + (self.top - self.bottom) * step
        return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)

    def apply(self, ax: Axes) -> None:
        """Set the limits of the axes to this square, with equal scales."""
        ax.set_xlim(self.left, self.right)
        ax.set_ylim(self.bottom, self.top)
        ax.set_aspect("equal", adjustable="box")
        if self.right - self.left < CROWDED * max(abs(self.left), abs(self.right)):
            ax.xaxis.set_major_locator(MaxNLocator(2))  # long labels leave no room for a third tick


@dataclass(frozen=True)
class Plane:
    """origin + a axes[0] + b axes[1]: the two coordinates themselves, or the principal axes of more than two.

    A single coordinate is drawn against 0; its second axis is zero.
    """

    origin: FloatArray
    axes: FloatArray
    symbol: str

    @classmethod
    def from_points(cls, points: FloatArray, symbol: str) -> Self:
        """Return the plane for points of shape (..., dim)."""
        dim = points.shape[-1]
        if dim <= 2:
            return cls(np.zeros(dim), np.eye(2, dim), symbol)
        flat = points.reshape(-1, dim)
        origin = flat.mean(axis=0)
        scale = float(max((flat.max(axis=0) - origin).max(), (origin - flat.min(axis=0)).max())) or 1.0
        spread = np.zeros((dim, dim))
        for start in range(0, len(flat), ROWS):
            centred = (flat[start : start + ROWS] - origin) / scale  # scaled, so that squares are finite
            spread += centred.T @ centred
        _, vectors = np.linalg.eigh(spread)  # in the order of increasing variance
        axes = vectors[:, [-1, -2]].T
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
        return cls(origin, axes * np.sign(largest), symbol)

    @property
    def dim(self) -> int:
        return len(self.origin)

    @property
    def note(self) -> str:
        """The note on the projection for a title, or an empty string."""
        return PROJECTED if self.dim > 2 else ""

    def coordinates(self, points: FloatArray) -> FloatArray:
        """Return the coordinates (..., 2) of points (..., dim), projected."""
        coordinates: FloatArray = (points - self.origin) @ self.axes.T
        return coordinates

    def points(self, coordinates: FloatArray) -> FloatArray:
        """Return the points (..., dim) of the plane with these coordinates (..., 2)."""
        points: FloatArray = self.origin + coordinates @ self.axes
        return points

    def label(self, ax: Axes) -> None:
        """Set the labels of the axes."""
        if self.dim > 2:
            ax.set_xlabel("first principal axis")
            ax.set_ylabel("second principal axis")
            return
        numbers = ax.xaxis.get_major_formatter()
        numbers.set_locs(ax.get_xticks().tolist())
        # A common offset of the tick labels takes a line of 15 points below them.
        room = 15.0 if numbers.get_offset() else None
        ax.set_xlabel(f"${self.symbol}_1$" if self.dim == 2 else f"${self.symbol}$", labelpad=room)
        if self.dim == 2:
            ax.set_ylabel(f"${self.symbol}_2$", rotation=0, ha="right", va="center")
        else:
            ax.set_yticks([])


def validate_features(X: ArrayLike) -> FloatArray:
    """Return data as rows of at least one finite number."""
    rows = validation.real_array(X, "X", np.dtype(np.float64))
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            f"X must have two dimensions, (samples, features), and none of them 0, got shape {rows.shape}; "
            "a single feature is X.reshape(-1, 1)"
        )
    return rows
