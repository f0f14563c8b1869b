"""Libraries that not everybody has: what to install where one is missing."""

from __future__ import annotations


def missing(what: str, library: str, extra: str) -> ImportError:
    """Return the error of something that needs a library which is not there."""
    return ImportError(f"{what} needs {library}, which is not installed: pip install 'ocdl[{extra}]'")
