"""What every other room stands on: checks of what comes in, random numbers, threads."""
