"""Cases on files: what is written, and what is read back from it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import draws
from answering import Text, asked
from draws import Rng, coin, pick

import tallytree as tt
from tallytree import parsing
from tallytree.io import Parameter, Problem, Source

OBJECTIVES = (
    "score - weight * abs(a - 2)",
    "score + min(a, weight) - max(b, 0) ** 2 / 4",
    "where(a * b <= 2, score, -inf)",
    "exp(score / 8) - log(1 + abs(a))",
    None,
)
CONSTRAINTS = (
    "a <= 2",
    "a >= 1 and b <= 3",
    "2*a - b == 1",
    "1 <= a <= 3",
    "not a == 2 or b != 1",
    "a + b >= 90",
    None,
)


@contextlib.contextmanager
def _folder() -> Any:
    """Work in a temporary folder, so that its path does not appear in error messages."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        yield Path()


def _written(write: Callable[[Path], Any]) -> tuple[Any, bytes]:
    with _folder() as folder:
        returned = write(folder / "file")
        return returned, (folder / "file").read_bytes()


def _counts(rng: Rng, model: tt.Model) -> list[tt.Statistic]:
    """Statistics of single variables, which all formats can hold."""
    tables = [[rng.integers(0, 3, size=n) for n in model.cardinalities] for _ in range(2)]
    pairs = [[((v,), table) for v, table in enumerate(some)] for some in tables]
    return [tt.Statistic(some, name=name) for some, name in zip(pairs, "ab", strict=True)]


def uai(rng: Rng) -> Any:
    model = draws.model(rng)
    evidence = pick(rng, (None, {0: 0}))

    def answers() -> list[Any]:
        _, data = _written(lambda path: tt.io.write_uai(model, path))
        back = tt.io.read_uai(Source("file", data), evidence)
        return [data, back, asked(tt.solve, back)]

    return asked(answers)


def networks(rng: Rng) -> Any:
    """Write a problem as toulbar2's files, and read them back."""
    model = draws.model(rng, largest=5)
    where = pick(rng, ("a <= 2", "a >= 1 and b <= 3", "2*a - b == 1", None))
    problem = Problem(model, _counts(rng, model), where=where)
    decimals = pick(rng, (None, 2, 4))
    formats = ((tt.io.write_wcsp, tt.io.read_wcsp), (tt.io.write_cfn, tt.io.read_cfn))

    def answers(write: Any, read: Any) -> list[Any]:
        scale, data = _written(lambda path: write(problem, path, decimals=decimals))
        back = read(Source("file", data))
        return [scale, data, back.model, asked(back.solve), asked(back.k_best, 2)]

    return [asked(answers, *both) for both in formats]


def global_costs(rng: Rng) -> Any:
    """Read a network whose costs are of counts."""
    costs = rng.integers(0, 5, size=(3, 2)).tolist()
    low, price = int(rng.integers(3)), int(rng.integers(1, 6))
    metric = pick(rng, ("lin", "quad"))
    unary = "\n".join(f" f{v}: {{scope: [x{v}], costs: {row}}}," for v, row in enumerate(costs))
    text = f"""{{problem: {{name: drawn, mustbe: "<{int(rng.integers(6, 60))}.0"}},
 variables: {{x0: [no yes], x1: [no yes], x2: [no yes]}},
 functions: {{
{unary}
 f01: {{scope: [x0 x1], costs: [0 1 {price} 0]}},
 among: {{scope: [x0 x1 x2], type: wamong,
  params: {{metric: {metric} cost: {price} values: [1] min: {low} max: {low + 1}}}}}}}}}"""

    def answers() -> list[Any]:
        problem = tt.io.read_cfn(Source("drawn.cfn", text.encode()))
        formula = problem.objective.text if problem.objective else ""
        return [formula, problem.model, asked(problem.solve), asked(problem.profile)]

    return asked(answers)


def problems(rng: Rng) -> Any:
    model = draws.chain(rng, ("dry", "wet")) if coin(rng) else draws.model(rng, largest=5)
    named = [tt.count(state=1, name="a", cap=pick(rng, (None, 3))), tt.count(state=0, name="b")]
    statistics = named if coin(rng) else _counts(rng, model)
    parameters = {"weight": pick(rng, (1.5, Parameter(2.0, 0.0, 5.0)))}

    def answers() -> list[Any]:
        objective, where = pick(rng, OBJECTIVES), pick(rng, CONSTRAINTS)
        problem = Problem(model, statistics, objective, where=where, parameters=parameters)
        _, data = _written(lambda path: tt.io.write_problem(problem, path))
        back = tt.io.read_problem(Source("file", data))
        changed = back.with_parameters(weight=0.5)
        found = [asked(one.solve) for one in (problem, back, changed)]
        return [data, back.model, found, asked(back.k_best, 3), asked(back.profile)]

    return [asked(answers), asked(_broken, rng)]


def _broken(rng: Rng) -> Any:
    """Read a file with something wrong in it."""
    states = pick(rng, ("[2, 0]", "[2, 2, -1]", "[2", '["a"]', "[2, 2]"))
    rest = pick(
        rng, ("", ', "objective": "scor + 1"', ', "where": "ones >= 2"', ', "title": 3', ', "more": []')
    )
    text = f'{{"tallytree": 1, "model": {{"cardinalities": {states}}}{rest}}}'
    return tt.io.read_problem(Source("mine.json", text.encode())).solve()


def grammars(rng: Rng) -> Any:
    """Write a grammar and a treebank, and read them back."""
    grammar = draws.grammar(rng)
    trees = [draws.tree(rng, int(rng.integers(1, 7))) for _ in range(4)]
    counted = parsing.Grammar.from_treebank([draws.tree(rng, 5) for _ in range(3)])

    def answers(made: parsing.Grammar) -> list[Any]:
        _, data = _written(lambda path: parsing.write_grammar(path, made))
        back = parsing.read_grammar(Source("file", data))
        return [data, asked(parsing.Forest(back, "fish eat old fish").best)]

    _, bank = _written(lambda path: parsing.write_treebank(path, trees))
    broken = bank[: int(rng.integers(len(bank)))]
    read = [asked(parsing.read_treebank, Source("file", data)) for data in (bank, broken)]
    return [asked(answers, grammar), asked(answers, counted), bank, read]


def graphs(rng: Rng) -> Any:
    """Go through networkx, and by the order of a contraction path."""
    model = draws.model(rng, largest=6)
    graph = tt.io.to_networkx(model)
    operands = tt.io.ContractionPath.operands(model)
    path = [(0, 1)] * (len(operands) - 1)
    planned = asked(lambda: tt.plan(model, order=tt.io.ContractionPath(model, path), memory_limit=2.0**30))
    return [sorted(graph.nodes), sorted(map(sorted, graph.edges)), operands, planned]


def rows(rng: Rng) -> Any:
    """Read columns of words and tags."""
    sentences = [[(pick(rng, draws.WORDS), pick(rng, draws.CHUNKS)) for _ in range(3)] for _ in range(3)]
    sentences[1][1] = pick(rng, (("old", "O"), ("old",), ("# old", "O")))
    text = "\n\n".join("\n".join(" ".join(row) for row in sentence) for sentence in sentences)
    lines = [f"{k}\t{word}\t_\tX" + "\t_" * pick(rng, (6, 6, 6, 5)) for k, word in enumerate(draws.WORDS, 1)]
    return [
        asked(tt.io.read_conll, StringIO(text), comments=pick(rng, (None, "#"))),
        asked(tt.io.read_conllu, StringIO("\n".join([*lines, ""]))),
    ]


COMMANDS = (
    ("demo",),
    ("solve", "drawn.json"),
    ("solve", "drawn.json", "--where", "ones == 2"),
    ("solve", "drawn.json", "--where", "onse == 2"),
    ("profile", "drawn.json"),
    ("plan", "drawn.json", "--memory-limit", "1e9"),
    ("explore", "drawn.json"),
    ("convert", "drawn.json", "drawn.wcsp"),
    ("schema",),
)


def commands(rng: Rng) -> Any:
    """Run the command line on a problem file; what it prints is wording, what it writes is an answer."""
    model = draws.chain(rng, ("dry", "wet"), shortest=3)
    problem = Problem(model, [tt.count(state="wet", name="ones")], "score - abs(ones - 1)")
    with _folder() as folder:
        tt.io.write_problem(problem, folder / "drawn.json")
        command = [sys.executable, "-m", "tallytree", *pick(rng, COMMANDS)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        made = {path.name: path.read_bytes() for path in sorted(folder.glob("drawn.*"))}
        page = Text(made.pop("drawn.html", b"").decode())
    return [
        command[3:],
        ran.returncode,
        Text(ran.stdout),
        Text(ran.stderr),
        made,
        page,
    ]
