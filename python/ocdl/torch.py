"""Flows and learned systems as modules of PyTorch; needs the extra ``ocdl[torch]``."""

from ocdl.interop.extras import missing_library

try:
    from ocdl.interop.torch_dynamics import DynamicsLayer as DynamicsLayer
    from ocdl.interop.torch_layer import OCDLayer as OCDLayer
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise missing_library("ocdl.torch", "PyTorch", "torch") from error

__all__ = ["DynamicsLayer", "OCDLayer"]
