"""Chains as tensors, and their properties by enumeration."""

from itertools import product

import torch


def random_chain(seed, device, own=False, forbidden=0.0, dtype=torch.float64, scale=1.0):
    """Emissions, transitions and lengths of a few short sentences; the padding is full of nan."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)

    tags = int(torch.randint(1, 4, (), generator=generator))
    lengths = torch.randint(1, 5, (3,), generator=generator)
    longest = int(lengths.max())
    emissions = normal(3, longest, tags)
    transitions = normal(3, longest - 1, tags, tags) if own else normal(tags, tags)
    if forbidden:
        for table in (emissions, transitions):
            table[torch.rand(table.shape, generator=generator) < forbidden] = -torch.inf
            table[..., 0] = 0.0
    for number, length in enumerate(lengths.tolist()):
        emissions[number, length:] = torch.nan
        if own:
            transitions[number, length - 1 :] = torch.nan
    return emissions.to(device, dtype), transitions.to(device, dtype), lengths


def enumerated(emissions, transitions, lengths):
    """For each sentence all taggings (n, length), and their scores, which are part of the graph."""
    found = []
    for number, length in enumerate(lengths.tolist()):
        tags = torch.tensor(list(product(range(emissions.shape[2]), repeat=length)), device=emissions.device)
        scores = emissions[number, torch.arange(length), tags].sum(1)
        before, after = tags[:, :-1], tags[:, 1:]
        if transitions.ndim == 2:
            scores = scores + transitions[before, after].sum(1)
        else:
            scores = scores + transitions[number, torch.arange(length - 1), before, after].sum(1)
        found.append((tags, scores))
    return found


def padded(tags, longest, fill=-100):
    """One tagging of each sentence as a tensor; the padding has what no tag is."""
    whole = torch.full((len(tags), longest), fill, device=tags[0].device)
    for number, one in enumerate(tags):
        whole[number, : len(one)] = one
    return whole
