"""Samples that are not in memory: sources of rows, and how the core gets at them."""
