"""What an estimator is unless it is told otherwise: the estimators and ``ocdl train`` take these from here."""

from ocdl.base import validation
from ocdl.model.architecture import PRESET_ALIASES, PRESETS
from ocdl.model.fields import FIELDS
from ocdl.training.optimisers import LBFGS

ARCHITECTURE = "odenet"
N_LAYERS = 5
N_LAYERS_FEED_FORWARD = 2  # more of them learn noise: there is no linear model to fall back to
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
RTOL = 1e-7  # a training has converged when an iteration lowers the loss by no more than this share of it
LEARNING_RATE = 0.01  # of Adam, where it is asked for by name
ALPHA = 1.0
PATIENCE = 10
VALIDATION_FRACTION = 0.1  # where early stopping has to look at something


def layers_of(architecture: str, given: int | None) -> int:
    """Return how many layers a network of this architecture has: those given, or those that do it good."""
    if given is not None:
        return given
    preset = PRESETS[validation.choice(architecture, "architecture", PRESETS, PRESET_ALIASES)]
    return N_LAYERS if preset.get("residual", True) else N_LAYERS_FEED_FORWARD
