"""The samples of a training: arrays in memory, or the rows of a source that are read as they are needed."""
