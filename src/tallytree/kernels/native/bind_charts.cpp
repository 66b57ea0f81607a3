// The border to Python for charts.
#include "border.h"
#include "chart_draw.h"
#include "chart_kbest.h"

namespace tallytree {
namespace {

using Rows32 = Scopes;
using Shifts = nb::ndarray<const std::int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Items = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

struct PyChartGrammar {
    std::shared_ptr<const ChartGrammar> grammar;
};

struct PyChartLayout {
    std::shared_ptr<const ChartLayout> layout;
};

struct PyChartRun {
    std::vector<Doubles2> arrays;  // before `run`: destroyed after it
    std::unique_ptr<ChartRun> run;
};

struct PyChartKBest {
    std::unique_ptr<ChartKBest> search;
};

void check_number(std::int64_t number, std::int64_t least, std::int64_t end) {
    if (number < least || number >= end) throw nb::value_error("a rule names a symbol or a bag that is not there");
}

PyChartGrammar make_grammar(std::int64_t symbols, std::int64_t bags, std::int32_t root, Rows32 rules, Rows32 chains) {
    if (rules.shape(1) != 3 || chains.shape(1) != 5)
        throw nb::value_error("rules are (parent, left, right), chains (target, source, bag, word bag, from closed)");
    if (symbols > std::numeric_limits<std::int32_t>::max()) throw nb::value_error("too many symbols");
    check_number(root, 0, symbols);
    std::vector<BinaryRule> binary;
    for (std::size_t i = 0; i < rules.shape(0); i++) {
        for (int k = 0; k < 3; k++) check_number(rules(i, k), 0, symbols);
        binary.push_back({rules(i, 0), rules(i, 1), rules(i, 2)});
    }
    std::vector<Chain> unary;
    for (std::size_t i = 0; i < chains.shape(0); i++) {
        for (int k = 0; k < 2; k++) check_number(chains(i, k), 0, symbols);
        for (int k = 2; k < 4; k++) check_number(chains(i, k), -1, bags);
        unary.push_back({chains(i, 0), chains(i, 1), chains(i, 2), chains(i, 3), chains(i, 4) != 0});
    }
    return {std::make_shared<const ChartGrammar>(symbols, bags, root, std::move(binary), std::move(unary))};
}

PyChartLayout make_plain(const PyChartGrammar &grammar, std::int64_t words, double memory_limit) {
    if (words < 1) throw nb::value_error("a chart needs a word");
    nb::gil_scoped_release release;
    return {std::make_shared<const ChartLayout>(plain_chart(grammar.grammar, words, memory_limit))};
}

PyChartLayout make_tallies(const PyChartGrammar &grammar, std::int64_t words, Shifts shifts, Ints caps, Ints low,
                           Ints high, Items items, double memory_limit) {
    if (words < 1) throw nb::value_error("a chart needs a word");
    const Index spans = Spans{words}.count();
    if (static_cast<Index>(shifts.shape(0)) != grammar.grammar->bags || static_cast<Index>(shifts.shape(1)) != spans ||
        shifts.shape(2) != caps.size())
        throw nb::value_error("shifts are [bag][span][statistic]");
    if (low.size() != caps.size() || high.size() != caps.size())
        throw nb::value_error("caps and window need one entry per statistic");
    if (items.shape(0) != 2 || static_cast<Index>(items.shape(1)) != spans ||
        static_cast<Index>(items.shape(2)) != grammar.grammar->symbols)
        throw nb::value_error("items are [layer][span][symbol]");
    ChartRequest request;
    request.words = words;
    request.shifts.assign(shifts.data(), shifts.data() + shifts.size());
    request.caps.assign(caps.data(), caps.data() + caps.size());
    request.window_low.assign(low.data(), low.data() + low.size());
    request.window_high.assign(high.data(), high.data() + high.size());
    request.items = as_span(items);
    request.memory_limit = memory_limit;
    request.poll = kPoll;
    nb::gil_scoped_release release;
    return {std::make_shared<const ChartLayout>(tally_chart(grammar.grammar, request))};
}

RuleScores rule_scores(const Doubles2 &array, std::size_t rules, Index spans) {
    const auto columns = static_cast<Index>(array.shape(1));
    if (array.shape(0) != rules || (columns != 1 && columns != spans))
        throw nb::value_error("scores of rules are [rule][1] or [rule][span]");
    return {array.data(), columns};
}

PyChartRun make_run(const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 chains, int algebra) {
    const auto &l = *layout.layout;
    if (static_cast<Index>(words.shape(0)) != l.spans.words || static_cast<Index>(words.shape(1)) != l.grammar->symbols)
        throw nb::value_error("scores of words are [word][symbol]");
    if (algebra != static_cast<int>(AlgebraKind::MaxPlus) && algebra != static_cast<int>(AlgebraKind::LogSumExp))
        throw nb::value_error("no such algebra");
    const ChartScores scores{words.data(), rule_scores(rules, l.grammar->rules.size(), l.spans.count()),
                             rule_scores(chains, l.grammar->chains.size(), l.spans.count())};
    PyChartRun result{{words, rules, chains}, nullptr};
    nb::gil_scoped_release release;
    result.run = std::make_unique<ChartRun>(layout.layout, scores, static_cast<AlgebraKind>(algebra), chosen_kernels);
    result.run->inside(kPoll);
    return result;
}

nb::object root_of(const PyChartRun &self) {
    auto root = self.run->root();
    const auto columns = static_cast<std::size_t>(self.run->layout().statistics), rows = root.cells.size();
    return nb::make_tuple(to_numpy(std::move(root.cells)), to_numpy(std::move(root.tallies), {rows, columns}),
                          to_numpy(std::move(root.values)));
}

void check_cell(const PyChartRun &self, std::int64_t cell) {
    if (cell < 0 || cell >= self.run->layout().tables.back().cells) throw nb::index_error("there is no such root cell");
}

nb::object step_rows(std::span<const ChartStep> steps) {
    std::vector<std::int32_t> rows;
    for (const auto &s : steps) rows.insert(rows.end(), {s.kind, s.number, s.start, s.width, s.left_width});
    return to_numpy(std::move(rows), {steps.size(), 5});
}

nb::object decode(const PyChartRun &self, std::int64_t cell) {
    check_cell(self, cell);
    std::vector<ChartStep> steps;
    {
        nb::gil_scoped_release release;
        steps = self.run->decode(cell, kPoll);
    }
    return step_rows(steps);
}

void check_plain(const PyChartRun &self) {
    if (!self.run->layout().plain) throw nb::value_error("passes down are made for charts without statistics");
}

nb::object marginals(PyChartRun &self) {
    check_plain(self);
    std::vector<double> values;
    {
        nb::gil_scoped_release release;
        values = self.run->marginals(kPoll);
    }
    const auto &l = self.run->layout();
    return to_numpy(std::move(values),
                    {2, static_cast<std::size_t>(l.spans.count()), static_cast<std::size_t>(l.grammar->symbols)});
}

nb::object expectation_arrays(const ChartLayout &l, ChartExpectations e) {
    const auto spans = static_cast<std::size_t>(l.spans.count()), words = static_cast<std::size_t>(l.spans.words);
    return nb::make_tuple(to_numpy(std::move(e.words), {words, static_cast<std::size_t>(l.grammar->symbols)}),
                          to_numpy(std::move(e.rules)),
                          to_numpy(std::move(e.chains), {l.grammar->chains.size(), spans}));
}

nb::object expectations(PyChartRun &self) {
    check_plain(self);
    ChartExpectations e;
    {
        nb::gil_scoped_release release;
        e = self.run->expectations(kPoll);
    }
    return expectation_arrays(self.run->layout(), std::move(e));
}

void check_sums(const PyChartRun &self) {
    if (self.run->is_max_plus()) throw nb::value_error("shares are those of a log-sum-exp run");
}

// Expectations when the root cell is drawn with these probabilities; for charts with statistics.
nb::object expectations_of(const PyChartRun &self, Doubles probabilities) {
    check_sums(self);
    if (static_cast<Index>(probabilities.size()) != self.run->layout().tables.back().cells)
        throw nb::value_error("one probability for each root cell is needed");
    ChartExpectations e;
    {
        nb::gil_scoped_release release;
        e = expect_steps(*self.run, as_span(probabilities), kPoll);
    }
    return expectation_arrays(self.run->layout(), std::move(e));
}

nb::list step_lists(const Ragged<ChartStep> &steps) {
    nb::list rows;
    for (Index i = 0; i < steps.size(); i++) rows.append(step_rows(steps[i]));
    return rows;
}

nb::object sample(const PyChartRun &self, Ints cells, Doubles2 uniforms) {
    check_sums(self);
    for (auto cell : as_span(cells)) check_cell(self, cell);
    if (uniforms.shape(0) != cells.size() ||
        static_cast<Index>(uniforms.shape(1)) != most_choices(self.run->layout().spans.words))
        throw nb::value_error("uniforms are [tree][choice]");
    Ragged<ChartStep> trees;
    {
        nb::gil_scoped_release release;
        trees = draw_trees(*self.run, as_span(cells), uniforms.data(), kPoll);
    }
    return step_lists(trees);
}

PyChartKBest make_k_best(const PyChartRun &run, Ints root_cells) {
    if (!run.run->is_max_plus()) throw nb::value_error("trees in order come from a max-plus run");
    for (auto cell : as_span(root_cells)) check_cell(run, cell);
    return {std::make_unique<ChartKBest>(*run.run, as_span(root_cells))};
}

nb::object next_trees(PyChartKBest &self, std::int64_t count) {
    if (count < 0) throw nb::value_error("the number of trees cannot be negative");
    ChartKBest::Trees trees;
    {
        nb::gil_scoped_release release;
        trees = self.search->next(count, kPoll);
    }
    return nb::make_tuple(to_numpy(std::move(trees.scores)), to_numpy(std::move(trees.positions)),
                          step_lists(trees.steps));
}

}  // namespace

void bind_charts(nb::module_ &m) {
    nb::class_<PyChartGrammar>(m, "ChartGrammar")
        .def(
            "__init__",
            [](PyChartGrammar *self, std::int64_t symbols, std::int64_t bags, std::int32_t root, Rows32 rules,
               Rows32 chains) { new (self) PyChartGrammar(make_grammar(symbols, bags, root, rules, chains)); },
            "symbols"_a, "bags"_a, "root"_a, "rules"_a.noconvert(), "chains"_a.noconvert());

    nb::class_<PyChartLayout>(m, "ChartLayout")
        .def_static("plain", &make_plain, "grammar"_a, "words"_a, "memory_limit"_a)
        .def_static("tallies", &make_tallies, "grammar"_a, "words"_a, "shifts"_a.noconvert(), "caps"_a.noconvert(),
                    "low"_a.noconvert(), "high"_a.noconvert(), "items"_a.noconvert(), "memory_limit"_a)
        .def_prop_ro("arena_bytes", [](const PyChartLayout &l) { return l.layout->arena * 8; })
        .def_prop_ro("plan_bytes", [](const PyChartLayout &l) { return l.layout->plan_bytes; })
        .def_prop_ro("items", [](const PyChartLayout &l) { return l.layout->items; })
        .def_prop_ro("operations", [](const PyChartLayout &l) { return l.layout->operations; })
        .def_prop_ro("most_cells", [](const PyChartLayout &l) { return l.layout->most_cells; })
        .def_prop_ro("pruned", [](const PyChartLayout &l) { return l.layout->pruned; })
        .def_prop_ro("costliest", [](const PyChartLayout &l) { return l.layout->costliest; })
        .def_prop_ro("costliest_operations", [](const PyChartLayout &l) { return l.layout->costliest_operations; })
        .def_prop_ro("root_tallies",
                     [](const PyChartLayout &self) {
                         auto tallies = self.layout->root_tallies();
                         const auto columns = static_cast<std::size_t>(self.layout->statistics);
                         const auto rows = static_cast<std::size_t>(self.layout->tables.back().cells);
                         return to_numpy(std::move(tallies), {rows, columns});
                     })
        .def_prop_ro("cells", [](const PyChartLayout &l) {
            std::vector<std::int64_t> cells;
            for (const auto &table : l.layout->tables) cells.push_back(table.cells);
            return to_numpy(std::move(cells), {l.layout->tables.size() / 2, 2});
        });

    nb::class_<PyChartRun>(m, "ChartRun")
        .def(
            "__init__",
            [](PyChartRun *self, const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 chains,
               int algebra) { new (self) PyChartRun(make_run(layout, words, rules, chains, algebra)); },
            "layout"_a, "words"_a.noconvert(), "rules"_a.noconvert(), "chains"_a.noconvert(), "algebra"_a)
        .def("root", &root_of)
        .def("decode", &decode, "cell"_a)
        .def("marginals", &marginals)
        .def("expectations", &expectations)
        .def("expectations_of", &expectations_of, "probabilities"_a.noconvert())
        .def("sample", &sample, "cells"_a.noconvert(), "uniforms"_a.noconvert())
        .def_prop_ro("choices", [](const PyChartRun &self) { return most_choices(self.run->layout().spans.words); });

    nb::class_<PyChartKBest>(m, "ChartKBest")
        .def(
            "__init__",
            [](PyChartKBest *self, const PyChartRun &run, Ints cells) {
                new (self) PyChartKBest(make_k_best(run, cells));
            },
            nb::keep_alive<1, 2>(), "run"_a, "root_cells"_a.noconvert())
        .def("next", &next_trees, "count"_a);
}

}  // namespace tallytree
