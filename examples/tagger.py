"""Train a neural tagger for chunks: by likelihood, for a margin of F1, for the expected F1 itself.

A bidirectional LSTM scores the tags of each word; the layers of :mod:`tallytree.torch` turn these scores into
losses over all taggings of a sentence, exactly, and into predictions. The script is the same on the CPU and
on a GPU. Without data of your own it trains on 45 small sentences; files are as those of CoNLL-2000, a word,
a part-of-speech tag and a chunk on each line. Needs the extras ``torch`` and ``learn``.

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


class Tagger(nn.Module):
    """Scores of tags from words, their endings and parts of speech, and of tags that follow each other."""

    def __init__(self, sizes, labels, width=32):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in sizes)
        self.lstm = nn.LSTM(len(sizes) * width, width, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * width, len(labels))
        self.transitions = nn.Parameter(torch.zeros(len(labels), len(labels)))
        self.labels = labels

    def forward(self, features):
        """Return emissions (sentences, positions, tags) from numbers (sentences, positions, features)."""
        seen = torch.cat([table(features[..., i]) for i, table in enumerate(self.tables)], dim=-1)
        return self.output(self.lstm(seen)[0])

    def chain(self, features, mask):
        """Return the distribution over taggings."""
        return ttt.Chain(self(features), self.transitions, mask=mask, states=self.labels)


def objective_of(name, labels):
    """Return what is minimised: a function of emissions, transitions, tags and mask."""
    if name == "hinge":
        return ttt.StructuredHinge(CHUNKS, scaling="slack", labels=labels)
    if name == "risk":
        return ttt.ExpectedLoss(CHUNKS, labels=labels)
    return lambda emissions, transitions, tags, mask: (
        -ttt.Chain(emissions, transitions, mask=mask).log_prob(tags).mean()
    )


class Vocabulary:
    """The numbers of words, endings, parts of speech and labels; 0 is for those that are not known."""

    def __init__(self, sentences):
        self.numbers = [{}, {}, {}]
        for sentence in sentences:
            for row in sentence:
                for numbers, value in zip(self.numbers, self.seen(row), strict=True):
                    numbers.setdefault(value, len(numbers) + 1)
        self.labels = sorted({row[2] for sentence in sentences for row in sentence})
        self.sizes = [len(numbers) + 1 for numbers in self.numbers]

    @staticmethod
    def seen(row):
        """Return what is looked at of a word."""
        return row[0].lower(), row[0][-3:], row[1]

    def batch(self, sentences, device):
        """Return features, tags and mask of some sentences, padded."""
        features = [
            torch.tensor(
                [[n.get(v, 0) for n, v in zip(self.numbers, self.seen(row), strict=True)] for row in one]
            )
            for one in sentences
        ]
        tags = [torch.tensor([self.labels.index(row[2]) for row in one]) for one in sentences]
        lengths = torch.tensor([len(one) for one in sentences])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        padded = (pad_sequence(some, batch_first=True) for some in (features, tags))
        return [*(tensor.to(device) for tensor in padded), mask.to(device)]


def clock(tensor):
    """Return the time at which all that was asked of a tensor's device is done."""
    if tensor.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def train(model, batches, objective, epochs):
    """Minimise an objective; return the seconds, and how many of them the structured loss took."""
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


@torch.no_grad()
def predicted(model, batches, where=None):
    """Return labels for each sentence: the best ones, or the best that satisfy a constraint."""
    found = []
    for features, _, mask in batches:
        chain = model.chain(features, mask)
        tags = chain.argmax if where is None else chain.topk(1, where).labels[0]
        for row, length in zip(tags.tolist(), mask.sum(1).tolist(), strict=True):
            found.append([model.labels[tag] for tag in row[:length]])
    return found


def read(path):
    """Return the sentences of a file, or 60 small ones."""
    return sample_sentences() if path is None else tt.io.read_conll(path)


def main(quick=False, data=None, test=None, device="cpu", epochs=12, size=32):
    """Train with each objective; return the F-measures of chunks on what was held out."""
    sentences = read(data)
    training, held_out = (sentences[:45], sentences[45:]) if test is None else (sentences, read(test))
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
        model = Tagger(words.sizes, words.labels).to(device)
        train(model, batches, objective_of("likelihood", words.labels), epochs // 3)  # all start from there
        seconds, spent = train(model, batches, objective_of(name, words.labels), epochs)
        scores[name] = corpus_f(right, predicted(model, checks), CHUNKS).f
        print(f"{name:10}  F1 {scores[name]:.3f}  {seconds:6.1f} s, the loss: {spent / seconds:.0%} of it")
    print("at most three chunks, all valid:", *predicted(model, checks[:1], few)[0])
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="sentences to train on")
    parser.add_argument("--test", help="sentences to test on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--size", type=int, default=32, help="sentences in a batch")
    parser.add_argument("--quick", action="store_true", help="a few steps on a few sentences")
    main(**vars(parser.parse_args()))
