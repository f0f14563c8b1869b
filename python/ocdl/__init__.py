"""Deep learning as optimal control: networks as discretised ODEs, with exact gradients from the adjoint sweep."""

from ocdl import _load_core  # first: it chooses the compiled core that every other module imports  # noqa: F401

# isort: split
from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ocdl import datasets, losses
from ocdl import estimator as _estimator
from ocdl._core import build_info
from ocdl.analysis.certificate import Certificate
from ocdl.analysis.sensitivity import Flips
from ocdl.analysis.stability import Stability
from ocdl.base.threads import get_num_threads, set_num_threads
from ocdl.model.controls import Controls
from ocdl.model.objective import Objective
from ocdl.model.penalties import L1, EvenSteps, Regulariser, Tikhonov, TimeSmoothness
from ocdl.model.projection import project_simplex
from ocdl.model.tableau import Tableau, tableaux
from ocdl.network import Network, Trajectory
from ocdl.network.files import Model, ModelFileError, load, save
from ocdl.training.history import History
from ocdl.training.loop import train
from ocdl.training.multilevel import MultilevelResult, train_multilevel
from ocdl.training.optimisers import LBFGS, Adam, Armijo, Backtracking, Chain, GradientDescent, NewtonCG
from ocdl.training.result import Result, Status, Stop
from ocdl.training.watching import TrainingState

__all__ = [
    "L1",
    "LBFGS",
    "Adam",
    "Armijo",
    "Backtracking",
    "Certificate",
    "Chain",
    "Controls",
    "EvenSteps",
    "Flips",
    "GradientDescent",
    "History",
    "Model",
    "ModelFileError",
    "MultilevelResult",
    "Network",
    "NewtonCG",
    "ODEClassifier",
    "ODERegressor",
    "Objective",
    "Regulariser",
    "Result",
    "Stability",
    "Status",
    "Stop",
    "Tableau",
    "Tikhonov",
    "TimeSmoothness",
    "TrainingState",
    "Trajectory",
    "build_info",
    "datasets",
    "get_num_threads",
    "load",
    "load_model",
    "losses",
    "plot",
    "project_simplex",
    "save",
    "set_num_threads",
    "tableaux",
    "train",
    "train_multilevel",
]
__version__ = _version("ocdl")

if _TYPE_CHECKING:
    from ocdl import plot
    from ocdl.estimator import ODEClassifier, ODERegressor
    from ocdl.tables.model import load_model


def __getattr__(name: str) -> _Any:
    """Import what needs scikit-learn, pandas or matplotlib when it is asked for: that takes longer than all else."""
    if name in _estimator.__all__:
        return getattr(_estimator, name)
    if name == "load_model":
        return _import_module("ocdl.tables.model").load_model
    if name == "plot":
        return _import_module("ocdl.plot")
    raise AttributeError(f"module 'ocdl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
