"""Deep learning as optimal control: networks as discretised ODEs, with exact gradients from the adjoint sweep."""

from ocdl import _load_core  # first: it chooses the compiled core that every other module imports  # noqa: F401

# isort: split
from importlib.metadata import version as _version

from ocdl._core import build_info
from ocdl.controls import Controls
from ocdl.network import Network, Trajectory
from ocdl.objective import L1, Objective, Regulariser, Tikhonov, TimeSmoothness
from ocdl.projection import project_simplex
from ocdl.tableau import Tableau, tableaux
from ocdl.threads import get_num_threads, set_num_threads

__all__ = [
    "L1",
    "Controls",
    "Network",
    "Objective",
    "Regulariser",
    "Tableau",
    "Tikhonov",
    "TimeSmoothness",
    "Trajectory",
    "build_info",
    "get_num_threads",
    "project_simplex",
    "set_num_threads",
    "tableaux",
]
__version__ = _version("ocdl")
