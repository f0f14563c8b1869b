"""`Network`, which combines the modules below it, and the files of networks and controls."""

from ocdl.model.forward import Trajectory
from ocdl.network.facade import Network

__all__ = ["Network", "Trajectory"]
