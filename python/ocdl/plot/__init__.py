"""Plot data, predictions, the flow of the points, the course of a training, and learned dynamics.

Every function takes ``ax=`` (``fig=`` if it fills several axes) and returns the artists; without one it creates a
figure with pyplot. No function shows a figure, and importing this package selects no backend.

A *model* is a fitted `ocdl.ODEClassifier`, a scikit-learn pipeline that ends in one, or a pair ``(net, u)``; in the
pictures of dynamics (`phase_portrait`, `forecast`, `forecast_error`) a fitted `ocdl.Dynamics`.
"""

from ocdl.plot._animate import animate
from ocdl.plot._certificate import Panels, certificate
from ocdl.plot._compare import compare
from ocdl.plot._curves import Curves, accuracy, history, score
from ocdl.plot._data import data
from ocdl.plot._fit import Fit
from ocdl.plot._flow import FlowPanel, flow
from ocdl.plot._forecast import Forecast, forecast
from ocdl.plot._forecast_error import ForecastError, forecast_error
from ocdl.plot._images import images
from ocdl.plot._phase_portrait import PhasePortrait, phase_portrait
from ocdl.plot._prediction import prediction
from ocdl.plot._scene import Scene
from ocdl.plot._snapshots import snapshots
from ocdl.plot._style import Style, style
from ocdl.plot._time_steps import Bars, time_steps
from ocdl.plot._transformation import transformation

__all__ = [
    "Bars",
    "Curves",
    "Fit",
    "FlowPanel",
    "Forecast",
    "ForecastError",
    "Panels",
    "PhasePortrait",
    "Scene",
    "Style",
    "accuracy",
    "animate",
    "certificate",
    "compare",
    "data",
    "flow",
    "forecast",
    "forecast_error",
    "history",
    "images",
    "phase_portrait",
    "prediction",
    "score",
    "snapshots",
    "style",
    "time_steps",
    "transformation",
]
