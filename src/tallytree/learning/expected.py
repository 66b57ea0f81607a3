"""Labellings with the smallest expected loss: exact if an algorithm is known, otherwise the best sample.

Chains are handled by :mod:`tallytree.bulk.least_loss`, other models by the distribution of the number of
nodes. Losses without an exact algorithm need ``samples``: candidates are drawn from the model, and the
expected loss of each is computed exactly if the loss has tables, or else estimated from as many other draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallytree.bulk.chains import Chains
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.least_loss import LINEAR, WIDEST, expected_losses, least_loss, loss_by_sizes
from tallytree.errors import ModelError
from tallytree.learning.planes import Floats, Integers
from tallytree.losses import ChunkFBeta, HammingDistance, HammingLoss, Loss
from tallytree.losses.nodes import NodeLoss
from tallytree.model.blocks import unary_scopes
from tallytree.model.model import Model
from tallytree.solving import distribution, solve
from tallytree.statistics.recipes import mismatches


class Choice(NamedTuple):
    """A labelling chosen for its expected loss.

    Attributes
    ----------
    labels : int64 array
        As numbers.
    loss : float
        Its expected loss.
    error : float
        The standard error of the loss; 0 if it is not an estimate.
    exact : bool
        Whether no labelling has a smaller expected loss.
    """

    labels: Integers
    loss: float
    error: float
    exact: bool


def least_losses_of_chains(
    chains: Chains, loss: Loss, samples: int | None, seed: int, threads: int | None = None
) -> list[Choice]:
    """Return the choice for each of many chains."""
    choices = least_loss(chains, loss, threads)
    if choices is None:
        return [_sampled(model, loss, samples, seed) for model in chains.models()]
    labels = np.split(choices.labels, np.cumsum(chains.lengths)[:-1])
    return [Choice(one, value, 0.0, True) for one, value in zip(labels, choices.losses.tolist(), strict=True)]


def least_loss_of_model(model: Model, loss: Loss, samples: int | None, seed: int) -> Choice:
    """Return the choice for one model."""
    chains = _as_chain(model)
    if chains is not None and least_loss(chains, loss) is not None:
        return least_losses_of_chains(chains, loss, samples, seed)[0]
    if type(loss) in (HammingDistance, HammingLoss):
        return _most_likely(model, loss)
    if type(loss) in LINEAR:
        assert isinstance(loss, NodeLoss)
        return least_loss_of_nodes(model, loss)
    return _sampled(model, loss, samples, seed)


def _as_chain(model: Model) -> Chains | None:
    """Return a model as a chain; None if it is not a chain, or if its scores are too far apart."""
    if len(model.blocks) != 2 or model.alike is None:
        return None
    first, second = model.blocks
    pairs = np.stack((np.arange(len(model) - 1), np.arange(1, len(model))), axis=1)
    if first.key != unary_scopes(len(model))[1] or not np.array_equal(second.scopes, pairs):
        return None
    if len(second.tables) != 1 or len(first.tables) != len(model):
        return None
    spread = np.ptp(first.tables, axis=1).max() + np.ptp(second.tables)
    if not spread <= WIDEST:  # also if a score is -inf
        return None
    links = np.ascontiguousarray(second.tables[0])
    return Chains(np.ascontiguousarray(first.tables), links, [len(model)], model.states_of(0))


def _most_likely(model: Model, loss: Loss) -> Choice:
    marginals = model.by_variable(distribution(model, []).marginals())
    labels = np.array([one.argmax() for one in marginals], dtype=np.int64)
    wrong = float(sum(1.0 - one.max() for one in marginals))
    return Choice(labels, wrong / max(len(model), 1) if type(loss) is HammingLoss else wrong, 0.0, True)


def least_loss_of_nodes(model: Model, loss: NodeLoss) -> Choice:
    """Choose among all labellings of a model of any shape, for a loss that is linear in true positives."""
    if loss.background is None:
        labels = _most_likely(model, HammingLoss()).labels
        return Choice(labels, _expected_alike(model, loss, labels), 0.0, True)
    nothing = model.state_codes(loss.background)
    if (nothing < 0).any():
        raise ModelError(f"every variable must have the background {loss.background!r} among its states")
    sizes, sized, joint = _joint(model, nothing)
    node = np.arange(joint.shape[2]) < model.cardinalities[:, np.newaxis]
    node[np.arange(len(model)), nothing] = False
    base, gain = loss_by_sizes(loss, len(model))
    labels, least = nothing.copy(), float(base[0, sizes] @ sized)
    for k in range(1, len(model) + 1):
        worth = np.where(node, np.tensordot(gain[k, sizes], joint, axes=1), -np.inf)
        choice, value = worth.argmax(axis=1), worth.max(axis=1)
        nodes = np.argsort(-value, kind="stable")[:k]
        lost = float(base[k, sizes] @ sized) - float(value[nodes].sum())
        if lost < least:
            labels, least = nothing.copy(), lost
            labels[nodes] = choice[nodes]
    return Choice(labels, max(least, 0.0), 0.0, True)


def _expected_alike(model: Model, loss: NodeLoss, labels: Integers) -> float:
    """Return the expected loss if every variable is a node, so that losses are functions of matches."""
    marginals = model.by_variable(distribution(model, []).marginals())
    right = float(sum(one[label] for one, label in zip(marginals, labels, strict=True)))
    base, gain = loss_by_sizes(loss, len(model))
    return float(base[-1, -1] - gain[-1, -1] * right)


def _joint(model: Model, nothing: Integers) -> tuple[Integers, Floats, Floats]:
    """Return all ``s``, ``P(|y| = s)``, and ``P(y_i = a, |y| = s)`` for every state ``a``."""
    spread = distribution(model, [mismatches(model, nothing)])
    joint = np.zeros((len(spread.tallies), len(model), int(model.cardinalities.max())))
    for row, (tally, probability) in enumerate(zip(spread.tallies, spread.probabilities, strict=True)):
        for variable, marginal in enumerate(model.by_variable(spread.marginals(tally.tolist()))):
            joint[row, variable, : len(marginal)] = probability * marginal
    return spread.tallies[:, 0], spread.probabilities, joint


def _sampled(model: Model, loss: Loss, samples: int | None, seed: int) -> Choice:
    """Choose among random labellings and the most probable one."""
    if samples is None:
        needed = " (it needs O and, for each type of chunk, all labels of the scheme)"
        raise ModelError(
            f"there is no exact method for the expected {type(loss).__name__} here"
            f"{needed if isinstance(loss, ChunkFBeta) else ''}; give the number of labellings to draw, as in "
            "MaxExpected(loss, samples=100), to use the best of them"
        )
    drawn = distribution(model, []).sample(2 * samples, rng=seed).reshape(2 * samples, -1)
    candidates = np.unique(np.vstack((drawn[:samples], solve(model).assignment.reshape(1, -1))), axis=0)
    losses, errors = _evaluated(model, loss, candidates, drawn[samples:])
    best = int(losses.argmin())
    return Choice(candidates[best], float(losses[best]), float(errors[best]), False)


def _evaluated(model: Model, loss: Loss, candidates: Any, truths: Any) -> tuple[Floats, Floats]:
    """Return the expected losses of candidates, and the standard errors."""
    chain = _as_chain(model)
    if chain is not None and _is_tabulated(chain, loss):
        count = len(candidates)
        many = chain._replace(emissions=np.tile(chain.emissions, (count, 1)), lengths=[len(model)] * count)
        return expected_losses(many, loss, np.ravel(candidates)), np.zeros(count)
    names = [model.labels(truth) for truth in truths]
    lost = np.array([[loss.against(truth).on(model)(one) for truth in names] for one in candidates])
    spread = lost.std(axis=1, ddof=1) if len(names) > 1 else np.full(len(lost), np.inf)
    return lost.mean(axis=1), spread / np.sqrt(len(names))


def _is_tabulated(chain: Chains, loss: Loss) -> bool:
    """Whether expected losses of given labellings of a chain can be computed exactly."""
    if not isinstance(loss, NodeLoss) or loss.background is None:
        return False
    return truth_tables(loss, chain.emissions.shape[1], chain.names) is not None
