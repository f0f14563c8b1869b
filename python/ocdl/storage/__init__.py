"""Files, whole or not at all, and their format; neither knows what a network is."""
