"""What .wcsp and .cfn files may contain, and what is rejected."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from networks import (
    as_cfn,
    as_wcsp,
    cfn,
    least,
    networks,
    wcsp,
)

import tallytree as tt
from tallytree.io import ProblemFile, read_cfn, read_wcsp, write_cfn, write_wcsp

# --- the formats --------------------------------------------------------------------------------------------


def test_shared_tables_of_wcsp():
    text = "a 4 4 6 1  4 4 4 4  -2 0 1 0 4  0 0 1 1 1 1 2 2 1 3 3 1  " + "".join(
        f"2 {a} {b} 0 -1  " for a, b in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    )
    assert sorted(wcsp(text).solve().assignment.tolist()) == [0, 1, 2, 3]


def test_freedom_of_cfn():
    full = """{"problem": {"name": "p", "mustbe": "<10.0"},
        "variables": {"u": ["a", "b"], "v": 2, "w": -2},
        "functions": {"f": {"scope": ["u", "v"], "defaultcost": "0.25", "costs": ["b", 1, 3.5, "a", 0, -1]},
                      "g": {"scope": [1, 2], "costs": "h"},
                      "h": {"scope": [0, 1], "costs": [[1, 2], [3, 0.5]]}}}"""
    terse = """
# a comment
[[p <10.0] {u [a b] v 2 w 2}
# another
{{scope [u v] defaultcost 0.25 costs [b 1 3.5 a 0 -1]}
 {scope [v w] costs [1 2 3 0.5]} h {scope [u v] costs [1 2 3 .5]}}]"""
    for text in (full, terse):
        problem = cfn(text)
        assert problem.model.score([1, 1, 1]) == -(3.5 + 0.5 + 0.5)
        assert problem.model.score([0, 0, 0]) == -(-1 + 1 + 1)
        assert problem.model.labels([1, 0, 1]).tolist() == ["b", "0", "1"]
        assert problem.model.variables == ("u", "v", "w")
    assert cfn("{{p <5} [2 2] {}}").model.variables is None


def test_maximisation():
    problem = cfn('{{p ">1.5"} {x: 3 y: 2} {f: {scope: [x] costs: [1 2.5 3]} g: {scope: [y] costs: [-1 0]}}}')
    assert problem.solve().value == 3
    assert problem.model.score([0, 0]) == -np.inf
    with pytest.raises(tt.InfeasibleError):
        cfn(
            '{{p ">3.0"} {x: 3 y: 2} {f: {scope: [x] costs: [1 2.5 3]} g: {scope: [y] costs: [-1 0]}}}'
        ).solve()


@pytest.mark.parametrize(
    ("asked", "text", "cost"),  # what toulbar2 says
    [
        ("0001", "wamong hard 3 1 0 4 4", 3),
        ("0001", "wamong hard 100 1 0 4 4", None),
        ("0001", "wamong hard 0 1 0 4 4", 0),
        ("0001", "wamong hard 99 1 0 4 4", 99),
        ("0011", "wgcc hard 3 2 0 0 0 1 0 0", 6),
        ("0011", "wgcc hard 3 2 0 3 4 1 2 4", 3),
        ("0011", "walldiff hard 3", 6),
        ("0001", "walldiff hard 3", 3),
        ("0001", "salldiff hard 3", 6),
        ("0001", "salldiffdp hard 3", 6),
        ("0011", "wsum hard 3 > 4", 3),
        ("0011", "wsum hard 3 != 2", 3),
        ("0111", "wsum hard 3 != 2", 0),
        ("0011", "wvarsum hard 3 <", 3),
        ("0011", "wvaramong hard 3 1 0", 3),
        ("0011", "wvaramong hard 3 1 1", 0),
    ],
)
def test_a_hard_count_below_the_bound_has_a_flat_cost(asked, text, cost):
    single = "".join(f"1 {v} 100 1 {state} 0\n" for v, state in enumerate(asked))
    assert least(wcsp(f"p 4 2 5 100  2 2 2 2\n{single} 4 0 1 2 3 -1 {text}")) == cost


def test_a_hard_count_without_a_cost_forbids():
    text = "{{p <9} [2 2] {c: {scope: [0 1] type: wsum params: {metric: hard comparator: '==' to: 2}}}}"
    assert cfn(text.replace("'", '"')).solve().labels.tolist() == [1, 1]


@pytest.mark.parametrize("text", ["sgcc hard 3 1 0 1 1", "samong hard 3 1 1 1 0", "salldiffkp hard 3"])
def test_a_hard_count_of_another_kind_below_the_bound_is_refused(text):
    with pytest.raises(tt.ModelError, match="has a cost of 3, below the upper bound, which is not supported"):
        wcsp(f"p 2 2 1 100  2 2  2 0 1 -1 {text}")
    wcsp(f"p 2 2 1 3  2 2  2 0 1 -1 {text}").solve()


def test_a_flat_cost_is_for_minimisation():
    count = '{scope: [0 1] type: wsum params: {metric: hard cost: 3 comparator: "==" to: 2}}'
    with pytest.raises(tt.ModelError, match="prices on counts are only supported if costs are minimised"):
        cfn(f'{{{{p ">-100.0"}} [2 2] {{c: {count}}}}}')


@pytest.mark.parametrize("number", ["99999999999999999999", "-99999999999999999999"])
@pytest.mark.parametrize(
    "text",
    [">= {} 1", ">= 1 {}", "< {} 1", "= {} 0", "disj {} 1 1", "disj 1 1 {}", "sdisj {} 1 1 1 1 1",
     "sdisj 1 1 {} 1 1 1", "knapsack {} 1 1", "knapsack 1 {} 1", "wsum hard 3 == {}", "wamong lin 3 1 1 {} 2",
     "wamong hard 3 1 {} 1 2", "knapsackv 1 1 0 1 {}"],
)  # fmt: skip
def test_numbers_beyond_machine_words_are_read_or_refused_in_words(text, number):
    try:
        wcsp(f"p 2 2 1 100  2 2  2 0 1 -1 {text.format(number)}").solve()
    except tt.TallytreeError as error:
        assert not isinstance(error.__cause__, OverflowError)


def test_the_bound_is_on_the_whole_cost():
    text = "p 2 2 2 {top}  2 2  1 0 0 2 0 3 1 9  1 1 0 2 0 4 1 9"
    assert least(wcsp(text.format(top=8))) == 7
    assert least(wcsp(text.format(top=7))) is None


def test_decimals_do_not_blur_the_bound():
    text = '{{p "<0.3"} [2 2] {{scope [0] costs [0.1 0.2]} {scope [1] costs [0.2 0.25]}}}'
    assert least(cfn(text)) is None
    assert least(cfn(text.replace("<0.3", "<0.31"))) == pytest.approx(0.3)


@pytest.mark.parametrize(("write", "read"), [(write_cfn, read_cfn), (write_wcsp, read_wcsp)])
def test_costs_that_doubles_cannot_add_up(write, read, tmp_path: Path):
    """The bound is above the costs of all that is allowed, and what is forbidden costs as much."""
    worst = [2.0**53 + 2, 2.0**53]
    tables = [((v,), [0.0, -cost]) for v, cost in enumerate(worst)]
    forced = [((v,), [-np.inf, 0.0]) for v in (0, 1)]
    write(ProblemFile(tt.Model([2, 2], [*tables, *forced])), tmp_path / "network", decimals=0)
    assert read(tmp_path / "network").solve().assignment.tolist() == [1, 1]
    costs = [int(word) for word in re.findall(r"\d{16,}", (tmp_path / "network").read_text())]
    bound = max(costs)
    assert bound > sum(map(int, worst)) and costs.count(bound) == 3  # the bound, and both that are forbidden


@pytest.mark.parametrize(("write", "read"), [(write_cfn, read_cfn), (write_wcsp, read_wcsp)])
@pytest.mark.parametrize("worst", [2.0**52 + 1, 2.0**52 + 2, 2.0**53 - 1, 2.0**56, 45327101.34188576])
def test_the_worst_labelling_stays_allowed(write, read, worst, tmp_path: Path):
    """Also where doubles do not tell its cost from a bound that is larger by one."""
    model = tt.Model([3], [((0,), [0.0, -worst, -np.inf])])
    scale = write(ProblemFile(model), tmp_path / "network")
    scores = read(tmp_path / "network").model.blocks[0].tables.ravel()
    unit = scale.scale if write is write_wcsp else 1.0
    assert scores[1] == pytest.approx(-worst * unit, rel=1e-15) and scores[2] == -np.inf


@pytest.mark.parametrize("cost", [2**52, 2**52 + 1, 2**53 - 1])
def test_a_cost_of_one_below_the_bound_is_allowed(cost, tmp_path: Path):
    (tmp_path / "network.wcsp").write_text(f"net 1 2 1 {cost + 1}\n2\n1 0 0 2\n0 {cost}\n1 {cost + 1}\n")
    scores = read_wcsp(tmp_path / "network.wcsp").model.blocks[0].tables.ravel()
    assert scores.tolist() == [-float(cost), -np.inf]


@pytest.mark.parametrize(
    ("arguments", "where", "decimals", "message"),
    [
        ({"objective": "score - ones"}, None, 6, "can only maximise the score"),
        ({}, "ones != 1", 6, "cannot express 'ones != 1'"),
        ({}, "ones == 1 or ones == 2", 6, "cannot express"),
        ({}, "flips <= 1", 6, "counts over 2 variables at a time"),
        ({}, None, 16, "decimals must be 0 to 15"),
        ({}, None, 15, "too large for 64 bits; use fewer decimals"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, where, decimals, message, tmp_path: Path):
    model = tt.Model.chain([[0, 1e6], [0, 1]], [[0, 1], [1, 0]])
    flips = tt.Statistic([((0, 1), [[0, 1], [1, 0]])], name="flips")
    problem = ProblemFile(model, [tt.count(state=1, name="ones"), flips], where=where, **arguments)
    for write in (write_wcsp, write_cfn):
        with pytest.raises(tt.ModelError, match=message):
            write(problem, tmp_path / "x", decimals=decimals)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected the name of the problem, got the end of the file"),
        ("p 2", "expected the number of variables, at most 0"),
        ("p 1 2 0 5 0", "expected the number of states of variable 0, got '0'"),
        ("p 1 2 1 5 2 1 1 0 0", "expected a variable of function 0, 0 to 0, got '1'"),
        ("p 2 2 1 5 2 2 2 0 0 0 0", "expected distinct variables of function 0"),
        ("p 1 2 1 5 2 1 0 0 1 2 7", "expected a state, 0 to 1, got '2'"),
        ("p 1 2 1 5 2 1 0 0 1 1 -7", "expected a non-negative cost, got '-7'"),
        ("p 1 2 1 5 2 1 0 0 9 1 7", "expected the number of entries of function 0, at most 1"),
        ("p 1 2 1 5 2 1 0 0 -1", "expected the number of a shared function of the same shape, got '-1'"),
        (
            "p 1 2 1 5 2 1 0 -1 sregular var 1 2",
            "column 20: the cost function 'sregular' is not supported; use tables",
        ),
        ("p 1 2 1 5 2 1 0 -1 wamong hard x", "expected a cost, got 'x'"),
        ("p 1 2 1 5 2 1 0 -1 wamong soft 1 1 0 0 1", "column 20: the metric 'soft' is not supported"),
        ("p 1 2 1 5 2 1 0 -1 wsum hard 5 ~ 1", "unknown comparator '~'"),
        ("p 1 2 1 5 2 1 0 -1 wsum lin 5 < 1", "prices on '<' are not supported"),
        ("p 1 2 1 5 2 1 0 -1 >= 1 1", "'>=' takes two variables and 2 parameters"),
        ("p 1 2 1 5 2 1 0 -1 knapsackv 1 1 5 0 1", "uses variable 5, which is not in its scope"),
        ("p 1 2 1 5 2 1 0 -1 knapsackp 1 1 9 1", "there is no value 9; values are 0 to 1"),
        (
            "p 1 2 1 5 2 1 0 -1 sgcc wdec 5 1 0 0 1 1 1",
            "expected the metric hard, lin, quad or dec, got 'wdec'",
        ),
        ("p 1 2 0 5 2 7", "expected the end of the file, got '7'"),
    ],
)
def test_malformed_wcsp_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(tt.ModelError, match=re.escape(message)):
        wcsp(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file: expected one pair of brackets around everything"),
        ("{", "file, line 1: this bracket is never closed"),
        ("}", "file, line 1: unmatched closing bracket '}'"),
        ('{"a', "file, line 1: a quote is not closed on its line"),
        ("[" * 50, "nested over 32 levels deep"),
        ("{a}", "expected problem, variables and functions, got 0 parts"),
        ("{{p} {} {}}", "expected a name and a bound, such as mustbe"),
        ("{{p <x} {} {}}", "expected a decimal number, got 'x'"),
        ("{{p <1e5} {} {}}", "expected a decimal number, got '1e5'"),
        ("{{p <5} {x} {}}", "expected a domain for each variable name"),
        ("{{p <5}\n{x 2 x 2} {}}", "file, line 2: expected distinct variable names"),
        ("{{p <5} {x 0} {}}", "expected a number of values, 1 to"),
        ("{{p <5} {x [a a]} {}}", "expected distinct names of values"),
        ("{{p <5} {x 2} {f {scope [x]}}}", "a function needs a scope, and costs or a type"),
        ("{{p <5} {x 2} {f {scope [y] costs [1 2]}}}", "expected the name or number of a variable, got 'y'"),
        ("{{p <5} {x 2} {f {scope [x x] costs [1 2]}}}", "a scope must not repeat a variable"),
        ("{{p <5} {x 2} {f {scope [x] costs [1]}}}", "expected 2 costs, got 1"),
        ("{{p <5} {x 2} {f {scope [x] costs [1 b]}}}", "expected a decimal number, got 'b'"),
        (
            "{{p <5} {x 2} {f {scope [x] defaultcost 0 costs [1]}}}",
            "expected groups of 1 values and a cost",
        ),
        (
            "{{p <5} {x 2} {f {scope [x] defaultcost 0 costs [2 1]}}}",
            "expected a value of the variable, 0 to 1",
        ),
        ("{{p <5} {x 2} {f {scope [x] costs g}}}", "unknown function 'g' to share costs with"),
        (
            "{{p <5} {x 2 y 3} {f {scope [x] costs g} g {scope [y] costs [1 2 3]}}}",
            "different numbers of values",
        ),
        (
            "{{p <5} {x 2} {f {scope [x] cost [1 2]}}}",
            "expected one of scope, defaultcost, costs, type, params",
        ),
        ("{{p <5} {x 2} {f {scope [x] type MST}}}", "the cost function 'MST' is not supported"),
        ("{{p <5} {x 2} {f {scope [x] type wsum params {}}}}", "wsum needs the parameter 'comparator'"),
        ("{{p <5} {x 2} {f {scope [x] type wamong params {values 3 min 0 max 1}}}}", "are malformed"),
        (
            '{{p ">5"} {x 2} {f {scope [x] type wamong params {metric lin cost 1 values [0] min 0 max 0}}}}',
            "prices on counts are only supported if costs are minimised",
        ),
    ],
)
def test_malformed_cfn_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(tt.ModelError, match=re.escape(message)):
        cfn(text)


def test_a_declaration_makes_no_table():
    with pytest.raises(tt.BudgetError):
        wcsp("p 3 2 1 5  2000000000 2000000000 2 2 0 1 0 0")
    with pytest.raises(tt.BudgetError):
        wcsp("p 3 2 1 5  2000000000 2000000000 2 2 0 1 -1 = 0 1")
    with pytest.raises(tt.BudgetError):
        wcsp("p 3 2 1 5  2000000000 2000000000 2 2 0 1 -1 walldiff hard 5")
    with pytest.raises(tt.BudgetError):
        cfn("{{p <5} [2000000000 2000000000] {{scope [0 1] defaultcost 0 costs []}}}")


# --- fuzzing ------------------------------------------------------------------------------------------------

ODD = st.sampled_from(
    [
        "0",
        "-1",
        "1",
        "7",
        "2.5",
        "1e400",
        "nan",
        "9" * 30,
        "x0",
        "hard",
        "{",
        "]",
        '"',
        "#",
        "wamong",
        "knapsackp",
        "\xff",
    ]
)


@settings(deadline=None, max_examples=60)
@given(network=networks(), data=st.data())
def test_mutations_are_read_or_refused(network, data):
    for read, text in ((wcsp, as_wcsp(*network)), (cfn, as_cfn(*network))):
        parts = re.split(r"(\s)", text)
        for _ in range(data.draw(st.integers(1, 3))):
            parts[data.draw(st.integers(0, len(parts) - 1))] = data.draw(ODD)
        try:
            problem = read("".join(parts))
            problem.solve(memory_limit=1e8, operation_limit=1e7)
        except tt.TallytreeError:
            continue


@settings(deadline=None)
@given(noise=st.binary(max_size=120), front=st.sampled_from([b"", b"p 1 2 1 5 2 ", b"{{p <5} {x 2} {f {"]))
@example(noise=b"\x00", front=b"")
def test_noise_is_read_or_refused(noise, front):
    for read in (wcsp, cfn):
        try:
            read(front + noise)
        except tt.TallytreeError:
            continue
