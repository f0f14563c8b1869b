"""What the theory says of a network, measured, and what its derivatives say of the data."""
