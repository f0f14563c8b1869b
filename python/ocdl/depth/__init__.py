"""Depth as time: refine, resample and prune the layers of a flow."""
