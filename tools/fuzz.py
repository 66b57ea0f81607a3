"""Fuzz a reader with coverage as the guide: nothing but a TallytreeError may come out.

    pip install atheris
    python tools/fuzz.py json corpus/ -max_total_time=300

Formats: json, uai, wcsp, cfn, formula. The rest of the line goes to libFuzzer. What is found belongs into
tests/test_fuzzed.py.
"""

import sys
from types import FunctionType

import atheris

import tallytree as tt
from tallytree.io import Problem, read_cfn, read_problem, read_uai, read_wcsp
from tallytree.io.files import Source
from tallytree.io.formulas import Formula

READERS = {
    "json": read_problem,
    "uai": lambda source: Problem(read_uai(source)),
    "wcsp": read_wcsp,
    "cfn": read_cfn,
}


def instrument() -> None:
    """Instrument all functions of the readers; atheris' import hook does not see an editable install."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tallytree.io."):
            members = [vars(module), *(vars(c) for c in vars(module).values() if isinstance(c, type))]
            for function in {f for names in members for f in names.values() if isinstance(f, FunctionType)}:
                if function.__module__ == name:
                    atheris.instrument_func(function)


def one_file(kind: str, data: bytes) -> None:
    try:
        problem = READERS[kind](Source("file", data))
        problem.solve(memory_limit=2e8, operation_limit=1e7)
    except tt.TallytreeError:
        return


def one_formula(data: bytes) -> None:
    try:
        formula = Formula(data.decode("utf-8", "replace"))
        formula({name: [0.0, 1.0] for name in formula.names})
        if formula.kind == "truth":
            names = [tt.Statistic([((0,), [0, 1])], name=name) for name in formula.names]
            tt.io.Problem(tt.Model([2]), names, where=formula).solve(memory_limit=2e8, operation_limit=1e7)
    except tt.TallytreeError:
        return


def main() -> None:
    kind = sys.argv.pop(1)
    instrument()
    target = one_formula if kind == "formula" else lambda data: one_file(kind, data)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
