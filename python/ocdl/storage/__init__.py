"""Files that are written whole or not at all, and their format; nothing here depends on networks."""
