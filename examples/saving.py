"""The command line shared by the scripts of the gallery: it writes a picture."""

import argparse
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure


def save(main: Callable[..., Figure], script: str) -> None:
    """Run the main function of a script, and write its picture to the current folder."""
    parser = argparse.ArgumentParser(
        description="Compute an example and write its picture.", allow_abbrev=False
    )
    parser.add_argument("-o", "--output", default=f"{Path(script).stem}.png", help="default %(default)s")
    parser.add_argument("--quick", action="store_true", help="run a small version, as in the tests")
    options = parser.parse_args()
    main(quick=options.quick).savefig(options.output)
    print(f"wrote {options.output}")
