"""Flows as functions of JAX; needs the extra ``ocdl[jax]``."""

from ocdl.interop.jax_flow import flow as flow

__all__ = ["flow"]
