"""Deep learning as optimal control: networks as discretised ODEs, with exact gradients from the adjoint sweep."""

from ocdl import _load_core  # first: it chooses the compiled core that every other module imports  # noqa: F401

# isort: split
from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ocdl import datasets, distributed, losses
from ocdl import estimator as _estimator
from ocdl.analysis.certificate import Certificate, Check
from ocdl.analysis.observed_order import Convergence
from ocdl.analysis.scipy_objective import ScipyObjective
from ocdl.analysis.sensitivity import MinimalPerturbation
from ocdl.analysis.stability import Stability
from ocdl.analysis.taylor import Taylor
from ocdl.base.build import build_info
from ocdl.base.threads import get_num_threads, set_num_threads
from ocdl.data.row_source import RowSource
from ocdl.depth.pruning import PruningSummary
from ocdl.files import load, save
from ocdl.model.controls import Controls, Part
from ocdl.model.initial_states import InitialStates
from ocdl.model.objective import Objective
from ocdl.model.observations import Observations
from ocdl.model.penalties import L1, EvenSteps, GroupL1, Kinetic, Penalty, Tikhonov, TimeSmoothness
from ocdl.model.projection import project_simplex
from ocdl.model.tableau import Tableau, tableaux
from ocdl.network import Network, Trajectory
from ocdl.network.files import ModelFileError, SavedNetwork
from ocdl.training.checkpoint import Checkpoint
from ocdl.training.history import History
from ocdl.training.loop import train
from ocdl.training.multilevel import MultilevelResult, train_multilevel
from ocdl.training.optimisers import LBFGS, Adam, Armijo, Backtracking, Chain, GradientDescent, NewtonCG
from ocdl.training.result import Result, Status
from ocdl.training.validation import Validation
from ocdl.training.watching import TrainingState

__all__ = [
    "L1",
    "LBFGS",
    "Adam",
    "Armijo",
    "Backtracking",
    "Certificate",
    "Chain",
    "Check",
    "Checkpoint",
    "Controls",
    "Convergence",
    "Dynamics",
    "EvenSteps",
    "GradientDescent",
    "GroupL1",
    "History",
    "InitialStates",
    "Kinetic",
    "MinimalPerturbation",
    "ModelFileError",
    "MultilevelResult",
    "Network",
    "NewtonCG",
    "ODEClassifier",
    "ODERegressor",
    "Objective",
    "Observations",
    "OptimalInputs",
    "Part",
    "Penalty",
    "PruningSummary",
    "Result",
    "RowSource",
    "SavedNetwork",
    "ScipyObjective",
    "Stability",
    "Status",
    "TableError",
    "TableModel",
    "TablePreprocessor",
    "Tableau",
    "Taylor",
    "Tikhonov",
    "TimeSmoothness",
    "TrainingState",
    "Trajectory",
    "Validation",
    "build_info",
    "datasets",
    "distributed",
    "export_onnx",
    "get_num_threads",
    "load",
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
_LAZY = {
    "Dynamics": "ocdl.dynamics.estimator",
    "OptimalInputs": "ocdl.dynamics.control",
    "TableError": "ocdl.tables.frame",
    "TableModel": "ocdl.tables.model",
    "TablePreprocessor": "ocdl.tables.preprocessor",
    "export_onnx": "ocdl.interop.onnx_export",
}
_OF_EXTRAS = ("jax", "torch")  # not in __all__: `from ocdl import *` must not need them

if _TYPE_CHECKING:
    from ocdl import jax, plot, torch  # noqa: F401
    from ocdl.dynamics import Dynamics
    from ocdl.dynamics.control import OptimalInputs
    from ocdl.estimator import ODEClassifier, ODERegressor
    from ocdl.interop.onnx_export import export_onnx
    from ocdl.tables.frame import TableError
    from ocdl.tables.model import TableModel
    from ocdl.tables.preprocessor import TablePreprocessor


def __getattr__(name: str) -> _Any:
    """Import what needs other libraries when it is asked for: that takes longer than all else, or needs an extra."""
    if name in _estimator.__all__:
        return getattr(_estimator, name)
    if name in _LAZY:
        return getattr(_import_module(_LAZY[name]), name)
    if name in ("plot", *_OF_EXTRAS):
        return _import_module(f"ocdl.{name}")
    raise AttributeError(f"module 'ocdl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
