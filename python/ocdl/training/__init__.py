"""Training: optimisers, the loop, who looks on, what happened, and going on from a checkpoint."""
