"""The definition of a network: method, controls, objective, architecture."""
