// The border to Python for charts.
#include "border.h"
#include "chart_derivation.h"
#include "kbest.h"

namespace tallytree {
namespace {

using Rows32 = Scopes;
using Shifts = nb::ndarray<const std::int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Items = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

struct PyChartGrammar {
    std::shared_ptr<const ChartGrammar> grammar;
};

struct PyChartLayout {
    std::shared_ptr<const Layout> layout;
    const Spans &spans() const { return layout->skeleton->spans; }
    const ChartGrammar &grammar() const { return *layout->skeleton->grammar; }
};

struct PyChartRun {
    PyChartLayout layout;
    std::vector<Doubles2> arrays;  // before `run`: destroyed after it
    std::unique_ptr<Run> run;
};

struct PyChartKBest {
    std::unique_ptr<KBest> search;
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
    std::vector<UnaryChain> unary;
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
    return {std::make_shared<const Layout>(plain_chart(grammar.grammar, words, memory_limit))};
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
    request.window.low.assign(low.data(), low.data() + low.size());
    request.window.high.assign(high.data(), high.data() + high.size());
    request.items = as_span(items);
    request.memory_limit = memory_limit;
    nb::gil_scoped_release release;
    return {std::make_shared<const Layout>(tally_chart(grammar.grammar, request, kPoll))};
}

TableBlock<double> rule_scores(const Doubles2 &array, std::size_t rules, Index spans) {
    const auto columns = static_cast<Index>(array.shape(1));
    if (array.shape(0) != rules || (columns != 1 && columns != spans))
        throw nb::value_error("scores of rules are [rule][1] or [rule][span]");
    return {array.data(), static_cast<Index>(rules), columns};
}

PyChartRun make_run(const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 chains, int algebra,
                    std::uint64_t prime) {
    const auto &spans = layout.spans();
    const auto &grammar = layout.grammar();
    if (static_cast<Index>(words.shape(0)) != spans.words || static_cast<Index>(words.shape(1)) != grammar.symbols)
        throw nb::value_error("scores of words are [word][symbol]");
    if (algebra < static_cast<int>(AlgebraKind::MaxPlus) || algebra > static_cast<int>(AlgebraKind::Counting))
        throw nb::value_error("no such algebra");
    if (algebra == static_cast<int>(AlgebraKind::Counting)) {
        if (layout.layout->chart->plain()) throw nb::value_error("derivations are counted in a layout of tallies");
        if (prime < 2 || prime >= (std::uint64_t{1} << 31)) throw nb::value_error("counting needs a prime below 2^31");
    }
    std::vector<TableBlock<double>> scores(3);
    scores[kWords] = {words.data(), spans.words, grammar.symbols};
    scores[kRules] = rule_scores(rules, grammar.rules.size(), spans.count());
    scores[kChains] = rule_scores(chains, grammar.chains.size(), spans.count());
    PyChartRun result{layout, {words, rules, chains}, nullptr};
    nb::gil_scoped_release release;
    result.run = std::make_unique<Run>(layout.layout, std::move(scores), static_cast<AlgebraKind>(algebra), prime,
                                       chosen_kernels);
    result.run->upward(kPoll);
    return result;
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
        steps = chart_decode(*self.run, cell, kPoll);
    }
    return step_rows(steps);
}

void check_plain(const PyChartRun &self) {
    if (!self.run->layout().chart->plain()) throw nb::value_error("passes down are made for charts without statistics");
}

nb::object marginals(PyChartRun &self) {
    check_plain(self);
    std::vector<double> values;
    {
        nb::gil_scoped_release release;
        values = chart_marginals(*self.run, kPoll);
    }
    return to_numpy(std::move(values), {2, static_cast<std::size_t>(self.layout.spans().count()),
                                        static_cast<std::size_t>(self.layout.grammar().symbols)});
}

nb::object expectation_arrays(const PyChartLayout &layout, ChartExpectations e) {
    const auto &spans = layout.spans();
    const auto &grammar = layout.grammar();
    const auto count = static_cast<std::size_t>(spans.count()), words = static_cast<std::size_t>(spans.words);
    return nb::make_tuple(to_numpy(std::move(e.words), {words, static_cast<std::size_t>(grammar.symbols)}),
                          to_numpy(std::move(e.rules)), to_numpy(std::move(e.chains), {grammar.chains.size(), count}));
}

nb::object expectations(PyChartRun &self) {
    check_plain(self);
    ChartExpectations e;
    {
        nb::gil_scoped_release release;
        e = chart_expectations(*self.run, kPoll);
    }
    return expectation_arrays(self.layout, std::move(e));
}

void check_sums(const PyChartRun &self) {
    if (self.run->algebra() != AlgebraKind::LogSumExp) throw nb::value_error("shares are those of a log-sum-exp run");
}

// Expectations when the root cell is drawn with these probabilities; for charts with statistics.
nb::object expectations_of(PyChartRun &self, Doubles probabilities) {
    check_sums(self);
    if (static_cast<Index>(probabilities.size()) != self.run->layout().tables.back().cells)
        throw nb::value_error("one probability for each root cell is needed");
    ChartExpectations e;
    {
        nb::gil_scoped_release release;
        e = chart_expectations_of(*self.run, as_span(probabilities), kPoll);
    }
    return expectation_arrays(self.layout, std::move(e));
}

nb::list step_lists(const Ragged<ChartStep> &steps) {
    nb::list rows;
    for (Index i = 0; i < steps.size(); i++) rows.append(step_rows(steps[i]));
    return rows;
}

nb::object sample(PyChartRun &self, Ints cells, Doubles2 uniforms) {
    check_sums(self);
    for (auto cell : as_span(cells)) check_cell(self, cell);
    if (uniforms.shape(0) != cells.size() ||
        static_cast<Index>(uniforms.shape(1)) != most_choices(self.layout.spans().words))
        throw nb::value_error("uniforms are [tree][choice]");
    Ragged<ChartStep> trees;
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < cells.size(); i++)
            trees.push_row(chart_sample(*self.run, cells.data()[i], uniforms.data() + i * uniforms.shape(1), kPoll));
    }
    return step_lists(trees);
}

PyChartKBest make_k_best(const PyChartRun &run, Ints root_cells) {
    if (!run.run->is_max_plus()) throw nb::value_error("trees in order come from a max-plus run");
    for (auto cell : as_span(root_cells)) check_cell(run, cell);
    return {std::make_unique<KBest>(*run.run, as_span(root_cells))};
}

nb::object next_trees(PyChartKBest &self, std::int64_t count) {
    if (count < 0) throw nb::value_error("the number of trees cannot be negative");
    std::vector<double> scores;
    std::vector<std::int64_t> positions;
    Ragged<ChartStep> trees;
    {
        nb::gil_scoped_release release;
        Meter meter(kPoll);
        const auto tell = [&](const Visit &visit) { trees.data.push_back(chart_step(self.search->layout(), visit)); };
        for (; trees.size() < count; trees.close_row()) {
            const auto found = self.search->next(tell, meter);
            if (found.position < 0) break;
            scores.push_back(found.score);
            positions.push_back(found.position);
        }
    }
    return nb::make_tuple(to_numpy(std::move(scores)), to_numpy(std::move(positions)), step_lists(trees));
}

// ---- reading plans -------------------------------------------------------------------------------------------------

Index count_items(const PyChartLayout &self) {
    Index items = 0;
    for (const auto &table : self.layout->tables) items += table.states;
    return items;
}

Index most_cells(const PyChartLayout &self) {
    Index most = 1;
    for (const auto &table : self.layout->tables) most = std::max(most, table.cells);
    return most;
}

Index span_of(const PyChartLayout &self, Index table) {
    const Step &step = self.layout->skeleton->steps[table];
    return self.spans().number(step.start, step.width);
}

// The program: verb, start and width of every step.
nb::object step_table(const PyChartLayout &self) {
    std::vector<std::int32_t> rows;
    for (const Step &step : self.layout->skeleton->steps)
        rows.insert(rows.end(), {static_cast<std::int32_t>(step.verb), step.start, step.width});
    return to_numpy(std::move(rows), {self.layout->skeleton->steps.size(), 3});
}

nb::object step_operations(const PyChartLayout &self) {
    std::vector<double> operations;
    for (const auto &step : self.layout->steps) operations.push_back(step.operations);
    return to_numpy(std::move(operations));
}

nb::object cells(const PyChartLayout &self) {
    std::vector<std::int64_t> cells(self.layout->tables.size());
    for (std::size_t t = 0; t < cells.size(); t++)
        cells[2 * span_of(self, t) + (self.layout->skeleton->steps[t].verb == Verb::Chain)] =
            self.layout->tables[t].cells;
    const std::size_t spans = cells.size() / 2;
    return to_numpy(std::move(cells), {spans, 2});
}

nb::object root_tallies(const PyChartLayout &self) {
    const Layout &l = *self.layout;
    const Runs runs(l, static_cast<std::int32_t>(l.tables.size()) - 1);
    const Index q = l.prefix_size;
    std::vector<std::int64_t> rows;
    for (Index r = 0; r < runs.count; r++)
        for (Index c = 0; c < runs.length[r]; c++) {
            rows.insert(rows.end(), runs.prefix + r * q, runs.prefix + (r + 1) * q);
            if (l.statistics) rows.push_back(runs.low[r] + c);
        }
    return to_numpy(std::move(rows),
                    {static_cast<std::size_t>(l.tables.back().cells), static_cast<std::size_t>(l.statistics)});
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
        .def_prop_ro("items", &count_items)
        .def_prop_ro("operations", [](const PyChartLayout &l) { return l.layout->operations; })
        .def_prop_ro("most_cells", &most_cells)
        .def_prop_ro("pruned", [](const PyChartLayout &l) { return l.layout->pruned; })
        .def_prop_ro("steps", &step_table)
        .def_prop_ro("step_operations", &step_operations)
        .def_prop_ro("root_tallies", &root_tallies)
        .def_prop_ro("cells", &cells);

    nb::class_<PyChartRun>(m, "ChartRun")
        .def(
            "__init__",
            [](PyChartRun *self, const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 chains,
               int algebra,
               std::uint64_t prime) { new (self) PyChartRun(make_run(layout, words, rules, chains, algebra, prime)); },
            "layout"_a, "words"_a.noconvert(), "rules"_a.noconvert(), "chains"_a.noconvert(), "algebra"_a,
            "prime"_a = 0)
        .def("root", [](const PyChartRun &r) { return root_of(*r.run); })
        .def("decode", &decode, "cell"_a)
        .def("marginals", &marginals)
        .def("expectations", &expectations)
        .def("expectations_of", &expectations_of, "probabilities"_a.noconvert())
        .def("sample", &sample, "cells"_a.noconvert(), "uniforms"_a.noconvert())
        .def_prop_ro("choices", [](const PyChartRun &self) { return most_choices(self.layout.spans().words); });

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
