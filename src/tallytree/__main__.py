"""``python -m tallytree``: the command line."""

import sys

from tallytree.cli import main

if __name__ == "__main__":
    sys.exit(main())
