"""Errors for optional libraries that are not installed."""

from __future__ import annotations


def missing_library(what: str, library: str, extra: str) -> ImportError:
    """Return the error for a feature that needs a missing library; it names the extra to install."""
    return ImportError(f"{what} needs {library}, which is not installed: pip install 'ocdl[{extra}]'")
