"""Answers in single precision: what they report, and what raises an error."""

import pickle

import numpy as np
import pytest
from single_cases import rounds_to_nearest

import tallytree as tt
from tallytree.kernels import native


def test_the_certificate_says_the_gap(model):
    found = tt.solve(model, where=tt.count(state=1) == 1, precision="single")
    assert found.gap > 0
    assert not found.certificate.optimal
    assert found.certificate.gap == found.gap
    assert found.certificate.promised == pytest.approx(found.score + found.gap, abs=1e-15)
    first, _, third, *_ = found.explain().splitlines()
    assert first == (
        f"optimal up to a gap of {found.gap:.2g}: no labelling that satisfies 'count_1 == 1' has a higher "
        "score by more than that"
    )
    assert third.endswith("an upper bound: single precision, rounded up")
    assert tt.solve(model).gap == 0.0
    assert tt.Solution(0.0, 0.0, (), np.zeros(3, dtype=np.int64), model).gap == np.inf


def test_whole_numbers_are_exact():
    model = tt.Model.chain(np.array([[0.0, 4], [1, 3], [0, 2]]), np.array([[0.0, 1], [1, 0]]))
    found = tt.solve(model, precision="single")
    assert (found.gap, found.score) == (0.0, tt.solve(model).score)
    assert found.certificate.optimal
    assert found.explain().startswith("optimal: no labelling has a higher score\n")


def test_answers_of_a_profile_have_their_own_values_and_gaps(model):
    ones = tt.count(model, state=1, name="ones")
    profile = tt.profile(model, [ones], precision="single")
    first, *others = profile.top(4, lambda score, k: score - 2 * k)
    assert first.value == first.score - 2 * first.tally.ones
    assert first.gap == (profile.scores - 2 * profile.tallies[:, 0]).max() - first.value
    for other in others:
        assert other.gap == profile.scores[other.tally.ones] - other.score
        assert other.value == other.score - 2 * other.tally.ones
    assert profile.at(ones=2).gap == profile.scores[2] - profile.at(2).score
    assert "upper bound" in profile._repr_html_()
    assert f"gap={first.gap:.2g})" in repr(first)
    assert f"<td>{first.gap:.2g}</td>" in first._repr_html_()
    assert "single precision" in str(profile.plan)


def test_pickles_keep_precision_and_gap(model):
    profile = tt.profile(model, [tt.count(state=1)], precision="single")
    again = pickle.loads(pickle.dumps(profile))
    assert (again.precision, again.best().gap) == ("single", profile.best().gap)
    assert pickle.loads(pickle.dumps(profile.best())).gap == profile.best().gap > 0
    assert pickle.loads(pickle.dumps(profile.plan)).peak_bytes == profile.plan.peak_bytes


def test_reductions_and_restrictions(model):
    where = tt.regular("0* 1 0*")
    found, best = (tt.solve(model, where=where, precision=p) for p in ("single", "double"))
    np.testing.assert_array_equal(found.assignment, best.assignment)
    assert 0 < found.gap < 1e-6
    assert tt.solve(model, fixed={0: 0}, precision="single").assignment[0] == 0


def test_degenerate_models():
    nothing = tt.Model([], [])
    assert tt.solve(nothing, precision="single").gap == 0.0
    constant = tt.Model([2], [((), 0.1), ((0,), [0.25, 0.5])])
    found = tt.solve(constant, precision="single")
    assert found.score == pytest.approx(0.6)
    assert 0 <= found.gap <= 2e-16  # constants stay doubles
    with pytest.raises(tt.InfeasibleError):
        tt.solve(tt.Model([2], [((0,), [-np.inf, -np.inf])]), precision="single")


# ---------------------------------------------------------------- what is refused


def test_what_single_precision_cannot_give_is_refused(model):
    ones = tt.count(model, state=1)
    profile = tt.profile(model, [ones], precision="single")
    refused = [
        (lambda: profile.max_marginals(), "marginals need double precision"),
        (lambda: profile.ranked(), "labellings in order need double precision"),
        (lambda: profile.ranked(lambda score, k: score), "labellings in order need double precision"),
        (lambda: tt.distribution(model, [ones], plan=profile.plan), "distributions need double precision"),
        (lambda: tt.profile(model, precision="single", backend="reference"), "reference runs need double"),
        (lambda: tt.plan(model, precision="half"), "precision must be 'double' or 'single', got 'half'"),
    ]
    for ask, text in refused:
        with pytest.raises(tt.ModelError, match=text):
            ask()


@pytest.mark.parametrize("score", [1e39, -1e39, 1e290, 2e38])
@pytest.mark.parametrize("threads", [1, 2])
def test_scores_beyond_single_precision_are_refused(score, threads):
    pairs = [[0.0, score], [-np.inf, 0.0]]
    model = tt.Model([2, 2, 2], [((0,), [score, 0.0]), ((1, 0), pairs), ((2,), [0, score])])
    with pytest.raises(tt.ModelError, match=r"the scores add up to .* but single precision ends at 1e\+38"):
        tt.solve(model, precision="single", threads=threads)
    assert rounds_to_nearest()


def test_an_objective_that_rounding_decides_is_refused(model):
    best = tt.solve(model).score
    bound = tt.profile(model, precision="single").scores[0]
    assert bound > best

    def sharp(score):
        return np.where(score > best, score, -np.inf)

    with pytest.raises(tt.ObjectiveError, match="single precision cannot decide"):
        tt.solve(model, objective=sharp, precision="single")


def test_layouts_of_the_other_precision_are_refused(model):
    tables = [block.tables for block in model.blocks]
    with pytest.raises(ValueError, match="this layout is for single precision"):
        native.Run(tt.plan(model, precision="single").layout, tables, native.MAX_PLUS)
    with pytest.raises(ValueError, match="this layout is for double precision"):
        native.SingleRun(tt.plan(model).layout, tables)
    with pytest.raises(IndexError, match="no such root cell"):
        native.SingleRun(tt.plan(model, precision="single").layout, tables).decode(9)
