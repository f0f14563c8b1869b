"""Depth as time: the same flow with more layers, or without those that last no time."""
