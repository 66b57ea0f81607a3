"""Compare the names in src/tallytree/_native.pyi with those of the compiled module.

The stub is written by hand, with more precise types than nanobind generates, so only the names of functions,
classes and members are compared, not signatures. `--print` shows the generated stub.
"""

import ast
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

import tallytree._native

STUB = Path(__file__).parent.parent / "src" / "tallytree" / "_native.pyi"


def generated() -> str:
    generator = StubGen(module=tallytree._native)
    generator.put(tallytree._native)
    return generator.get()


def public_names(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """List every public function, class, member and constant in `body`, as `Class.member`."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef(name=name):
                found = [name]
            case ast.ClassDef(name=name, body=members):
                found = [name]
                if not name.startswith("_"):
                    names |= public_names(members, f"{prefix}{name}.")
            case ast.AnnAssign(target=ast.Name(id=name)):
                found = [name]
            case ast.Assign(targets=targets):
                found = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                found = []
        names |= {prefix + name for name in found if not name.startswith("_")}
    return names


def main() -> int:
    if "--print" in sys.argv[1:]:
        print(generated())
        return 0
    if not STUB.exists():
        print(f"{STUB} is missing; `python tools/check_stub.py --print` shows what to start from")
        return 1
    have = public_names(ast.parse(STUB.read_text()).body)
    want = public_names(ast.parse(generated()).body)
    for name in sorted(want - have):
        print(f"_native.pyi lacks {name}")
    for name in sorted(have - want):
        print(f"_native.pyi has {name}, which the compiled module has not")
    return int(have != want)


if __name__ == "__main__":
    sys.exit(main())
