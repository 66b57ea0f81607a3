"""Coverage-guided fuzzing of a reader, which may raise only TallytreeError.

    pip install atheris
    python tools/fuzz.py --seeds treebank corpus/        # files to begin with
    python tools/fuzz.py treebank corpus/ -max_total_time=300

Formats: json, uai, wcsp, cfn, formula; conll, conllu, treebank, grammar; model (the bytes of a saved
estimator), header (what is written in one), checkpoint (the same for one), array, stored (a folder of
sequences). The rest of the line goes to libFuzzer. What is found belongs into tests/io/test_fuzzed.py or
tests/io/test_fuzzed_texts.py.
"""

import io
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import numpy as np

import tallytree as tt
from tallytree import parsing
from tallytree.io import ProblemFile, read_cfn, read_conll, read_conllu, read_problem, read_uai, read_wcsp
from tallytree.io.files import Source
from tallytree.learning import SequenceSVM, WindowFeatures, load, save, store_sequences
from tallytree.learning.attributes import Hashed
from tallytree.learning.files import array_of
from tallytree.learning.stored import StoredSequences
from tallytree.statistics.formulas import Formula

FOLDER = Path(tempfile.mkdtemp())
SENTENCES = [[("the", "DT"), ("cat", "NN")], [("a", "DT"), ("dog", "NN"), ("sat", "VB")]]
LABELS = [["B", "I"], ["B", "I", "O"]]
TREES = (
    "( (S (NP-SBJ (DT the) (NN cat)) (VP (VBD sat) (NP (-NONE- *)))) )\n(NP=2 (NN fish) (PRT|ADVP (RP up)))\n"
)
READERS = {
    "json": read_problem,
    "uai": lambda source: ProblemFile(read_uai(source)),
    "wcsp": read_wcsp,
    "cfn": read_cfn,
}


def problem(kind: str) -> Callable[[bytes], None]:
    def one(data: bytes) -> None:
        READERS[kind](Source("file", data)).solve(memory_limit=2e8, operation_limit=1e7)

    return one


def formula(data: bytes) -> None:
    found = Formula(data.decode("utf-8", "replace"))
    found({name: [0.0, 1.0] for name in found.names})
    if found.kind == "truth":
        names = [tt.Statistic([((0,), [0, 1])], name=name) for name in found.names]
        ProblemFile(tt.Model([2]), names, where=found).solve(memory_limit=2e8, operation_limit=1e7)


# --- texts --------------------------------------------------------------------------------------------------


def text(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig")


def conll(data: bytes) -> None:
    for sentence in read_conll(text(data)):
        assert sentence and len({len(row) for row in sentence}) == 1


def conllu(data: bytes) -> None:
    for sentence in read_conllu(text(data), words_only=False):
        assert all(token.id for token in sentence)


def treebank(data: bytes) -> None:
    trees = parsing.read_treebank(Source("file", data))
    parsing.write_treebank(FOLDER / "trees", trees)
    assert parsing.read_treebank(FOLDER / "trees", traces=True, functions=True) == trees
    if trees:
        grammar = parsing.Grammar.from_treebank(trees[:3])
        parsing.write_grammar(FOLDER / "grammar", grammar)
        parsing.read_grammar(FOLDER / "grammar")


def grammar(data: bytes) -> None:
    found = parsing.read_grammar(Source("file", data))
    if len(found.symbols) < 50:
        parsing.Forest(found, "the cat sat").best()


# --- saved arrays -------------------------------------------------------------------------------------------


def estimator(**options: object) -> SequenceSVM:
    svm = SequenceSVM(C=1.0, features=WindowFeatures(), **options)
    with warnings.catch_warnings(action="ignore"):
        return svm.fit(SENTENCES, LABELS)


def parts(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def model(data: bytes) -> None:
    (FOLDER / "model.npz").write_bytes(data)
    use()


def use() -> None:
    found = load(FOLDER / "model.npz")
    if isinstance(found, SequenceSVM) and found.features is not None:
        found.predict(SENTENCES)


def header(data: bytes) -> None:
    np.savez(FOLDER / "model.npz", **{**KEPT["model"], "header": np.frombuffer(data, dtype=np.uint8)})
    use()


def checkpoint(data: bytes) -> None:
    """The first array is chosen by a byte and gets the others; or the header does."""
    names = sorted(KEPT["checkpoint"])
    name = names[data[0] % len(names)] if data else "header"
    old = KEPT["checkpoint"][name]
    size = old.dtype.itemsize
    new = np.frombuffer(
        data[1:] if name == "header" else data[1 : 1 + (len(data) - 1) // size * size], old.dtype
    )
    np.savez(FOLDER / "run.npz", **{**KEPT["checkpoint"], name: new})
    estimator(checkpoint=FOLDER / "run.npz", max_passes=3, tolerance=0.0)


def stored(data: bytes) -> None:
    files = sorted(KEPT["stored"])
    name = files[data[0] % len(files)] if data else "labels"
    for one, kept in KEPT["stored"].items():
        (FOLDER / "stored" / one).write_bytes(data[1:] if one == name else kept)
    found = StoredSequences(FOLDER / "stored", labels=3, loss=tt.losses.HammingDistance())
    found.models(range(min(len(found), 5)), np.zeros(found.dimension))


KEPT: dict[str, dict] = {}


def prepare() -> dict[str, list[bytes]]:
    """Create the saved files that inputs are derived from; return seeds."""
    save(estimator(), FOLDER / "model.npz")
    KEPT["model"] = parts(FOLDER / "model.npz")
    estimator(checkpoint=FOLDER / "first.npz", max_passes=1, tolerance=0.0)
    KEPT["checkpoint"] = parts(FOLDER / "first.npz")
    encoder = Hashed(8)
    store_sequences(FOLDER / "stored", [(encoder.rows([["a"], ["b"]]), [0, 1])])
    KEPT["stored"] = {path.name: path.read_bytes() for path in (FOLDER / "stored").iterdir()}
    trees = parsing.read_treebank(Source("file", TREES.encode()))
    parsing.write_grammar(FOLDER / "grammar", parsing.Grammar.from_treebank(trees))
    row = "\t".join(["1", "cats", "cat", "NOUN", "NNS", "_", "0", "root", "_", "_"])
    buffer = io.BytesIO()
    np.save(buffer, np.arange(6).reshape(2, 3))
    return {
        "conll": [b"the DT B-NP\ncat\tNN I-NP\n\n-DOCSTART- -X- O\n\nyes UH O\n"],
        "conllu": [f"# text\n1-2\t{row[2:]}\n{row}\n1.1\t{row[2:]}\n\n".encode()],
        "treebank": [TREES.encode()],
        "grammar": [(FOLDER / "grammar").read_bytes()],
        "model": [(FOLDER / "model.npz").read_bytes()],
        "header": [KEPT["model"]["header"].tobytes()],
        "checkpoint": [
            bytes([i]) + KEPT["checkpoint"][name].tobytes()
            for i, name in enumerate(sorted(KEPT["checkpoint"]))
        ],
        "array": [buffer.getvalue()],
        "stored": [bytes([i]) + KEPT["stored"][name] for i, name in enumerate(sorted(KEPT["stored"]))],
        "json": [json.dumps({"tallytree": 1, "model": {"cardinalities": [2]}}).encode()],
    }


def array(data: bytes) -> None:
    try:
        array_of(data)
    except ValueError:
        return


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{kind: problem(kind) for kind in READERS},
    **{one.__name__: one for one in (formula, conll, conllu, treebank, grammar)},
    **{one.__name__: one for one in (model, header, checkpoint, array, stored)},
}


def only_our_errors(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def one(data: bytes) -> None:
        try:
            target(data)
        except tt.TallytreeError:
            return

    return one


def instrument(atheris) -> None:
    """Instrument all functions of the readers; atheris' import hook does not see an editable install."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("tallytree.io.", "tallytree.learning.", "tallytree.parsing.")):
            members = [vars(module), *(vars(c) for c in vars(module).values() if isinstance(c, type))]
            for function in {f for names in members for f in names.values() if isinstance(f, FunctionType)}:
                if function.__module__ == name:
                    atheris.instrument_func(function)


def main() -> None:
    if sys.argv[1] == "--seeds":
        folder = Path(sys.argv[3])
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(prepare().get(sys.argv[2], [])):
            (folder / f"seed{number}").write_bytes(seed)
        return
    import atheris

    kind = sys.argv.pop(1)
    prepare()
    instrument(atheris)
    atheris.Setup(sys.argv, only_our_errors(TARGETS[kind]))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
