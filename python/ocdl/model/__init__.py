"""What a network is: method, controls, objective, architecture."""
