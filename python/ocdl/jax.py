"""Flows and learned systems as functions of JAX; needs the extra ``ocdl[jax]``."""

from ocdl.interop.extras import missing_library

try:
    from ocdl.interop.jax_dynamics import dynamics as dynamics
    from ocdl.interop.jax_flow import flow as flow
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise missing_library("ocdl.jax", "JAX", "jax") from error

__all__ = ["dynamics", "flow"]
