"""Flows as modules of PyTorch; needs the extra ``ocdl[torch]``."""

from ocdl.interop.torch_layer import OCDLayer as OCDLayer

__all__ = ["OCDLayer"]
