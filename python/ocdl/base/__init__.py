"""The foundations that every other package uses: validation of arguments, random numbers, threads."""
