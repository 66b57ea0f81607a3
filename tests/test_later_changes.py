"""Values do not change when the arrays, lists and mappings they were created from do."""

import pickle

import numpy as np
import pytest

import tallytree as tt
from tallytree import parsing
from tallytree.model.blocks import Block
from tallytree.values import owned, read_only

FREE = np.zeros((2, 2))


def frozen_view(array: np.ndarray) -> np.ndarray:
    """A read-only view of writable memory, through another view."""
    view = array[:][:]
    view.setflags(write=False)
    return view


class Foreign:
    """Memory not owned by NumPy, behind a read-only interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, True)}
        self.array = array


@pytest.mark.parametrize(
    "view", [frozen_view, lambda array: np.asarray(Foreign(array))], ids=["view", "foreign"]
)
def test_read_only_views_of_writable_memory_are_copied(view) -> None:
    scopes, tables = np.array([[0], [1]], dtype=np.int32), np.array([[0.0, 1.0], [2.0, 3.0]])
    block = Block(view(scopes), view(tables))
    model = tt.Model.from_blocks([2, 2], [block])
    key = block.key
    tables[:], scopes[:] = np.nan, 7
    assert block.tables.tolist() == [[0.0, 1.0], [2.0, 3.0]] and block.scopes.tolist() == [[0], [1]]
    assert tt.solve(model).score == 4.0 and Block(block.scopes, block.tables).key == key

    entries = np.array([[0, 1], [0, 2]])
    counted = tt.Statistic.from_blocks([Block(block.scopes, view(entries))], "counted")
    entries[:] = 2**50
    assert counted.tally([1, 1]) == 3


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cardinalities(dtype: type) -> None:
    sizes = np.array([2, 3], dtype=dtype)
    for given in (frozen_view(sizes), sizes):
        model = tt.Model(given, [((1,), [0.0, 1.0, 2.0])])
        sizes[:] = 1
        assert model.cardinalities.tolist() == [2, 3] and tt.solve(model).score == 2.0
        sizes[:] = 2, 3


def test_buffers_of_other_types() -> None:
    memory = bytearray(np.zeros(2).tobytes())
    array = np.frombuffer(memory)
    array.setflags(write=False)
    kept = owned(array, np.float64)
    memory[:8] = np.float64(7).tobytes()
    assert kept.tolist() == [0.0, 0.0]
    settled = np.frombuffer(bytes(16))
    assert owned(settled, np.float64) is settled, "bytes never change"
    other = np.zeros(2).view(np.recarray)
    other.setflags(write=False)
    assert type(owned(other, np.float64)) is np.ndarray


def test_our_own_arrays_are_shared() -> None:
    """Models of one shape share their scopes, and blocks are not copied again."""
    a, b = (tt.Model.chain(np.zeros((5, 2)), FREE) for _ in range(2))
    assert all(x.scopes is y.scopes for x, y in zip(a.blocks, b.blocks, strict=True))
    assert Block(a.blocks[0].scopes, a.blocks[0].tables).tables is a.blocks[0].tables
    grid = tt.Model.grid(np.zeros((2, 3, 2)), FREE, FREE)
    assert Block(grid.blocks[1].scopes, grid.blocks[0].tables).scopes is grid.blocks[1].scopes
    ours = np.zeros(6)
    view = read_only(ours.reshape(2, 3))
    assert owned(view, np.float64) is view and not ours.flags.writeable


def test_orders() -> None:
    model = tt.Model.chain(np.arange(6.0).reshape(3, 2), FREE)
    for order in ([2, 0, 1], np.array([2, 0, 1])):
        plan = tt.plan(model, order=order)
        order[:] = [0, 0, 0]
        again = pickle.loads(pickle.dumps(plan))
        assert plan.order.tolist() == again.order.tolist() == [2, 0, 1]
        assert str(again) == str(plan)


def test_lexicons() -> None:
    words = {"N": {"a": 0.0}}
    lexicon = parsing.TaggedWords(words, unknown={"N": -3.0})
    words["N"]["a"] = 5.0
    for word in ("a", "other"):
        with pytest.raises(TypeError):
            lexicon.scores(word)["N"] = 7.0
    scores, unknown = lexicon.tables()
    scores["a"]["N"], unknown["N"] = 7.0, 7.0
    assert dict(lexicon.scores("a")) == {"N": 0.0} and dict(lexicon.scores("other")) == {"N": -3.0}
    counted = parsing.CountedWords([("a", "N"), ("b", "N")])
    before = dict(counted.scores("a"))
    counted.scores("a")["N"] = 1.0
    counted.counts()["a"]["N"] = 1000
    assert dict(counted.scores("a")) == before
    grammar = parsing.Grammar({("N", "N", "N"): -1.0}, {}, lexicon, root="N")
    assert pickle.loads(pickle.dumps(grammar)).lexicon.scores("a")["N"] == 0.0


def test_graphs() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    from tallytree.learning import Graph, GraphProblem

    edges, nodes = np.array([[0, 1]], dtype=np.int32), sparse.csr_matrix(np.eye(2))
    features, truth = sparse.csr_matrix(np.ones((1, 1))), np.array([0, 1])
    graph = Graph(nodes, edges, features)
    problem = GraphProblem([graph], [truth], 2, tt.losses.HammingLoss())
    mark = problem.fingerprint()
    assert edges.flags.writeable, "what was given is left alone"
    edges[:], truth[:] = 0, 0
    nodes.data[:], features.data[:], nodes.indices[:] = 9.0, 9.0, 0
    assert graph.edges.tolist() == [[0, 1]] and graph.nodes.toarray().tolist() == np.eye(2).tolist()
    assert graph.edge_features.toarray().tolist() == [[1.0]] and problem.truth(0).tolist() == [0, 1]
    assert problem.fingerprint() == mark
    for far in (2**32, -1):
        with pytest.raises(tt.ModelError, match="edges join nodes 0 to 1"):
            Graph(np.eye(2), np.array([[0, far]]))
