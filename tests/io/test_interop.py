"""Models from and to other libraries have the same score for every labelling."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import models

import tallytree as tt
from tallytree.io import ContractionPath, from_networkx, from_pgmpy, to_networkx, to_pgmpy
from tallytree.testing import brute_force


def weights(model: tt.Model) -> np.ndarray:
    """``exp(score)`` of every labelling, in lexicographic order."""
    return np.exp(brute_force(model).scores)


# --- networkx -----------------------------------------------------------------------------------------------


def test_a_graph_with_tables():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_node("b", scores=[0.0, 1.0, 2.0])
    graph.add_node("a", scores=[0.0, -1.0])
    graph.add_edge("b", "a", scores=[[0, 1], [2, 3], [4, -np.inf]])
    model = from_networkx(graph)
    assert model.variables == ("b", "a")
    assert model.score([1, 1]) == 1 - 1 + 3
    assert model.score([2, 1]) == -np.inf


@settings(max_examples=50)
@given(models(largest=5))
def test_pairwise_models_go_there_and_back(model):
    pytest.importorskip("networkx")
    pairwise = tt.Model(
        model.cardinalities,
        [
            (tuple(scope), table)
            for block in model.blocks
            if block.arity in (1, 2)
            for scope, table in zip(
                block.scopes.tolist(),
                np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])),
                strict=True,
            )
        ],
    )
    back = from_networkx(to_networkx(pairwise))
    np.testing.assert_allclose(brute_force(back).scores, brute_force(pairwise).scores, atol=1e-12)


def test_larger_factors_are_edges():
    pytest.importorskip("networkx")
    model = tt.Model(
        [2, 2, 2], [((0, 2, 1), np.zeros((2, 2, 2)))], variables=["a", "b", "c"], states=["x", "y"]
    )
    graph = to_networkx(model)
    assert sorted(map(tuple, map(sorted, graph.edges))) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert graph.nodes["a"]["states"] == ["x", "y"]


def test_what_a_graph_lacks_is_named():
    nx = pytest.importorskip("networkx")
    with pytest.raises(tt.ModelError, match="node 0 has no attribute 'scores'"):
        from_networkx(nx.path_graph(2))
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, [0.0, 1.0], "scores")
    with pytest.raises(tt.ModelError, match=r"edge \(0, 1\) has no attribute 'scores'"):
        from_networkx(graph)
    nx.set_node_attributes(graph, 1.0, "scores")
    with pytest.raises(tt.ModelError, match="must be a list of scores, one per state"):
        from_networkx(graph)


@pytest.mark.parametrize(("module", "call"), [("networkx", to_networkx), ("pgmpy.models", to_pgmpy)])
def test_a_missing_package_says_what_to_install(module, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(tt.ModelError, match=r"pip install 'tallytree\[interop\]'"):
        call(tt.Model([2]))


# --- pgmpy --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_a_bayesian_network():
    pgmpy = pytest.importorskip("pgmpy.models")
    cpd = pytest.importorskip("pgmpy.factors.discrete").TabularCPD
    network = pgmpy.DiscreteBayesianNetwork([("rain", "wet"), ("sprinkler", "wet")])
    network.add_cpds(
        cpd("rain", 2, [[0.8], [0.2]], state_names={"rain": ["no", "yes"]}),
        cpd("sprinkler", 2, [[0.6], [0.4]], state_names={"sprinkler": ["off", "on"]}),
        cpd(
            "wet", 2, [[1.0, 0.1, 0.2, 0.01], [0.0, 0.9, 0.8, 0.99]], ["rain", "sprinkler"], [2, 2],
            state_names={"wet": ["no", "yes"], "rain": ["no", "yes"], "sprinkler": ["off", "on"]},
        ),
    )  # fmt: skip
    model = from_pgmpy(network)
    labels = dict(zip(model.variables, range(3), strict=True))
    labelling = [None] * 3
    for name, state in {"rain": "no", "sprinkler": "on", "wet": "yes"}.items():
        labelling[labels[name]] = state
    assert np.exp(model.score(labelling)) == pytest.approx(0.8 * 0.4 * 0.9)
    assert weights(model).sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=30)
@given(models(largest=4))
def test_markov_networks_there_and_back(model):
    pytest.importorskip("pgmpy.models")
    scoped = tt.Model(
        model.cardinalities,
        [
            (tuple(scope), table)
            for block in model.blocks
            if block.arity > 0
            for scope, table in zip(
                block.scopes.tolist(),
                np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])),
                strict=True,
            )
        ],
    )
    network = to_pgmpy(scoped)
    assert network.check_model()
    back = from_pgmpy(network)
    np.testing.assert_allclose(weights(back), weights(scoped), rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_what_pgmpy_cannot_hold():
    pytest.importorskip("pgmpy.models")
    with pytest.raises(tt.ModelError, match="beyond ±700"):
        to_pgmpy(tt.Model([2], [((0,), [0.0, 1e4])]))
    with pytest.raises(tt.ModelError, match="expected a DiscreteMarkovNetwork"):
        from_pgmpy(42)


# --- arrays and orders --------------------------------------------------------------------------------------


def test_tensors_are_arrays():
    pytest.importorskip("torch.nn")  # without PyTorch, tests/torch goes by its name
    import torch

    unary, pairwise = torch.tensor([[0.0, 1], [2, 0]]), torch.zeros(2, 2)
    assert tt.solve(tt.Model.chain(unary, pairwise)).score == 3
    with pytest.raises(tt.ModelError, match="detach"):
        tt.Model.chain(unary.requires_grad_(), pairwise)
    assert torch.tensor(tt.profile(tt.Model.chain(unary.detach(), pairwise)).scores).item() == 3


def test_what_cannot_become_an_array_is_refused():
    class Tensor:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach()")

    with pytest.raises(tt.ModelError, match="Use tensor"):
        tt.Model([2], [((0,), Tensor())])


@settings(max_examples=50)
@given(models(largest=6))
def test_contraction_paths_are_orders(model):
    opt_einsum = pytest.importorskip("opt_einsum")
    operands = ContractionPath.operands(model)
    if not operands:
        return
    shapes = [tuple(model.cardinalities[list(scope)].tolist()) for scope in operands]
    arguments = [
        part for scope, shape in zip(operands, shapes, strict=True) for part in (np.zeros(shape), scope)
    ]
    path, _ = opt_einsum.contract_path(*arguments, (), optimize="greedy")
    order = ContractionPath(model, path)
    assert sorted(order.order()) == list(range(len(model)))
    assert tt.solve(model, order=order).score == pytest.approx(brute_force(model).best().score)


def test_the_order_of_a_path_is_that_of_its_steps():
    model = tt.Model([2] * 4, [((0, 1), np.zeros((2, 2))), ((1, 2), np.zeros((2, 2))), ((0,), np.zeros(2))])
    by_scope = {scope: i for i, scope in enumerate(ContractionPath.operands(model))}
    path = ContractionPath(model, [(by_scope[0, 1], by_scope[1, 2])])
    assert path.order() == [1, 2, 0, 3]  # 0 is still in a factor of its own, 3 in none
    assert ContractionPath(model, []).order() == [0, 1, 2, 3]
    with pytest.raises(tt.ModelError, match="does not give distinct operands among the remaining 3"):
        ContractionPath(model, [(0, 3)])
    with pytest.raises(tt.ModelError, match="distinct operands"):
        ContractionPath(model, [(1, 1)])
