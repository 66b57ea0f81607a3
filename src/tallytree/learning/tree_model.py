"""From sentences and weights to forests, and from trees to features.

The score of a tree is linear in the weights, apart from the grammar's own score,

    F(y) = prior · log p(y) + Σ_nodes ⟨W_side[:, k], x_s + x_e⟩ + Σ_constituents ⟨W_span[:, l], x_se⟩
         + Σ_words ⟨W_tag[:, t_i], x_i⟩ + Σ_rules W_rule

with ``x`` the attributes of the start of a span, of its end, of both, and of a word. At zero weights
the best tree is that of the plain grammar, and training starts from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from tallytree.learning.accepted import NON_NEGATIVE, check_all
from tallytree.learning.planes import Features, Floats, Integers
from tallytree.learning.tree_features import Sentence, TreeFeatures, side_rows, span_rows
from tallytree.learning.tree_grammar import Derivation, TreebankGrammar
from tallytree.parsing import Forest
from tallytree.parsing.compiled import compiled
from tallytree.running.charts import Scores, StepCounts


@dataclass(frozen=True)
class TreeModel:
    """Turns a sentence and weights into a forest, and a tree into features.

    Parameters
    ----------
    counted : TreebankGrammar
        The grammar, with its log-probabilities.
    features : TreeFeatures
        The attributes of sides, spans and words.
    prior : float
        The weight of the log-probability; non-negative.
    """

    counted: TreebankGrammar
    features: TreeFeatures
    prior: float = 1.0

    def __post_init__(self) -> None:
        check_all(self, prior=NON_NEGATIVE)

    @cached_property
    def _widths(self) -> tuple[int, int, int]:
        """The numbers of kinds, labels and tags."""
        return len(self.counted.kinds), len(self.counted.grammar.labels), len(self.counted.tags)

    @cached_property
    def _shapes(self) -> tuple[tuple[int, int], ...]:
        """The tables of weights for sides, spans and words: attributes by kinds, labels and tags."""
        known = self.features
        rows = (encoder.size for encoder in (known.sides, known.spans, known.words))
        return tuple(zip(rows, self._widths, strict=True))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of weights for sides, spans, words, binary rules and unary rules."""
        tables = (height * width for height, width in self._shapes)
        return (*tables, len(self.counted.grammar.binary), len(self.counted.grammar.unary))

    @property
    def dimension(self) -> int:
        """The number of weights."""
        return sum(self.sizes)

    def parts(self, weights: Floats) -> list[Floats]:
        """Return the weights of sides by kinds, spans by labels, words by tags, binary and unary rules."""
        *tables, binary, unary = np.split(weights, np.cumsum(self.sizes)[:-1])
        shaped = (table.reshape(shape) for table, shape in zip(tables, self._shapes, strict=True))
        return [*shaped, binary, unary]

    def sentence(self, words: Sequence[str]) -> Sentence:
        """Return a sentence as numbers."""
        return self.features.sentence(words, self.counted)

    # --- forests ------------------------------------------------------------------------------------------

    def forests(self, sentences: Sequence[Sentence], weights: Floats) -> Iterator[Forest]:
        """Iterate over the forests of sentences at given weights."""
        sides, spans, tags, binary, unary = self.parts(weights)
        grammar = self.counted.grammar
        rules = np.ascontiguousarray((self.prior * grammar.binary_scores + binary)[:, None])
        unaries = (self.prior * grammar.unary_scores + unary)[:, None]
        for sentence in sentences:
            forest = Forest(grammar, sentence.words, word_scores=sentence.base)
            nodes = sentence.sides @ sides
            scores = nodes[forest.starts] + nodes[len(sentence.words) + forest.ends - 1]
            scores[:, : spans.shape[1]] += sentence.spans @ spans
            chains = forest.compiled.chain_sums(unaries) + self._chains(scores, len(sentence.words))
            yield forest.rescored(Scores(self._tagged(sentence, tags), rules, chains))

    def _tagged(self, sentence: Sentence, weights: Floats) -> Floats:
        """Return the score of each word below each symbol."""
        scores = sentence.base.copy()
        scores[scores > -np.inf] *= self.prior
        scores[:, self.counted.tag_symbols] += sentence.tagged @ weights
        return scores

    def _chains(self, scores: Floats, words: int) -> Floats:
        """Sum, for each chain over each span, the scores of its nodes by kind, ``[span][kind]``."""
        short, wide = self._nodes
        return np.concatenate((short @ scores[:words].T, wide @ scores[words:].T), axis=1)

    @cached_property
    def _nodes(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """The number of nodes of each kind in each chain over a single word, and over several."""
        kinds, children = self.counted.kinds_of, self.counted.grammar.unary[:, 1].tolist()
        short, wide = [], []
        for path in compiled(self.counted.grammar).chains:
            below = [kinds(children[rule]) for rule in path.rules]
            nodes = [kinds(path.target), *below]
            if path.from_closed:  # the part below has its own chain
                nodes = nodes[:1]
            wide.append(sum(nodes, ()))
            short.append(wide[-1] if path.from_closed else sum(nodes[:-1], ()))  # the last one is a tag
        return _counts(short, self._widths[0]), _counts(wide, self._widths[0])

    # --- features of trees --------------------------------------------------------------------------------

    def features_of(self, sentence: Sentence, steps: Derivation) -> Features:
        """Return the features of a tree: indices and values."""
        n = len(sentence.words)
        kinds, starts, ends = steps.nodes.T
        labelled = kinds < self._widths[1]
        tags = np.searchsorted(self.counted.tag_symbols, steps.tags)  # both are sorted
        entries = [
            _entries(sentence.sides, side_rows(n, starts, ends).ravel(), np.repeat(kinds, 2)),
            _entries(sentence.spans, span_rows(n, starts, ends)[labelled], kinds[labelled]),
            _entries(sentence.tagged, np.arange(n), tags),
        ]
        parts = [
            *(
                (rows * w + columns, values)
                for (rows, columns, values), w in zip(entries, self._widths, strict=True)
            ),
            *((rules, np.ones(len(rules))) for rules in (steps.binary, steps.unary)),
        ]
        firsts = np.cumsum((0, *self.sizes[:-1])).tolist()
        return (
            np.concatenate([first + indices for first, (indices, _) in zip(firsts, parts, strict=True)]),
            np.concatenate([values for _, values in parts]),
        )

    def expected(self, sentence: Sentence, forest: Forest, counts: StepCounts) -> Features:
        """Return the expected features of a tree: indices, each once per part, and values.

        This is the transpose of :meth:`forests`.
        """
        tags, binary, chains = counts
        words, (short, wide) = len(sentence.words), self._nodes
        nodes = np.concatenate((short.T @ chains[:, :words], wide.T @ chains[:, words:]), axis=1).T
        sides = np.zeros((2 * words, nodes.shape[1]))
        np.add.at(sides, forest.starts, nodes)
        np.add.at(sides, words + forest.ends - 1, nodes)
        unary = np.zeros(self.sizes[-1])
        path = forest.compiled
        np.add.at(unary, path.path_rules, chains.sum(axis=1)[path.path_chains])
        parts = [
            _weighted(sentence.sides, sides),
            _weighted(sentence.spans, nodes[:, : self._widths[1]]),
            _weighted(sentence.tagged, tags[:, self.counted.tag_symbols]),
            (np.arange(self.sizes[-2]), np.ravel(binary)),
            (np.arange(self.sizes[-1]), unary),
        ]
        firsts = np.cumsum((0, *self.sizes[:-1])).tolist()
        return (
            np.concatenate([first + indices for first, (indices, _) in zip(firsts, parts, strict=True)]),
            np.concatenate([values for _, values in parts]),
        )

    def fixed(self, sentence: Sentence, steps: Derivation) -> float:
        """Return the grammar's own score of a tree, which does not depend on the weights."""
        grammar = self.counted.grammar
        lexical = sentence.base[np.arange(len(sentence.words)), steps.tags]
        rules = (grammar.binary_scores[steps.binary], grammar.unary_scores[steps.unary])
        return self.prior * float(np.sum(np.concatenate((*rules, lexical))))


def _counts(rows: Sequence[Sequence[int]], width: int) -> sparse.csr_matrix:
    """Return how often each row has each number."""
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    columns = np.array([number for row in rows for number in row], dtype=np.int64)
    return sparse.csr_matrix((np.ones(len(columns)), (owners, columns)), shape=(len(rows), width))


def _entries(
    matrix: sparse.csr_matrix, rows: Integers, columns: Integers
) -> tuple[Integers, Integers, Floats]:
    """Return the entries of some rows: their places, the column of weights of the row, and values."""
    starts = matrix.indptr[rows].astype(np.int64)
    sizes = matrix.indptr[rows + 1] - starts
    places = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    return matrix.indices[places].astype(np.int64), np.repeat(columns, sizes), matrix.data[places]


def _weighted(matrix: sparse.csr_matrix, table: Floats) -> Features:
    """Return the product of the transposed matrix with a table, for the columns that the matrix has."""
    columns, places = np.unique(matrix.indices, return_inverse=True)
    own = sparse.csr_matrix((matrix.data, places, matrix.indptr), shape=(matrix.shape[0], len(columns)))
    width = table.shape[1]
    indices = columns.astype(np.int64)[:, np.newaxis] * width + np.arange(width)
    return indices.ravel(), np.ravel(own.T @ table)
