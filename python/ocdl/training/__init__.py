"""Training: optimisers, the loop with its callbacks and checkpoints, and the results."""
