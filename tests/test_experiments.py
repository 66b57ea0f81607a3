"""Experiments take long and need data; here the figure's questions are asked about small sentences."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt

FOLDER = Path(__file__).parents[1] / "experiments"


@pytest.mark.parametrize("task", ["tagging", "chunking"])
@pytest.mark.parametrize("words", [5, 60])
def test_every_question_of_the_figure_has_its_operations(monkeypatch, task, words):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "figure_questions", raising=False)
    import figure_questions as figure

    classes = ["O", *(f"{place}-{kind}" for kind in ("NP", *range(19)) for place in "BI")]
    rng = np.random.default_rng(words)
    size = len(classes)
    model = tt.Model.chain(rng.normal(size=(words, size)), rng.normal(size=(size, size)), states=classes)
    truth = ["B-NP", *(["I-NP", "O", "B-NP"] * words)[: words - 1]]
    for question in getattr(figure, task)(classes):
        answer = question.ask(figure.Sentence(model, truth))
        assert answer.operations >= words, question.name
