"""What tests of batches by bounds share."""

import numpy as np
from hypothesis import strategies as st

import tallytree as tt
from tallytree.testing.problems import SHAPES

KINDS = st.sampled_from(["any", "ties", "forbidden", "huge", "tiny", "strong", "zero"])
MARGINS = st.sampled_from([0.0, 0.1, 1.0, 10.0, 200.0])


def scores_of(rng, shape, kind, forbidden=0.15, strong=8.0):
    """Return scores: any, with ties, with some forbidden entries, huge, tiny, with strong coupling, or 0."""
    scores = rng.normal(size=shape)
    if kind == "ties":
        return np.round(scores)
    if kind == "forbidden":
        return np.where(rng.random(shape) < forbidden, -np.inf, scores)
    return scores * {"huge": 1e6, "tiny": 1e-6, "strong": strong, "zero": 0.0}.get(kind, 1.0)


def _tables_of(rng, shape, kind):
    return scores_of(rng, shape, kind, forbidden=0.1, strong=8.0 if len(shape) > 1 else 1.0)


def graph(rng, shape, variables, states, kind="any"):
    """Return a model of some shape; a few variables have no scores of their own, or two of them."""
    scopes = [(v,) for v in range(variables) if rng.random() < 0.8] + SHAPES[shape](rng, variables)
    scopes += [scopes[rng.integers(len(scopes))] for _ in range(int(rng.integers(3)) if scopes else 0)]
    scopes = [tuple(rng.permutation(scope).tolist()) for scope in scopes]
    factors = [(scope, _tables_of(rng, (states,) * len(scope), kind)) for scope in scopes]
    return tt.Model([states] * variables, factors)


def ask(pairs, recipe, scaling, strategy, **options):
    """Solve a batch of pairs of models and truths."""
    models, truths = zip(*pairs, strict=True)
    return tt.loss_augmented_batch(models, recipe, scaling, truths=truths, strategy=strategy, **options)


def allowance(found):
    """Return how far values may be apart by rounding."""
    return 1e-9 * (1 + abs(found.value)) + 4 * tt.testing.score_tolerance(found.model)
