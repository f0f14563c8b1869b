"""Networks and figures for tests of plots."""

from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib.figure import Figure

import ocdl

SAMPLES = 30


def make_points(dim: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters, one per class."""
    rng = np.random.default_rng([dim, classes])
    y = np.arange(SAMPLES) % classes
    return rng.standard_normal((SAMPLES, dim)) / 4 + 2 * np.eye(classes, dim)[y] - np.eye(classes, dim, 1)[y], y


def make_network(dim: int, classes: int, **options: Any) -> tuple[ocdl.Network, ocdl.Controls]:
    net = ocdl.Network(dim, 8, n_outputs=1 if classes == 2 else classes, **options)
    return net, net.init(random_state=1)


def make_figure() -> Figure:
    return Figure(figsize=(3, 3), dpi=100, layout="constrained")
