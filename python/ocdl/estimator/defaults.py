"""The defaults of the estimators and of ``ocdl train``."""

from ocdl.base import validation
from ocdl.model.architecture import PRESET_ALIASES, PRESETS
from ocdl.model.fields import FIELDS
from ocdl.training.optimisers import LBFGS

ARCHITECTURE = "odenet"
N_LAYERS = 5
N_LAYERS_FEED_FORWARD = 2  # more layers learn noise, as the prior does not lead to a linear model
TABLEAU = "euler"
FIELD = next(iter(FIELDS))
ACTIVATION = "tanh"
HORIZON = 3.0
AUGMENT = 1
CLASSIFIER_LOSS = "cross_entropy"
REGRESSOR_LOSS = "squared_error"
OPTIMISER = LBFGS()
MAX_ITER = 230
TOL = 1e-4
RTOL = 1e-7  # a training has converged if an iteration lowers the loss by at most this fraction
LEARNING_RATE = 0.01  # of Adam, if it is given by name
ALPHA = "auto"
COMPONENTS = "auto"
PATIENCE = 10
VALIDATION_FRACTION = 0.1


def resolve_layers(architecture: str, given: int | None) -> int:
    """Return the number of layers of a network of this architecture: the given one, or the default."""
    if given is not None:
        return given
    preset = PRESETS[validation.choice(architecture, "architecture", PRESETS, PRESET_ALIASES)]
    return N_LAYERS if preset.get("residual", True) else N_LAYERS_FEED_FORWARD
