"""Compare answers by bounds with those of whole tables, on random problems of every shape.

python tools/bounds_check --seed 1 --count 10000

Each question is answered both ways; value, tally and score must agree, and if the answer has a certificate
by bounds, it is verified. Values that differ only by rounding are equal, and either tally is accepted.
`--max-variables` makes problems larger, and `--kinds` chooses among them: single questions with a constraint,
a loss or a function as objective; the k best; trees with constraints and losses; BLEU and ROUGE; batches of
models, of chains for learning, of graphs from any prices and of models with constraints, in which `"auto"`
must give the very labelling of the whole table. Lists and chains have no certificate of bounds: their values
and scores are compared.

A problem is a model, a sentence or a batch, and has several questions. What is printed in the end counts them
by kind and by shape.
"""

import argparse
import sys
from collections import Counter
from functools import partial
from time import perf_counter

import numpy as np
from bounds_batches import check_batch, check_chains, check_constrained, check_graphs
from bounds_others import check_lists, check_sentences, check_trees
from bounds_single import SHAPES, check_single, function_problems, loss_problems, solve_problems

KINDS = {
    "solve": partial(check_single, problems=solve_problems),
    "loss": partial(check_single, problems=loss_problems),
    "function": partial(check_single, problems=function_problems),
    "lists": check_lists,
    "trees": check_trees,
    "sentences": check_sentences,
    "batch": check_batch,
    "chains": check_chains,
    "graphs": check_graphs,
    "constrained": check_constrained,
}
COMPARED = (
    "by bounds",
    "in full",
    "refused",
    "lists",
    "trees by bounds",
    "trees in full",
    "sentences",
    "in a batch by bounds",
    "in a batch in full",
    "chains",
    "graphs",
    "graphs from prices",
    "constrained",
    "several tallies",
)


def check(seed, most, tally, kinds):
    """Return what is wrong with a problem, or nothing."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(kinds)))
    return KINDS[kind](rng, most=most, tally=tally)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--max-variables", type=int, default=14)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=tuple(KINDS))
    options = parser.parse_args()
    tally, bad = Counter(), 0
    for number in range(options.count):
        seed = options.seed * 1_000_000_007 + number
        began = perf_counter()
        wrong = check(seed, options.max_variables, tally, options.kinds)
        if perf_counter() - began > 2:
            print(f"problem {seed} took {perf_counter() - began:.1f} s", flush=True)
        if wrong:
            bad += 1
            print(f"problem {seed}: {wrong}", flush=True)
    compared = {kind: tally[kind] for kind in COMPARED if tally[kind]}
    shapes = {shape: tally[shape] for shape in sorted(set(SHAPES)) if tally[shape]}
    print(f"{options.count} problems, {sum(compared.values()):,} comparisons: {compared}")
    print(f"single questions and lists by shape: {shapes}; {bad} wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
