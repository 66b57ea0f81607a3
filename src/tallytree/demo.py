"""A tour in the terminal: find the speech in a noisy recording. ``python -m tallytree.demo``.

The recording is synthetic, with a seed chosen to make a point: three utterances, and evidence for each frame
that is right more often than not. A chain that prefers to stay in its state finds six utterances. One profile
has the exact answer for every number of utterances; any constraint or objective is then a look-up.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

import tallytree as tt

TRUTH = np.repeat([0, 1, 0, 1, 0, 1, 0], [6, 12, 9, 10, 7, 14, 6])
LEVELS = " ▁▂▃▄▅▆▇█"
ASCII = str.maketrans(LEVELS + "·▲─│└²", " .,:-=+*#" + ".^-|+2") | {ord("τ"): "tau", ord("ν"): "nu"}

Labelling = NDArray[np.int64]


def recording() -> tt.Model:
    """Build the model: ``F(y) = Σ_t evidence[t] · [y_t = speech] + 0.9 Σ_t [y_t = y_t+1]``."""
    evidence = 2 * TRUTH - 1 + np.random.default_rng(2).normal(scale=1.7, size=len(TRUTH))
    unary = np.column_stack((np.zeros(len(TRUTH)), evidence))
    return tt.Model.chain(unary, 0.9 * np.eye(2), states=["silence", "speech"])


def utterances(model: tt.Model) -> tt.Statistic:
    """Count the runs of speech."""
    return tt.segments(model, state="speech", name="utterances")


def worst_f1(model: tt.Model) -> tt.Solution:
    """Find the labelling that F1 training needs: the one with the largest ``score + 40 (1 - F1)``."""
    tp = tt.matches(model, TRUTH, background="silence", name="tp")
    fp = tt.mismatches(model, TRUTH, background="silence", name="fp")
    size = TRUTH.sum()
    best: tt.Solution = tt.solve(
        model, [tp, fp], lambda score, tp, fp: score + 40 * (1 - 2 * tp / (size + tp + fp))
    )
    return best


def chart(values: NDArray[np.float64], width: int, height: int = 8) -> Iterator[str]:
    """Draw one column per value, in eighths of a line, over an axis numbered from 0; ▲ marks the best."""
    column = max(1, min(3, (width - 9) // len(values)))
    low, high = values.min(), values.max()
    eighths = np.rint(1 + (8 * height - 1) * (values - low) / (high - low)).astype(int)
    for line in reversed(range(height)):
        label = {height - 1: f"{high:.1f}", 0: f"{low:.1f}"}.get(line, "")
        cells = (LEVELS[level] * max(1, column - 1) for level in np.clip(eighths - 8 * line, 0, 8))
        yield f"{label:>7} │" + "".join(cell.ljust(column) for cell in cells).rstrip()
    yield " " * 8 + "└" + "".join("─▲"[int(value == high)].ljust(column, "─") for value in values)
    yield " " * 9 + "".join(str(tally).ljust(5 * column) for tally in range(0, len(values), 5)).rstrip()


def spark(values: NDArray[np.float64]) -> str:
    """Draw a signal on one line."""
    return "".join(LEVELS[1 + int(7.999 * share)] for share in (values - values.min()) / np.ptp(values))


def strip(labelling: Labelling) -> str:
    """Draw a labelling: a block for speech, a dot for silence."""
    return "".join("·▆"[state] for state in labelling)


def marks(one: Labelling, other: Labelling) -> str:
    """Mark the frames in which two labellings differ."""
    return "".join(" ▲"[int(different)] for different in one != other)


def stacked(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Stack labelled rows, wrapped to the given width."""
    piece = max(8, width - 13)
    for at in range(0, len(TRUTH), piece):
        yield from (f"{label:>11}  {row[at : at + piece]}".rstrip() for label, row in rows)
        yield ""


def tour(model: tt.Model, width: int) -> Iterator[str]:
    """Yield the tour, line by line; headings begin with #."""
    counted = utterances(model)
    profile = tt.profile(model, [counted])
    yield "# A noisy recording"
    yield from _problem(model, profile, width)
    yield "# The profile: the best score for every number of utterances, in one pass"
    yield from chart(profile.scores, width)
    yield "# Look-ups: exactly 3 utterances, and the largest score - (utterances - 4)²"
    yield from _look_ups(profile, counted, width)
    yield "# Training for F1 looks for errors: the largest score + 40 (1 - F1)"
    worst = worst_f1(model)
    rows = [("truth", strip(TRUTH)), ("augmented", strip(worst.assignment))]
    yield from stacked([*rows, ("wrong", marks(TRUTH, worst.assignment))], width)
    yield f"{'augmented':>11}  value {worst.value:.2f}, true and false positives {tuple(worst.tally)}"
    yield "# The cost of the profile, which is known before anything runs"
    yield from str(tt.plan(model, [counted])).splitlines()


def _problem(model: tt.Model, profile: tt.Profile, width: int) -> Iterator[str]:
    plain, right = profile.best(), np.sum(np.diff(TRUTH) > 0)
    text = (
        f"{len(model)} frames, each silence or speech. There are {right} utterances, but "
        f"the labelling with the highest score (plain MAP) has {plain.tally[0]}."
    )
    yield from wrap(text, max(width, 20))
    rows = [("evidence", spark(model.blocks[0].tables[:, 1])), ("truth", strip(TRUTH))]
    rows += [("plain MAP", strip(plain.assignment)), ("wrong", marks(TRUTH, plain.assignment))]
    yield from stacked(rows, width)


def _look_ups(profile: tt.Profile, counted: tt.Statistic, width: int) -> Iterator[str]:
    plain, three = profile.best(), profile.best(where=counted == 3)
    near = profile.best(lambda score, k: score - (k - 4.0) ** 2)
    rows = [("truth", strip(TRUTH)), ("plain MAP", strip(plain.assignment))]
    for name, found in (("exactly 3", three), ("near 4", near)):
        rows += [(name, strip(found.assignment)), ("changed", marks(plain.assignment, found.assignment))]
    yield from stacked(rows, width)
    for name, found in (("plain MAP", plain), ("exactly 3", three), ("near 4", near)):
        wrong = (found.assignment != TRUTH).sum()
        yield f"{name:>11}  {found.tally[0]} utterances, score {found.score:.2f}, {wrong} frames wrong"


def write_png(model: tt.Model, path: str) -> None:
    """Draw the profile with matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("--png needs matplotlib, which is not installed: pip install matplotlib") from None
    profile = tt.profile(model, [utterances(model)])
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="utterances", ylabel="best score", title="The profile")
    axes.plot(profile.tallies[:, 0], profile.scores, ".-", color="0.4")
    for name, found in {"plain MAP": profile.best(), "exactly 3": profile.at(3)}.items():
        axes.plot(found.tally[0], found.score, "o", markersize=9, label=name)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tour, fitted to the width and character set of the terminal."""
    parser = argparse.ArgumentParser(prog="python -m tallytree.demo", description="A tour of tallytree.")
    parser.add_argument("--png", metavar="FILE", help="also plot the profile (needs matplotlib)")
    path, model = parser.parse_args(arguments).png, recording()
    if path:
        write_png(model, path)
    text = "\n".join(tour(model, shutil.get_terminal_size().columns)).replace("\n\n# ", "\n# ")
    bold, amber, end = "\033[1m", "\033[33m", "\033[0m"
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        bold = amber = end = ""
    text = re.sub("^# (.*)", rf"\n{bold}\1{end}", text, flags=re.MULTILINE)
    text = re.sub("▲+", rf"{amber}\g<0>{end}", text)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = text.translate(ASCII)
    print(text)


if __name__ == "__main__":
    main()
