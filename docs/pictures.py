"""Draw the pictures of the documentation: ``make pictures``, or ``python docs/pictures.py [names …]``."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

import tallytree as tt
from tallytree import parsing
from tallytree.learning import SequenceCRF, SequenceSVM, WindowFeatures, sample_sentences, templated
from tallytree.plot import (
    clique_tree_picture,
    profile_curve,
    reliability_curve,
    side_by_side,
    training_curves,
    trees_side_by_side,
)
from tallytree.plot.canvas import ACCENT

FOLDER = Path(__file__).parent / "pictures"
EXAMPLES = Path(__file__).parents[1] / "examples"

SHARPNESS = 2  # pixels for each pixel of the page; tools/site_hooks.py shows pictures at half their size

EVIDENCE = [[0, 1.5], [0, -2.5], [0, 3.0], [0, -1.25], [0, 0.5], [0, -0.75], [0, 2.0]]
WEEK = tt.Model.chain(EVIDENCE, np.eye(2), states=["dry", "wet"])
WET = tt.count(WEEK, state="wet", name="wet")


def constraint():
    """Four wet days: worse than three and than five."""
    return profile_curve(tt.profile(WEEK, [WET]), where=WET == 4)


def two_statistics():
    """Wet days and changes of the weather under two combinations of them."""
    changes = tt.changes()
    profile = tt.profile(WEEK, [WET, changes])
    return profile_curve(profile, where=(WET + changes >= 6) & (WET - changes <= 2))


def diverse():
    """Four weeks, each at least three days from all before it."""
    return side_by_side(tt.diverse_k_best(WEEK, 4, distance=3))[0]


def diverse_grid():
    """A noisy image, and readings of it that differ in at least 12 places."""
    rng = np.random.default_rng(4)
    truth = np.zeros((9, 12), dtype=int)
    truth[2:7, 2:6], truth[3:8, 8:11] = 1, 1
    noise = np.stack([-1.0 * truth, 1.0 * truth - 0.5], axis=-1) + 0.9 * rng.normal(size=(9, 12, 2))
    model = tt.Model.grid(noise, 0.6 * np.eye(2), 0.6 * np.eye(2), states=["background", "object"])
    return side_by_side(tt.diverse_k_best(model, 3, distance=12))[0]


def price():
    """A price is a line above the profile: it touches three and six wet days, and passes over four."""
    relaxed = tt.relax(WEEK, where=WET == 4, candidates=0)
    ax = profile_curve(tt.profile(WEEK, [WET]), where=WET == 4)
    days = np.arange(8)
    line = relaxed.upper_bound - relaxed.multipliers[0] * (days - 4)
    ax.plot(days, line, "--", color="#66a182", linewidth=1.5, label="bound at the best price")
    ax.plot([4], [relaxed.upper_bound], "o", color="#66a182", markersize=7, fillstyle="none")
    ax.legend(frameon=False, loc="lower center", fontsize=9)
    return ax


def band():
    """The cells of a table that bounds leave, among those that a window leaves and all."""
    rng = np.random.default_rng(2)
    days, wet, count = 120, np.array([0.0, 1.0]), 60
    unary, pairs = rng.normal(size=(days, 2)), 0.5 * np.eye(2)
    model = tt.Model.chain(unary, pairs)
    found = tt.solve(model, where=tt.count(model, state=1) == count, strategy="bounds")
    (part,) = found.certificate.parts
    best = [unary[0] + part.prices[0] * wet]  # of the days so far, at the price
    for row in unary[1:]:
        best.append((best[-1][:, None] + pairs).max(axis=0) + row + part.prices[0] * wet)
    cells = {(s, s): float(best[-1].max() - best[-1][s]) for s in (0, 1)}  # state, wet days from here on
    seen = np.full((days + 1, days), np.nan)
    for day in range(days - 1, -1, -1):
        cells = {cell: regret for cell, regret in cells.items() if regret <= part.budget + 1e-9}
        later = np.arange(days + 1)
        seen[later <= days - day, day] = 0
        seen[(later <= days - day) & (later <= count) & (count - later <= day), day] = 1
        for _, sum_ in cells:
            seen[sum_, day] = 2
        before: dict[tuple[int, int], float] = {}
        for (state, sum_), regret in cells.items():
            made = best[day - 1] + pairs[:, state]
            for s in (0, 1):
                cell, lost = (s, sum_ + s), regret + float(made.max() - made[s])
                before[cell] = min(lost, before.get(cell, np.inf))
        cells = before
    ax = plt.figure(figsize=(7, 3.6), dpi=110, layout="constrained").add_subplot()
    colours = ListedColormap(["#eeeeee", "#c9d7e8", ACCENT])
    ax.imshow(seen, origin="lower", aspect="auto", cmap=colours, vmin=0, vmax=2, interpolation="none")
    ax.set(xlabel="day", ylabel="wet days from here on", ylim=(0, days))
    names = ("impossible with the constraint", f"can still reach {count}", "left by the bounds")
    ax.legend(
        [Patch(color=colours(i)) for i in range(3)], names, frameon=False, loc="upper right", fontsize=9
    )
    return ax


def score_range():
    """Counts that determine the score: those whose score is in a range stand out."""
    chain = tt.sufficient_statistics(
        ["walk"] * 9, {"walk": [0.0, 0.37]}, [[0.0, -0.81], [-0.81, 0.0]], states=["sun", "rain"]
    )
    rain = chain.emission("walk", "rain")
    turns = tt.Statistic.combination(
        chain.transition("sun", "rain") + chain.transition("rain", "sun"), name="turns"
    )

    def in_range(score, rain, turns):
        total = 0.37 * rain - 0.81 * turns
        return np.where((total >= -1.0) & (total <= 1.0), score, -np.inf)

    ax = profile_curve(tt.profile(chain.model, [rain, turns]), in_range)
    ax.set_title("counts with a score from -1 to 1", fontsize=10)
    return ax


def within_margin():
    """The loss of each (TP, FP) that is within the margin of one sentence."""
    scores = [[0, 1.2], [0, -0.6], [0, 0.9], [0, 0.4], [0, -1.5], [0, 1.1], [0, -0.9], [0, 0.3]]
    model = tt.Model.chain(2.0 * np.array(scores), 0.4 * np.eye(2), states=["O", "B"])
    truth = ["B", "O", "B", "B", "O", "B", "O", "O"]
    loss = tt.losses.FBeta(truth, background="O")

    def counted(score, tp, fp):
        within = model.score(truth) - score <= 4 - tp + fp
        return np.where(within, loss.value(tp, fp), 0.0)

    profile = tt.profile(model, loss.on(model).reduce(model).statistics)
    ax = profile_curve(profile, counted)
    ax.set_title("F1 loss within the margin, 0 elsewhere", fontsize=10)
    return ax


def clique_tree():
    """A grid of three by six: the cliques are as wide as its shorter side."""
    grid = tt.Model.grid(np.zeros((3, 6, 3)), np.eye(3), np.eye(3))
    return clique_tree_picture(grid, [tt.count(state=1)])


FORK = parsing.parse_tree(
    "(S (NP (DT the) (NN waiter)) (VP (VBD ate) (NP (DT the) (NN fish))"
    " (PP (IN with) (NP (DT a) (NN fork)))) (. .))"
)


def trees():
    """What is right, and a parse that takes the fork for a part of the fish."""
    other = parsing.parse_tree(
        "(S (NP (DT the) (NN waiter)) (VP (VBD ate) (NP (NP (DT the) (NN fish))"
        " (PP (IN with) (NP (DT a) (NN fork))))) (. .))"
    )
    return trees_side_by_side([FORK, other])[0]


def reliability():
    """How often labels of a given probability are correct, on held-out sentences."""
    sentences = sample_sentences()
    X = [templated([(word, tag) for word, tag, _ in sentence]) for sentence in sentences]
    y = [[chunk for _, _, chunk in sentence] for sentence in sentences]
    crf = SequenceCRF(c2=0.1).fit(X[:45], y[:45])
    right = crf.classes_ == np.concatenate(y[45:])[:, np.newaxis]
    return reliability_curve(np.vstack(crf.predict_marginals(X[45:])), right, bins=5)


def training():
    """A chunker learned for F1, with both scalings."""
    sentences = sample_sentences()[:30]
    runs = {}
    for scaling in ("margin", "slack"):
        svm = SequenceSVM(
            tt.losses.FBeta(background="O"), scaling=scaling, C=0.1, tolerance=0.04, features=WindowFeatures()
        ).fit(sentences, [[row[2] for row in sentence] for sentence in sentences])
        runs[scaling] = svm.history_
    return training_curves(runs)[0]


PICTURES: dict[str, Callable] = {
    "constraint": constraint,
    "two-statistics": two_statistics,
    "diverse": diverse,
    "diverse-grid": diverse_grid,
    "price": price,
    "band": band,
    "score-range": score_range,
    "within-margin": within_margin,
    "clique-tree": clique_tree,
    "trees": trees,
    "training": training,
    "reliability": reliability,
}


def example(name: str) -> Callable:
    """Return what draws the picture of a script of the gallery."""
    return lambda: runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()


GALLERY = ("segments", "digits", "entities", "roster", "parses", "proportions")
PICTURES |= {name: example(name) for name in GALLERY}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        figure = PICTURES[name]().figure
        figure.savefig(FOLDER / f"{name}.png", dpi=SHARPNESS * figure.dpi, metadata={"Software": None})
        plt.close("all")
        print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
