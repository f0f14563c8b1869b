"""`Network`, the face of everything below it, and the files that hold one with its controls."""

from ocdl.model.flow import Trajectory
from ocdl.network.facade import Network

__all__ = ["Network", "Trajectory"]
