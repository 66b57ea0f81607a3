"""What the scripts of the gallery share: the command line that writes a picture."""

import argparse
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure


def save(main: Callable[..., Figure], script: str) -> None:
    """Run a script's main function, and write its picture beside where it was started."""
    parser = argparse.ArgumentParser(
        description="Compute an example and write its picture.", allow_abbrev=False
    )
    parser.add_argument("-o", "--output", default=f"{Path(script).stem}.png", help="default %(default)s")
    parser.add_argument("--quick", action="store_true", help="a small version, as the tests run it")
    options = parser.parse_args()
    main(quick=options.quick).savefig(options.output)
    print(f"wrote {options.output}")
