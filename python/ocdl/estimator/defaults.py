"""What an estimator is unless it is told otherwise: the estimators and ``ocdl train`` take these from here."""

from ocdl.model.fields import FIELDS
from ocdl.training.optimisers import LBFGS

ARCHITECTURE = "odenet"
N_LAYERS = 5
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
