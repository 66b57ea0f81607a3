"""A tour in the terminal: which frames of a noisy recording are speech? ``python -m tallytree.demo``.

The recording is made up here: three utterances, and evidence for each frame that is right more often than not.
A chain that likes to stay in its state hears six of them. Counting utterances over the whole labelling mends
that, exactly: one profile, then any constraint and any objective.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tallytree as tt

__all__ = ["main"]

FRAMES = 64
TRUTH = [
    any(t in utterance for utterance in (range(6, 18), range(27, 37), range(44, 58))) for t in range(FRAMES)
]
LEVELS = " ▁▂▃▄▅▆▇█"
ASCII = str.maketrans(LEVELS + "·▲─│└", " .,:-=+*#" + ".^-|+", "") | {ord("τ"): "tau", ord("ν"): "nu"}


def recording() -> tt.Model:
    """Make the model: ``F(y) = Σ_t evidence[t] · [y_t = speech] + 0.9 Σ_t [y_t = y_t+1]``."""
    evidence = np.where(TRUTH, 1.0, -1.0) + np.random.default_rng(2).normal(scale=1.7, size=FRAMES)
    unary = np.column_stack((np.zeros(FRAMES), evidence))
    return tt.Model.chain(unary, 0.9 * np.eye(2), states=["silence", "speech"])


def utterances(model: tt.Model) -> tt.Statistic:
    """Count how often speech begins: at the first frame, or after silence."""
    begins = [((t, t + 1), [[0, 1], [0, 0]]) for t in range(len(model) - 1)]
    return tt.Statistic([((0,), [0, 1]), *begins], name="utterances")


def worst_f1(model: tt.Model) -> tt.Solution:
    """Find the labelling that training on F1 asks for: the largest ``score + 40 (1 - F1)``."""
    truth = np.array(TRUTH, dtype=np.int64)
    tp = tt.matches(model, truth, background="silence", name="tp")
    fp = tt.mismatches(model, truth, background="silence", name="fp")
    return tt.solve(
        model, [tp, fp], lambda score, tp, fp: score + 40 * (1 - 2 * tp / (truth.sum() + tp + fp))
    )


# --- pictures in text -----------------------------------------------------------------------------------------


def chart(values: NDArray[np.float64], width: int, height: int = 8) -> Iterator[str]:
    """Draw one column for each value, in eighths of a line, over an axis numbered from 0."""
    column = max(1, min(3, (width - 9) // len(values)))
    low, high = values.min(), values.max()
    eighths = np.rint(1 + (8 * height - 1) * (values - low) / max(high - low, 1e-300)).astype(int)
    for line in range(height)[::-1]:
        label = f"{high:7.1f}" if line == height - 1 else f"{low:7.1f}" if line == 0 else " " * 7
        cells = (LEVELS[level] for level in np.clip(eighths - 8 * line, 0, 8))
        yield f"{label} │" + "".join((cell * max(1, column - 1)).ljust(column) for cell in cells)
    yield " " * 8 + "└" + "─" * (column * len(values))
    yield " " * 9 + "".join(str(tally).ljust(5 * column) for tally in range(0, len(values), 5))


def strip(labelling: Iterable[Any]) -> str:
    """Draw a labelling: a block for speech, a dot for silence."""
    return "".join("█" if state else "·" for state in labelling)


def marks(one: Sequence[Any] | NDArray[Any], other: Sequence[Any] | NDArray[Any]) -> str:
    """Point at the frames in which two labellings differ."""
    return "".join("▲" if a != b else " " for a, b in zip(one, other, strict=True))


def spark(values: NDArray[np.float64]) -> str:
    """Draw a signal in one line."""
    return "".join(LEVELS[1 + int(7.999 * share)] for share in (values - values.min()) / np.ptp(values))


def wrapped(rows: Mapping[str, str], width: int) -> Iterator[str]:
    """Put labelled rows below each other, in as many pieces as the width asks for."""
    size = max(10, width - 15)
    for at in range(0, FRAMES, size):
        yield from (f"  {label:>11} {row[at : at + size]}".rstrip() for label, row in rows.items())


def described(solution: tt.Solution, counted: tt.Statistic) -> str:
    """Say in words what a labelling is like."""
    wrong = int((solution.assignment != TRUTH).sum())
    return (
        f"{counted.tally(solution.assignment)} utterances, score {solution.score:.2f}, {wrong} frames wrong"
    )


# --- the tour -------------------------------------------------------------------------------------------------


def tour(model: tt.Model, width: int) -> Iterator[str]:
    """Tell the story, line by line; headings begin with #."""
    counted = utterances(model)
    evidence = model.blocks[0].tables[:, 1]
    yield "# The price, before anything runs"
    yield from str(tt.plan(model, [counted])).splitlines()

    profile = tt.profile(model, [counted])
    yield "# The profile: the best score for each number of utterances"
    yield from chart(profile.scores, width)

    plain, three = profile.best(), profile.best(where=counted == 3)
    yield "# Plain MAP, and the best labelling with exactly three utterances"
    rows = {"evidence": spark(evidence), "truth": strip(TRUTH), "plain MAP": strip(plain.assignment)}
    changed = marks(plain.assignment, three.assignment)
    yield from wrapped({**rows, "exactly 3": strip(three.assignment), "changed": changed}, width)
    yield from (
        f"{name:>13} {described(s, counted)}" for name, s in (("plain MAP", plain), ("exactly 3", three))
    )

    about = profile.best(lambda score, k: score - (k - 4.0) ** 2)
    yield "# Any objective on the same profile: score - (utterances - 4)²"
    changed = marks(plain.assignment, about.assignment)
    yield from wrapped(
        {"plain MAP": rows["plain MAP"], "about 4": strip(about.assignment), "changed": changed}, width
    )
    yield f"{'about 4':>13} {described(about, counted)}"

    worst = worst_f1(model)
    yield "# What training on F1 asks for: the largest score + 40 (1 - F1)"
    changed = marks(TRUTH, worst.assignment)
    yield from wrapped(
        {"truth": rows["truth"], "augmented": strip(worst.assignment), "wrong": changed}, width
    )
    yield f"{'augmented':>13} {worst.tally.tp} true and {worst.tally.fp} false positives, value {worst.value:.2f}"


def write_png(model: tt.Model, path: str) -> None:
    """Draw the profile with matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit(
            "--png draws with matplotlib, which is not installed: pip install matplotlib"
        ) from None
    profile = tt.profile(model, [utterances(model)])
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="utterances", ylabel="best score", title="The profile")
    axes.plot(profile.tallies[:, 0], profile.scores, ".-", color="0.4")
    for solution, name in ((profile.best(), "plain MAP"), (profile.at(3), "exactly 3")):
        axes.plot(solution.tally[0], solution.score, "o", markersize=9, label=name)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tour, for the width and the encoding of the terminal."""
    parser = argparse.ArgumentParser(prog="python -m tallytree.demo", description="A tour of tallytree.")
    parser.add_argument("--png", metavar="FILE", help="also draw the profile, with matplotlib")
    path, model = parser.parse_args(arguments).png, recording()
    if path:
        write_png(model, path)
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line in tour(model, shutil.get_terminal_size().columns):
        text = (
            f"\n\033[1m{line[2:]}\033[0m" if line.startswith("# ") and bold else line.replace("# ", "\n", 1)
        )
        try:
            print(text)
        except UnicodeEncodeError:
            print(text.translate(ASCII).encode("ascii", "replace").decode())


if __name__ == "__main__":
    main()
