"""Plot rows of images, such as digits and their transformations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from ocdl.base import validation
from ocdl.base.validation import FloatArray
from ocdl.plot._axes import get_axes

GAP = 0.06  # between images, in widths of one
INCH = 0.7  # side of an image


class ImageRows(list[list[AxesImage]]):
    """The images of each row, with a short repr."""

    def __repr__(self) -> str:
        return f"<{sum(map(len, self))} images in {len(self)} row{'' if len(self) == 1 else 's'}>"


def images(
    rows: ArrayLike | Mapping[str, ArrayLike],
    *,
    titles: Sequence[object] | None = None,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> list[list[AxesImage]]:
    """Draw rows of grey images, side by side.

    Parameters
    ----------
    rows : array_like of shape (images, height, width) or (images, pixels), or mapping of names to these
        One row or several, each with its name on the left. Flat images are square: 784 pixels are 28 x 28.
    titles : sequence, optional
        The titles of the columns.
    limits : (float, float), optional
        The values of black and white; none: each row has its own, from its lowest to its highest value.
    ax : Axes, optional
        Where to draw; none: on a new figure.

    Returns
    -------
    list of list of AxesImage
        For each row its images.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of its kind, or what is given does not fit each other; the message names it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np, ocdl.plot
    >>> digits = np.random.default_rng(0).random((5, 784))
    >>> drawn = ocdl.plot.images({"features": digits, "transformed": np.tanh(digits)}, titles=[0, 8, 8, 0, 8])
    >>> len(drawn), len(drawn[0]), drawn[0][0].get_array().shape
    (2, 5, (28, 28))
    """
    by_name = rows if isinstance(rows, Mapping) else {"": rows}
    if not by_name:
        raise ValueError("rows must be an array of images or a mapping of names to these, got an empty one")
    pictures = [_validate_images(one, f"rows[{name!r}]" if name else "rows") for name, one in by_name.items()]
    limits = None if limits is None else _validate_limits(limits)
    columns = max(map(len, pictures))
    if titles is not None and len(titles) != columns:
        raise ValueError(f"titles has {len(titles)} entries but the longest row has {columns} images")
    pitch, ratio = 1 + GAP, max(row.shape[1] / row.shape[2] for row in pictures)
    ax = get_axes(ax, (INCH * columns + 1.0, INCH * ratio * len(pictures) + 0.4))
    drawn = ImageRows()
    for i, row in enumerate(pictures):
        low, high = (float(row.min()), float(row.max())) if limits is None else limits
        bottom = -(i + 1) * (ratio + GAP)
        drawn.append(
            [
                ax.imshow(
                    one, cmap="gray", vmin=low, vmax=high, extent=(j * pitch, j * pitch + 1, bottom, bottom + ratio)
                )
                for j, one in enumerate(row)
            ]
        )
    ax.set_xlim(-GAP, columns * pitch)
    ax.set_ylim(-len(pictures) * (ratio + GAP) - GAP, 0)
    ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False)
    above = [""] * columns if titles is None else [str(title) for title in titles]
    ax.set_xticks([j * pitch + 0.5 for j in range(columns)], above)
    ax.set_yticks([-(i + 1) * (ratio + GAP) + ratio / 2 for i in range(len(pictures))], list(map(str, by_name)))
    return drawn


def _validate_images(one: ArrayLike, name: str) -> FloatArray:
    row = validation.real_array(one, name, np.dtype(np.float64))
    accepted = f"{name} must have shape (images, height, width) or (images, pixels)"
    if row.ndim not in (2, 3) or 0 in row.shape:
        raise ValueError(f"{accepted}, got {row.shape}")
    if row.ndim == 3:
        return row
    side = math.isqrt(row.shape[1])
    if side * side != row.shape[1]:
        raise ValueError(f"{accepted}; {row.shape[1]} pixels are not a square, reshape them to (images, height, width)")
    return row.reshape(len(row), side, side)


def _validate_limits(limits: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = limits
    except (TypeError, ValueError) as error:
        raise TypeError(f"limits must be a pair of numbers, (black, white), got {limits!r}") from error
    black, white = validation.real(low, "limits[0]"), validation.real(high, "limits[1]")
    if not black < white:
        raise ValueError(f"limits must increase, from black to white, got {limits!r}")
    return black, white
