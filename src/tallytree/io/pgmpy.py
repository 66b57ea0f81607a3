"""Conversion from and to pgmpy: Markov networks and discrete Bayesian networks.

A potential ``w`` of pgmpy is the score ``f = log w``; 0 forbids. pgmpy is optional, and imported when
needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.errors import ModelError
from tallytree.io.factors import LARGEST_SCORE, each_factor
from tallytree.io.files import needed
from tallytree.model.model import Model


def from_pgmpy(network: Any) -> Model:
    """Make a model from a pgmpy network.

    Parameters
    ----------
    network : DiscreteMarkovNetwork or DiscreteBayesianNetwork
        With factors, or with a conditional distribution for each node.

    Returns
    -------
    Model
        ``exp(score)`` is the product of the network's potentials. Variables and states have the network's
        names, as strings, in the order of its nodes.

    Raises
    ------
    ModelError
        The network has neither factors nor distributions, or a potential is negative or not finite.
    """
    factors = [_factor(part) for part in _parts(network)]
    states: dict[Any, list[str]] = {}
    for factor in factors:
        for variable in factor.variables:
            states[variable] = [str(name) for name in factor.state_names[variable]]
    missing = [node for node in network.nodes() if node not in states]
    if missing:
        raise ModelError(f"the node {missing[0]!r} has no factor, so its states are unknown")
    numbers = {node: i for i, node in enumerate(network.nodes())}
    pairs = [(tuple(numbers[v] for v in factor.variables), _scores(factor)) for factor in factors]
    return Model(
        [len(states[node]) for node in numbers],
        pairs,
        variables=[str(node) for node in numbers],
        states=[states[node] for node in numbers],
    )


def _parts(network: Any) -> list[Any]:
    """Return the distributions of a Bayesian network, or the factors of a Markov network."""
    for name in ("get_cpds", "get_factors"):
        method = getattr(network, name, None)
        if method is not None:
            return list(method())
    raise ModelError(
        "expected a DiscreteMarkovNetwork or a DiscreteBayesianNetwork of pgmpy, got a "
        f"{type(network).__name__}"
    )


def _factor(part: Any) -> Any:
    return part.to_factor() if getattr(part, "to_factor", None) is not None else part


def _scores(factor: Any) -> Any:
    weights = np.asarray(factor.values, dtype=np.float64)
    if not ((weights >= 0) & (weights < np.inf)).all():
        raise ModelError(f"a potential over {tuple(factor.variables)} is negative or not finite")
    with np.errstate(divide="ignore"):
        return np.log(weights)


def to_pgmpy(model: Model) -> Any:
    """Convert a model to a pgmpy ``DiscreteMarkovNetwork``.

    Parameters
    ----------
    model : Model
        Its scores must be within ±700, because potentials are ``exp(score)``. Constant factors, which
        do not affect the ranking of labellings, are omitted.

    Returns
    -------
    DiscreteMarkovNetwork
        Nodes and states have the model's names, or the numbers of variables and states.

    Raises
    ------
    ModelError
        pgmpy is not installed, or the exponential of a score does not fit in a double.
    """
    models, factors = needed("pgmpy.models"), needed("pgmpy.factors.discrete")
    nodes = list(model.variables) if model.variables is not None else list(range(len(model)))
    network = models.DiscreteMarkovNetwork()
    network.add_nodes_from(nodes)
    parts = [(scope, table) for scope, table in each_factor(model) if scope]
    parts += [((v,), np.zeros(n)) for v, n in enumerate(model.cardinalities.tolist())]
    for scope, table in parts:
        if np.max(np.abs(table), where=np.isfinite(table), initial=0.0) > LARGEST_SCORE:
            raise ModelError(
                f"the factor over {scope} has scores beyond ±{LARGEST_SCORE:.0f}, but pgmpy stores "
                "exp(score); divide all scores by a constant first"
            )
        names = [nodes[v] for v in scope]
        network.add_edges_from((a, b) for i, a in enumerate(names) for b in names[:i])
        states = {nodes[v]: list(model.states_of(v) or range(int(model.cardinalities[v]))) for v in scope}
        network.add_factors(factors.DiscreteFactor(names, table.shape, np.exp(table), state_names=states))
    return network
