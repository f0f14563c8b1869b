"""How long do the loss and its gradient with respect to all controls take?"""

from __future__ import annotations

from comparison import run
from jobs import GRADIENT_JOBS

if __name__ == "__main__":
    run("gradient", "gradient", "Loss and gradient", GRADIENT_JOBS)
