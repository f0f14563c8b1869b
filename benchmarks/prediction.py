"""How long do the outputs of many points take?"""

from __future__ import annotations

from comparison import run
from jobs import PREDICTION_JOBS

if __name__ == "__main__":
    run("prediction", "prediction", "Outputs of a network", PREDICTION_JOBS)
