"""What a classifier is unless it is told otherwise: `ODEClassifier` and ``ocdl train`` take these from here."""

from ocdl.model.fields import FIELDS
from ocdl.training.optimisers import Adam

ARCHITECTURE = "odenet"
N_LAYERS = 20
TABLEAU = "euler"
FIELD = next(iter(FIELDS))
LOSS = "cross_entropy"
MAX_ITER = 300
OPTIMISER = Adam(lr=0.01)  # it stops before it learns the noise
