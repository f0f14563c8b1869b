"""``python -m ocdl`` is the command line."""

import gc
import sys
from typing import NoReturn

from ocdl.cli import main


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    code = main()
    gc.freeze()  # Python would look through all that was imported before it ends, for three tenths of a second
    sys.exit(code)


if __name__ == "__main__":
    run()
