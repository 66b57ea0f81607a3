"""Train a neural chunker with three objectives: likelihood, an F1 margin, and the expected F1.

A bidirectional LSTM over words and their letters scores the tags of each word. The layers of
:mod:`tallytree.torch` turn these scores into predictions and exact losses over all taggings of a sentence.
The script runs on the CPU and on a GPU. By default it trains on 45 of 60 sample sentences; data files have
the CoNLL-2000 format, with a word, a part-of-speech tag and a chunk label on each line. Needs the extras
``torch`` and ``learn``.

    python examples/tagger.py --data train.txt --test test.txt --device cuda --epochs 10
"""

import argparse
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import tallytree as tt
import tallytree.torch as ttt
from tallytree.learning import corpus_f, sample_sentences

OBJECTIVES = ("likelihood", "hinge", "risk")
CHUNKS = tt.losses.ChunkFBeta()
LETTERS = 16  # at most this many letters of a word, from its end


class Tagger(nn.Module):
    """Scores tags from words, suffixes, part-of-speech tags and maybe letters; scores tag transitions.

    `sizes`: how many different words, suffixes and part-of-speech tags there are; `letters`: the same for
    letters, or 0 to ignore them.
    """

    def __init__(self, sizes, labels, letters, width=128):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in sizes)
        self.letters = nn.Embedding(letters, width) if letters else None
        self.filters = nn.Conv1d(width, width, 3, padding=1) if letters else None
        given = (len(sizes) + (letters > 0)) * width
        self.lstm = nn.LSTM(given, width, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * width, len(labels))
        self.transitions = nn.Parameter(torch.zeros(len(labels), len(labels)))
        self.labels = labels

    def forward(self, features):
        """Return emissions (sentences, positions, tags) from features (sentences, positions, numbers)."""
        seen = [table(features[..., i]) for i, table in enumerate(self.tables)]
        if self.letters is not None:  # a convolution over the letters of each word, as in Ma and Hovy (2016)
            given = self.letters(features[..., len(seen) :]).flatten(0, 1).transpose(1, 2)
            seen.append(torch.relu(self.filters(given)).amax(-1).unflatten(0, features.shape[:2]))
        return self.output(self.lstm(torch.cat(seen, dim=-1))[0])

    def chain(self, features, mask):
        """Return the distribution over taggings."""
        return ttt.Chain(self(features), self.transitions, mask=mask, states=self.labels)


def objective_of(name, labels):
    """Return the objective to minimise: a function of emissions, transitions, tags and mask."""
    if name == "hinge":
        return ttt.StructuredHinge(CHUNKS, scaling="slack", labels=labels)
    if name == "risk":
        return ttt.ExpectedLoss(CHUNKS, labels=labels)
    return ttt.NegativeLogLikelihood()


class Vocabulary:
    """Numbers words, suffixes, part-of-speech tags, letters and labels; 0 is for unknown ones."""

    def __init__(self, sentences):
        self.numbers = [{}, {}, {}]
        for sentence in sentences:
            for row in sentence:
                for numbers, value in zip(self.numbers, self.seen(row), strict=True):
                    numbers.setdefault(value, len(numbers) + 1)
        known = sorted({letter for sentence in sentences for row in sentence for letter in row[0]})
        self.letters = {letter: number for number, letter in enumerate(known, 1)}
        self.labels = sorted({row[2] for sentence in sentences for row in sentence})
        self.sizes = [len(numbers) + 1 for numbers in self.numbers]
        self.alphabet = len(self.letters) + 1

    @staticmethod
    def seen(row):
        """Return the features of a word."""
        return row[0].lower(), row[0][-3:], row[1]

    def features(self, row):
        """Return the numbers of the features of a word, and of its letters."""
        found = [numbers.get(value, 0) for numbers, value in zip(self.numbers, self.seen(row), strict=True)]
        letters = [self.letters.get(letter, 0) for letter in row[0][-LETTERS:]]
        return found + letters + [0] * (LETTERS - len(letters))

    def batch(self, sentences, device):
        """Return padded features, tags and mask of a batch of sentences."""
        features = [torch.tensor([self.features(row) for row in one]) for one in sentences]
        tags = [torch.tensor([self.labels.index(row[2]) for row in one]) for one in sentences]
        lengths = torch.tensor([len(one) for one in sentences])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        padded = (pad_sequence(some, batch_first=True) for some in (features, tags))
        return [*(tensor.to(device) for tensor in padded), mask.to(device)]


def clock(tensor):
    """Wait until the device of a tensor is idle, and return the time."""
    if tensor.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def train(model, batches, objective, epochs):
    """Minimise an objective; return the total time and the time of the structured loss, in seconds."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    started, spent = time.perf_counter(), 0.0
    for _ in range(epochs):
        for features, tags, mask in batches:
            optimiser.zero_grad()
            emissions = model(features)
            before = clock(emissions)
            scores = emissions.detach().requires_grad_()
            objective(scores, model.transitions, tags, mask).backward()
            spent += clock(emissions) - before
            emissions.backward(scores.grad)
            optimiser.step()
    return time.perf_counter() - started, spent


def train_by_graphs(model, batches, objective, epochs):
    """Train on a GPU with each step captured in a CUDA graph, which is replayed; return the total time."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)

    def step(features, tags, mask):
        optimiser.zero_grad()
        objective(model(features), model.transitions, tags, mask).backward()
        optimiser.step()

    started, graphs = time.perf_counter(), [torch.cuda.CUDAGraph() for _ in batches]
    with torch.cuda.stream(torch.cuda.Stream()):  # the first epoch is not captured, as PyTorch advises
        for batch in batches:
            step(*batch)
    torch.cuda.synchronize()
    for graph, batch in zip(graphs, batches, strict=True):
        with torch.cuda.graph(graph):
            step(*batch)
    for _ in range(epochs - 1):
        for graph in graphs:
            graph.replay()
    ttt.check_replays()  # raises an error if scores have become nan
    return time.perf_counter() - started


@torch.no_grad()
def predicted(model, batches, where=None):
    """Return the best labels for each sentence, optionally under a constraint."""
    found = []
    for features, _, mask in batches:
        chain = model.chain(features, mask)
        tags = chain.argmax if where is None else chain.topk(1, where).labels[0]
        for row, length in zip(tags.tolist(), mask.sum(1).tolist(), strict=True):
            found.append([model.labels[tag] for tag in row[:length]])
    return found


def read(path):
    """Return the sentences of a file, or 60 sample sentences."""
    return sample_sentences() if path is None else tt.io.read_conll(path)


def main(
    quick=False, data=None, test=None, device="cpu", epochs=12, size=32, width=128, graphs=False, letters=True
):
    """Train with each objective; return the chunk-level F-measures on held-out sentences."""
    sentences = read(data)
    split = 3 * len(sentences) // 4
    training, held_out = (sentences[:split], sentences[split:]) if test is None else (sentences, read(test))
    if quick:
        training, epochs = training[:20], 4
    words = Vocabulary(training)
    known = [[row for row in one if row[2] in words.labels] for one in held_out]
    held_out = [one for one, rows in zip(held_out, known, strict=True) if len(rows) == len(one)]
    batches, checks = (
        [words.batch(some[i : i + size], device) for i in range(0, len(some), size)]
        for some in (training, held_out)
    )
    right, scores = [[row[2] for row in one] for one in held_out], {}
    first = [label for label in words.labels if label.startswith("B-")]
    few = tt.valid_bio() & (tt.count(state=first, name="chunks") <= 3)
    for name in OBJECTIVES:
        torch.manual_seed(0)
        model = Tagger(words.sizes, words.labels, words.alphabet if letters else 0, width).to(device)
        train(model, batches, objective_of("likelihood", words.labels), epochs // 3)  # all start from there
        if graphs:
            seconds, share = train_by_graphs(model, batches, objective_of(name, words.labels), epochs), ""
        else:
            seconds, spent = train(model, batches, objective_of(name, words.labels), epochs)
            share = f", the loss: {spent / seconds:.0%} of it"
        scores[name] = corpus_f(right, predicted(model, checks), CHUNKS).f
        print(f"{name:10}  F1 {scores[name]:.3f}  {seconds:6.1f} s{share}")
    print("at most three chunks, all valid:", *predicted(model, checks[:1], few)[0])
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="file with training sentences; by default 60 sample sentences")
    parser.add_argument("--test", help="file with test sentences; by default the last quarter is held out")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--size", type=int, default=32, help="number of sentences per batch")
    parser.add_argument("--width", type=int, default=128, help="units of the LSTM in each direction")
    parser.add_argument(
        "--no-letters", dest="letters", action="store_false", help="ignore the letters of words"
    )
    parser.add_argument("--graphs", action="store_true", help="on a GPU: replay steps as CUDA graphs")
    parser.add_argument("--quick", action="store_true", help="run a few steps on a few sentences")
    main(**vars(parser.parse_args()))
