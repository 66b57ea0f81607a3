"""Print the requirements of extras in pyproject.toml, and the package's own, one word each.

They are installed before the package itself, whose build needs some of them.
"""

import argparse
import re
import tomllib
from pathlib import Path


def expand(extra: str, extras: dict[str, list[str]]) -> list[str]:
    """List an extra's requirements, those of the extras it refers to included."""
    found = []
    for requirement in extras[extra]:
        nested = re.fullmatch(r"tallytree\[(.*)\]", requirement)
        if nested:
            for name in nested[1].split(","):
                found += expand(name.strip(), extras)
        else:
            found.append(requirement)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*")
    parser.add_argument("--only", help="comma-separated distributions to keep")
    arguments = parser.parse_args()
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    requirements = list(project["dependencies"])
    for extra in arguments.extras:
        requirements += expand(extra, project["optional-dependencies"])
    if arguments.only:
        keep = arguments.only.split(",")
        requirements = [r for r in requirements if re.match(r"[\w.-]+", r)[0] in keep]
    print(*dict.fromkeys(requirements))


if __name__ == "__main__":
    main()
