"""Pictures: data, what a network predicts, how it moves the points, and how a training went.

Every function takes ``ax=`` (``fig=`` where it fills several axes) and returns what it drew; without one it makes a
figure with pyplot. Nothing is shown, and importing this package chooses no backend.

A *model* is a fitted `ocdl.ODEClassifier`, a scikit-learn pipeline that ends in one, or a pair ``(net, u)``.
"""

from ocdl.plot._animate import animate
from ocdl.plot._certificate import Panels, certificate
from ocdl.plot._compare import compare
from ocdl.plot._curves import Curves, accuracy, history, score
from ocdl.plot._data import data
from ocdl.plot._images import images
from ocdl.plot._prediction import prediction
from ocdl.plot._scene import Scene
from ocdl.plot._snapshots import snapshots
from ocdl.plot._time_steps import Bars, time_steps
from ocdl.plot._transformation import transformation

__all__ = [
    "Bars",
    "Curves",
    "Panels",
    "Scene",
    "accuracy",
    "animate",
    "certificate",
    "compare",
    "data",
    "history",
    "images",
    "prediction",
    "score",
    "snapshots",
    "time_steps",
    "transformation",
]
