"""Measure properties of the theory on a network, and compute its derivatives."""
