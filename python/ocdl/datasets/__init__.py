"""The paper's data sets: points of the plane, in two classes that no line separates, and images of digits."""

from ocdl.datasets import mnist, points
from ocdl.datasets.mnist import *  # noqa: F403
from ocdl.datasets.points import *  # noqa: F403
from ocdl.datasets.points import GENERATORS as GENERATORS

__all__ = []
__all__ += mnist.__all__
__all__ += points.__all__
