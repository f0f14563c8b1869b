"""The paper's data sets: points of the plane, in two classes that no line separates, and images of digits."""

from ocdl.datasets.mnist import load_mnist100
from ocdl.datasets.points import GENERATORS as GENERATORS
from ocdl.datasets.points import make_donut1d, make_donut2d, make_spiral, make_squares

__all__ = ["load_mnist100", "make_donut1d", "make_donut2d", "make_spiral", "make_squares"]
