"""Cases on losses of labellings: what most violates a margin, alone, in batches and over a corpus."""

from __future__ import annotations

from typing import Any

import draws
import numpy as np
from answering import Text, asked, plain
from draws import Rng, coin, pick

import tallytree as tt
from tallytree import losses

SCALINGS = ("margin", "slack")
NODE_LOSSES = (
    losses.FBeta,
    losses.Precision,
    losses.Recall,
    losses.IntersectionOverUnion,
    losses.FalsePositives,
    losses.SymmetricDifference,
)


def node_loss(rng: Rng) -> losses.Loss:
    kind, background = pick(rng, NODE_LOSSES), pick(rng, (None, 0, 1))
    if kind is losses.FBeta:
        return kind(beta=pick(rng, (0.5, 1.0, 2.0)), background=background)
    return kind(background=background)


def position_loss(rng: Rng, model: tt.Model) -> losses.Loss:
    cards = model.cardinalities.tolist()
    most = max(cards, default=1)
    weights = pick(rng, (rng.integers(0, 5, (most, most)) / 4, rng.random((most, most)).round(1)))
    np.fill_diagonal(weights, 0)
    return pick(
        rng,
        (
            losses.ZeroOne(),
            losses.HammingDistance(),
            losses.HammingLoss(),
            losses.LabelCount(),
            losses.WeightedHamming(weight=weights) if set(cards) == {most} else losses.HammingLoss(),
        ),
    )


def answers(rng: Rng, model: tt.Model, loss: losses.Loss, **limits: Any) -> list[Any]:
    """Ask for the loss of some labellings and for the most violated ones, under both scalings."""
    some = [draws.labelling(rng, model) for _ in range(3)]
    margin = pick(rng, (0.0, 0.5, 1.0, 3.0))
    found = [
        asked(tt.loss_augmented, model, loss, scaling, margin=m, **limits)
        for scaling in SCALINGS
        for m in (1.0, margin)
    ]
    return [Text(repr(loss)), [asked(loss.on(model), y) for y in some], found]


def limits(rng: Rng, model: tt.Model) -> dict[str, Any]:
    """Draw a constraint, states that variables must take, or nothing."""
    if coin(rng, 0.3):
        return {"where": draws.constraint(rng, draws.statistics(rng, model, most=1))}
    return draws.restriction(rng, model) if coin(rng, 0.2) else {}


def nodes(rng: Rng) -> Any:
    model = draws.model(rng)
    loss = node_loss(rng).against(draws.possible(rng, model))
    return asked(answers, rng, model, loss, **limits(rng, model))


def positions(rng: Rng) -> Any:
    model = draws.chain(rng, draws.BIO) if coin(rng) else draws.model(rng)
    loss = position_loss(rng, model).against(draws.possible(rng, model))
    return asked(answers, rng, model, loss, **limits(rng, model))


def chunks(rng: Rng) -> Any:
    scheme, labels = pick(rng, (("BIO", draws.CHUNKS), ("BIOES", draws.BIOES), ("IO", ("O", "I-NP", "I-VP"))))
    model = draws.chain(rng, labels, longest=6)
    truth = [pick(rng, labels) for _ in range(len(model.cardinalities))]
    loss = losses.ChunkFBeta(truth, pick(rng, (0.5, 1.0, 2.0)), scheme)
    where = tt.valid_bio() if scheme == "BIO" and coin(rng, 0.4) else None
    where = tt.count(state="O", name="outside") <= 2 if coin(rng, 0.2) else where
    return [losses.chunks_of(truth, scheme), asked(answers, rng, model, loss, where=where)]


def sentences(rng: Rng) -> Any:
    words = ["a", "b", "c", "$"]
    model = draws.chain(rng, words, longest=5)
    end = pick(rng, (None, "$"))
    length = len(model.cardinalities)
    sizes = [length] if end is None else rng.integers(1, length + 1, size=rng.integers(1, 3)).tolist()
    references = [[pick(rng, words[:3]) for _ in range(size)] for size in sizes]
    clip = coin(rng)
    loss = pick(
        rng,
        (
            losses.Bleu(references, int(rng.integers(1, 4)), clip, end=end),
            losses.RougeN(references, int(rng.integers(1, 3)), clip, end=end),
            losses.RougeL(references, pick(rng, (0.5, 1.0)), end=end),
        ),
    )
    return asked(answers, rng, model, loss)


def margins(rng: Rng) -> Any:
    """Ask for all margins at once, and for the profile behind them."""
    model = draws.model(rng)
    made = node_loss(rng) if coin(rng, 0.7) else position_loss(rng, model)
    loss = made.against(draws.possible(rng, model))
    where = draws.constraint(rng, draws.statistics(rng, model, most=1)) if coin(rng, 0.3) else None
    return [asked(_path, model, loss, scaling, where) for scaling in SCALINGS] + [
        asked(_profile, model, loss)
    ]


def _path(model: tt.Model, loss: losses.Loss, scaling: Any, where: Any) -> list[Any]:
    path = tt.loss_augmented_path(model, loss, 0.0, 20.0, scaling, where=where)
    return [path, path.breakpoints, path.losses, path.value(1.5), path.at(2.5)]


def _profile(model: tt.Model, loss: losses.Loss) -> list[Any]:
    found = losses.LossProfile(model, loss)
    return [
        len(found),
        found.truth_score,
        found.best("margin", 2.0),
        asked(found.top, 3, "slack"),
        found.plan,
    ]


def batches(rng: Rng) -> Any:
    models = [draws.model(rng, largest=6) for _ in range(rng.integers(1, 6))]
    loss = node_loss(rng) if coin(rng, 0.6) else losses.HammingLoss()
    truths = [draws.possible(rng, model) for model in models]
    options = {"errors": pick(rng, ("raise", "return")), "threads": int(rng.integers(1, 3)), "truths": truths}
    where = tt.count(state=1, name="ones") <= int(rng.integers(4)) if coin(rng, 0.3) else None
    return [
        asked(tt.loss_augmented_batch, models, loss, scaling, where=where, margin=margin, **options)
        for scaling in SCALINGS
        for margin in (1.0, 0.25)
    ]


def chunk_batches(rng: Rng) -> Any:
    models = [draws.chain(rng, draws.BIO, longest=8) for _ in range(rng.integers(1, 6))]
    truths = [[pick(rng, draws.BIO) for _ in model.cardinalities] for model in models]
    loss = pick(rng, (losses.ChunkFBeta(), losses.ChunkFBeta(beta=2.0), losses.FBeta(background="O")))
    where = tt.valid_bio() if coin(rng, 0.3) else None
    return [asked(tt.loss_augmented_batch, models, loss, s, truths=truths, where=where) for s in SCALINGS]


def corpora(rng: Rng) -> Any:
    models = [draws.model(rng, largest=6) for _ in range(rng.integers(1, 7))]
    truths = [draws.possible(rng, model) for model in models]
    loss, margin = node_loss(rng), pick(rng, (0.0, 1.0, 5.0))
    return [asked(tt.loss_augmented_corpus, models, truths, loss, s, margin=margin) for s in SCALINGS]


def within_margin(rng: Rng) -> Any:
    """Ask for the generalisation bound and for the maxima that it is made of."""
    models = [draws.model(rng, largest=5) for _ in range(rng.integers(1, 4))]
    truths = [draws.possible(rng, model) for model in models]
    loss = pick(
        rng, (losses.HammingLoss(), losses.FBeta(background=0), losses.FBeta(), losses.ZeroOne(), None)
    )
    loss = loss or node_loss(rng)
    bound = [loss.against(truth) for truth in truths]
    maxima = [
        asked(lambda m=m, one=one, y=y: _maximum(tt.bounds.worst_within_margin(m, one, y)))
        for m, one, y in zip(models, bound, truths, strict=True)
    ]
    return [
        maxima,
        asked(lambda: _bound(tt.bounds.pac_bayes(models, truths, loss, squared_norm=0.4, dimension=3))),
        asked(lambda: map(_soft, tt.bounds.softened_maxima(models, bound, truths, 0.5))),
    ]


def _maximum(found: tt.bounds.Maximum) -> list[Any]:
    return plain([found.loss, found.difference, found.mismatches, found.solution])


def _bound(found: tt.bounds.PacBayesBound) -> list[Any]:
    return [
        found.value,
        found.norm,
        found.complexity,
        found.empirical,
        map(_maximum, found.maxima),
        Text(found),
    ]


def _soft(found: tt.bounds.SoftMaximum) -> list[Any]:
    return plain([found.value, found.slope, found.assignment])
