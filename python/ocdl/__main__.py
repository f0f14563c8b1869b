"""``python -m ocdl`` is the command line."""

import sys

from ocdl.cli import main

if __name__ == "__main__":
    sys.exit(main())
