"""`Network`, the face of everything below it, and the files that hold one with its controls."""

from ocdl.network.facade import Network, Trajectory

__all__ = ["Network", "Trajectory"]
