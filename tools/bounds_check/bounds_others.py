"""Lists, trees and sentences by bounds, compared with full tables and charts."""

import numpy as np
from bounds_single import constrained, constraint, function_of, verified

import tallytree as tt
from tallytree import parsing
from tallytree.testing import TREE_LOSSES


def close(a, b, size=1.0):
    return abs(a - b) <= 1e-9 * (size + abs(a))


# --- the k best ---------------------------------------------------------------------------------------------


def check_lists(rng, most, tally):
    """Check the k best that satisfy a constraint."""
    shape, model, statistics, tallies = constrained(rng, most)
    if not len(tallies):
        tally["skipped"] += 1
        return ""
    where, k = constraint(rng, statistics, tallies), int(rng.integers(1, 12))
    full, found = (tt.k_best(model, k, where=where, strategy=way) for way in ("full", "bounds"))
    tally[f"{shape}"] += 1
    tally["lists"] += 1
    words = f"the {k} best with {where}"
    if len(full) != len(found):
        return f"{words}: {len(found)} instead of {len(full)}"
    allowance = 4 * tt.testing.score_tolerance(model)
    for one, other in zip(full, found, strict=True):
        if abs(one.score - other.score) > allowance + 1e-12 * abs(one.score):
            return f"{words}: score {other.score!r} instead of {one.score!r}"
    if len({tuple(one.assignment) for one in found}) < len(found):
        return f"{words}: a labelling comes twice"
    for one in found:
        again = model.score(one.assignment)
        if abs(again - one.score) > allowance or not _allowed(model, where, one):
            return f"{words}: {one} is not among them"
    return ""


def _allowed(model, where, found):
    """Say whether a labelling satisfies a constraint: then it may be all that is allowed."""
    only = {v: int(state) for v, state in enumerate(found.assignment)}
    try:
        tt.solve(model, where=where, fixed=only, strategy="full")
    except tt.InfeasibleError:
        return False
    return True


# --- trees --------------------------------------------------------------------------------------------------

PHRASES, TAGS, WORDS = ("S", "A", "B", "@A/B"), ("n", "v"), ("fish", "eat", "old")


def _score(rng, ties):
    return float(rng.integers(-3, 4)) if ties else float(rng.normal())


def forest_of(rng, most):
    """Return a sentence with a random grammar, and random scores for rules over spans."""
    ties, names = bool(rng.random() < 0.4), (*PHRASES, *TAGS)

    def some(of):
        return of[int(rng.integers(len(of)))]

    binary = {("S", some(names), some(names)): _score(rng, ties) for _ in range(3)}
    binary |= {(some(PHRASES), some(names), some(names)): _score(rng, ties) for _ in range(9)}
    unary = {(some(PHRASES[:3]), some(TAGS)): _score(rng, ties) for _ in range(int(rng.integers(3)))}
    words = {tag: {word: _score(rng, ties) for word in WORDS} for tag in TAGS}
    grammar = parsing.Grammar(binary, unary, words, root="S")
    length = int(rng.integers(1, most + 1))
    sentence = [some(WORDS) for _ in range(length)]
    own = rng.normal(size=(length + 1, length + 1, len(grammar.binary)))
    own[rng.random(own.shape) < float(rng.choice([0.0, 0.05]))] = -np.inf
    scores = {} if ties else {"binary_scores": own}
    return parsing.Forest(grammar, " ".join(sentence), **scores)


def check_trees(rng, most, tally):
    """Check the best tree under a constraint, for a function, and with a loss, beside whole charts."""
    forest = forest_of(rng, min(most, 9))
    labels = [parsing.count(name) for name in ("A", "B", "S")]
    one, two = (labels[int(i)] for i in rng.permutation(3)[:2])
    at, more = int(rng.integers(0, 4)), int(rng.integers(0, 4))
    size, top = parsing.count(name="size"), parsing.count(max_depth=int(rng.integers(0, 3)), name="top")
    wheres = [one == at, one >= at, one <= at, (one == at) & (two <= more), (one >= at) & (one <= at + 1)]
    others = [
        (one == at) | (two >= more),
        ~(size == at + more),
        one - two >= at - 2,
        2 * size - 3 * one <= at,
        (top <= at) & (one >= more),
        (labels[0] <= at) & (labels[1] <= more) & (labels[2] >= 1),
    ]
    for where in (*wheres, others[int(rng.integers(len(others)))]):
        wrong = _tree_compared(lambda way, where=where: tt.solve(forest, where=where, strategy=way), tally)
        if wrong:
            return f"trees of {forest.words} with {where}: {wrong}"
    for read in ([one], [one, two], [one, parsing.count(name="few", cap=at + 1), two]):
        objective, words = function_of(rng, [at, more, 1][: len(read)])
        limit = wheres[int(rng.integers(5))] if rng.random() < 0.3 else None

        def ask(way, read=read, objective=objective, limit=limit):
            return tt.solve(forest, read, objective, where=limit, strategy=way)

        wrong = _tree_compared(ask, tally)
        if wrong:
            return f"trees of {forest.words}, {words} with {limit}: {wrong}"
    for _ in range(3):
        wrong = _check_tree_loss(rng, forest, wheres[int(rng.integers(5))], tally)
        if wrong:
            return wrong
    return ""


def _check_tree_loss(rng, forest, where, tally):
    try:
        truth = [found.tree for found in parsing.k_best(forest, 6)][-1]
    except (tt.InfeasibleError, IndexError):
        return ""
    loss, scaling = (
        TREE_LOSSES[int(rng.integers(len(TREE_LOSSES)))](truth),
        str(rng.choice(["margin", "slack"])),
    )
    margin, where = float(rng.choice([0.0, 0.3, 1.0, 8.0])), where if rng.random() < 0.5 else None

    def ask(way):
        return parsing.loss_augmented(forest, loss, scaling, margin=margin, where=where, strategy=way)

    wrong = _tree_compared(ask, tally)
    return f"trees of {forest.words}, {loss} {scaling} {margin} with {where}: {wrong}" if wrong else ""


def _tree_compared(ask, tally):
    found = {}
    for way in ("full", "bounds", "auto"):
        try:
            found[way] = ask(way)
        except tt.InfeasibleError as error:
            found[way] = type(error).__name__
    full = found["full"]
    return _tree_differs(full, found["bounds"], tally) or _tree_differs(full, found["auto"], tally)


def _tree_differs(full, bounds, tally):
    proof = None if isinstance(bounds, str) else bounds.certificate
    proven = isinstance(proof, parsing.TreeBoundsCertificate)
    tally["trees by bounds" if proven else "trees in full"] += 1
    if isinstance(full, str) or isinstance(bounds, str):
        return "" if full == bounds else f"{full} and {bounds}"
    if not close(full.value, bounds.value):
        return f"value {bounds.value!r} instead of {full.value!r}"
    if not proven:
        return ""
    try:
        tt.testing.check_bounds(bounds)
    except AssertionError as error:
        return f"certificate: {error}"
    return ""


# --- sentences ----------------------------------------------------------------------------------------------


def check_sentences(rng, most, tally):
    """Check BLEU and ROUGE on short sentences: the value of the compiled machine, and the certificate."""
    length, labels = int(rng.integers(1, min(most, 6))), int(rng.integers(1, 4))
    factor = float(rng.choice([0.0, 0.2, 1.0, 5.0]))
    unary, pairs = factor * rng.normal(size=(length, labels)), factor * rng.normal(size=(labels, labels))
    if rng.random() < 0.3:
        unary, pairs = np.round(unary), np.round(pairs)
    model = tt.Model.chain(unary, pairs)
    references = [
        rng.integers(0, labels + 1, int(rng.integers(1, 7))).tolist() for _ in range(int(rng.integers(1, 3)))
    ]
    truth = rng.integers(0, labels, length)
    for _ in range(4):
        loss, scaling = _sentence_loss(rng, references), str(rng.choice(["margin", "slack"]))
        margin = float(rng.choice([0.0, 0.5, 1.0, 4.0, 20.0]))
        full, found = (
            tt.loss_augmented(model, loss, scaling, margin=margin, truth=truth, strategy=way)
            for way in ("full", "bounds")
        )
        tally["sentences"] += 1
        wrong = verified(found)
        if not close(full.value, found.value, 1 + factor):
            wrong = f"value {found.value!r} instead of {full.value!r}"
        if wrong:
            return f"{loss} {scaling} {margin}: {wrong}"
    return ""


def _sentence_loss(rng, references):
    order, clip = int(rng.integers(1, 5)), bool(rng.random() < 0.7)
    kind = int(rng.integers(3))
    if kind == 0:
        return tt.losses.Bleu(references, order, clip=clip)
    if kind == 1:
        return tt.losses.RougeN(references, min(order, 3), clip=clip)
    return tt.losses.RougeL(references, float(rng.choice([0.5, 1.0, 2.0])))
