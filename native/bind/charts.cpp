// The border to Python for the planner of charts: grammars, layouts, spans.
#include "bind/charts.h"

#include "charts/binary_trees.h"
#include "charts/items.h"
#include "tables/upward.h"

namespace tallytree {
namespace {

using Rows32 = Scopes;
using Items = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Charts = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

void check_number(std::int64_t number, std::int64_t least, std::int64_t end) {
    if (number < least || number >= end) throw nb::value_error("a rule names a symbol or a bag that is not there");
}

PyChartGrammar make_grammar(std::int64_t symbols, std::int64_t bags, std::int32_t root, Rows32 rules, Rows32 paths) {
    if (rules.shape(1) != 3 || paths.shape(1) != 5)
        throw nb::value_error("rules are (parent, left, right), paths (target, source, bag, word bag, from closed)");
    if (symbols > std::numeric_limits<std::int32_t>::max()) throw nb::value_error("too many symbols");
    check_number(root, 0, symbols);
    std::vector<BinaryRule> binary;
    for (std::size_t i = 0; i < rules.shape(0); i++) {
        for (int k = 0; k < 3; k++) check_number(rules(i, k), 0, symbols);
        binary.push_back({rules(i, 0), rules(i, 1), rules(i, 2)});
    }
    std::vector<UnaryPath> unary;
    for (std::size_t i = 0; i < paths.shape(0); i++) {
        for (int k = 0; k < 2; k++) check_number(paths(i, k), 0, symbols);
        for (int k = 2; k < 4; k++) check_number(paths(i, k), -1, bags);
        unary.push_back({paths(i, 0), paths(i, 1), paths(i, 2), paths(i, 3), paths(i, 4) != 0});
    }
    return {std::make_shared<const ChartGrammar>(symbols, bags, root, std::move(binary), std::move(unary))};
}

PyChartLayout make_plain(const PyChartGrammar &grammar, std::int64_t words, double memory_limit) {
    if (words < 1) throw nb::value_error("a chart needs a word");
    nb::gil_scoped_release release;
    Arena::trim(memory_limit);
    return {std::make_shared<const Layout>(plain_chart(grammar.grammar, words, memory_limit))};
}

struct PyChartOutline {
    Items items;  // before `outline`: destroyed after it
    ChartOutline outline;
};

PyChartOutline make_outline(const PyChartGrammar &grammar, std::int64_t words, Shifts shifts, Ints caps, Ints low,
                            Ints high, Items items) {
    if (words < 1) throw nb::value_error("a chart needs a word");
    const Index spans = Spans{words}.count();
    check_shifts(*grammar.grammar, spans, shifts, caps.size());
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
    nb::gil_scoped_release release;
    return {items, ChartOutline(grammar.grammar, std::move(request), kPoll)};
}

PyChartLayout lay_out_chart(PyChartOutline &self, double memory_limit) {
    Arena::trim(memory_limit);
    nb::gil_scoped_release release;
    return {std::make_shared<const Layout>(self.outline.layout(memory_limit))};
}

// The items that are part of a tree, [layer][span][symbol], and the number of rows that a plain pass goes over.
nb::object items_of(const PyChartGrammar &self, Doubles2 words, Doubles2 rules, Doubles2 paths) {
    const Spans spans{static_cast<Index>(words.shape(0))};
    if (spans.words < 1) throw nb::value_error("a chart needs a word");
    const auto scores = chart_scores(*self.grammar, spans, words, rules, paths);
    ChartItems found;
    {
        nb::gil_scoped_release release;
        found = find_items(*self.grammar, spans.words, scores, kPoll);
    }
    const std::vector<std::size_t> shape{2, static_cast<std::size_t>(spans.count()),
                                         static_cast<std::size_t>(self.grammar->symbols)};
    return nb::make_tuple(to_numpy(std::move(found.live), shape), found.rows);
}

// ---- spans ---------------------------------------------------------------------------------------------------------

// The starts and the ends of all spans of a sentence, in the order of their numbers.
nb::object spans_of(std::int64_t words) {
    if (words < 1) throw nb::value_error("a chart needs a word");
    const Spans spans{words};
    std::vector<std::int64_t> starts(spans.count()), ends(spans.count());
    for (Index width = 1; width <= words; width++)
        for (Index start = 0; start < spans.starts(width); start++) {
            starts[spans.number(start, width)] = start;
            ends[spans.number(start, width)] = start + width;
        }
    return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(ends)));
}

nb::object span_numbers(std::int64_t words, Ints starts, Ints widths) {
    if (starts.size() != widths.size()) throw nb::value_error("one width per start is needed");
    const Spans spans{words};
    std::vector<std::int64_t> numbers(starts.size());
    for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = spans.number(starts.data()[i], widths.data()[i]);
    return to_numpy(std::move(numbers));
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
        cells[2 * span_of(self, t) + (self.layout->skeleton->steps[t].verb == Verb::Unary)] =
            self.layout->tables[t].cells;
    const std::size_t spans = cells.size() / 2;
    return to_numpy(std::move(cells), {spans, 2});
}

nb::object root_tallies(const PyChartLayout &self) {
    const Layout &l = *self.layout;
    const Stretches stretches(l, static_cast<std::int32_t>(l.tables.size()) - 1);
    const Index q = l.prefix_size;
    std::vector<std::int64_t> rows;
    for (Index r = 0; r < stretches.count; r++)
        for (Index c = 0; c < stretches.length[r]; c++) {
            rows.insert(rows.end(), stretches.prefix + r * q, stretches.prefix + (r + 1) * q);
            if (l.statistics) rows.push_back(stretches.low[r] + c);
        }
    return to_numpy(std::move(rows),
                    {static_cast<std::size_t>(l.tables.back().cells), static_cast<std::size_t>(l.statistics)});
}

SpanScores checked_spans(const Charts &scores, const Ints &lengths) {
    require(scores.shape(0) == lengths.size() && scores.shape(1) == scores.shape(2) && scores.shape(3) > 0,
            "scores are [sentence][word][word][label]");
    const auto words = static_cast<Index>(scores.shape(1));
    for (auto length : as_span(lengths)) require(length >= 1 && length <= words, "a sentence has no such length");
    return {scores.data(), as_span(lengths), words, static_cast<Index>(scores.shape(3))};
}

// Log sums over binary trees, marginals, and which sentences are left out because of their scores.
auto tree_sums(Charts scores, Ints lengths, std::int64_t threads) {
    const SpanScores spans = checked_spans(scores, lengths);
    std::vector<double> log_sums(lengths.size()), marginals(scores.size());
    std::vector<std::uint8_t> left_out(lengths.size());
    {
        nb::gil_scoped_release release;
        sum_trees(spans, {log_sums, marginals, left_out}, threads, chosen_kernels, kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(log_sums)), to_numpy(std::move(marginals), shape_of(scores)),
                          to_numpy(std::move(left_out)));
}

// The best binary trees, as ones, and which sentences are left out.
auto best_trees(Charts scores, Ints lengths, std::int64_t threads) {
    const SpanScores spans = checked_spans(scores, lengths);
    std::vector<std::int64_t> trees(scores.size());
    std::vector<std::uint8_t> left_out(lengths.size());
    {
        nb::gil_scoped_release release;
        find_best_trees(spans, {trees, left_out}, threads, chosen_kernels, kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(trees), shape_of(scores)), to_numpy(std::move(left_out)));
}

// Binary trees, drawn by uniform numbers, as ones, and which sentences are left out.
auto tree_draws(Charts scores, Ints lengths, Doubles3 uniforms, std::int64_t threads) {
    const SpanScores spans = checked_spans(scores, lengths);
    require(uniforms.shape(1) == lengths.size() && uniforms.shape(2) == 3 * scores.shape(1),
            "numbers are [draw][sentence][3 * word]");
    std::vector<std::int64_t> trees(uniforms.shape(0) * scores.size());
    std::vector<std::uint8_t> left_out(lengths.size());
    {
        nb::gil_scoped_release release;
        const auto draws = static_cast<Index>(uniforms.shape(0));
        draw_trees(spans, {as_span(uniforms), trees, draws, left_out}, threads, chosen_kernels, kPoll, kPlainly);
    }
    std::vector<std::size_t> shape = shape_of(scores);
    shape.insert(shape.begin(), uniforms.shape(0));
    return nb::make_tuple(to_numpy(std::move(trees), shape), to_numpy(std::move(left_out)));
}

}  // namespace

void bind_charts(nb::module_ &m) {
    m.def("spans", &spans_of, "words"_a);
    m.def(
        "span_number",
        [](std::int64_t words, std::int64_t start, std::int64_t width) { return Spans{words}.number(start, width); },
        "words"_a, "start"_a, "width"_a);
    m.def("span_numbers", &span_numbers, "words"_a, "starts"_a.noconvert(), "widths"_a.noconvert());
    m.def("tree_sums", &tree_sums, "scores"_a.noconvert(), "lengths"_a.noconvert(), "threads"_a);
    m.def("tree_draws", &tree_draws, "scores"_a.noconvert(), "lengths"_a.noconvert(), "uniforms"_a.noconvert(),
          "threads"_a);
    m.def("best_trees", &best_trees, "scores"_a.noconvert(), "lengths"_a.noconvert(), "threads"_a);

    nb::class_<PyChartGrammar>(m, "ChartGrammar")
        .def(
            "__init__",
            [](PyChartGrammar *self, std::int64_t symbols, std::int64_t bags, std::int32_t root, Rows32 rules,
               Rows32 paths) { new (self) PyChartGrammar(make_grammar(symbols, bags, root, rules, paths)); },
            "symbols"_a, "bags"_a, "root"_a, "rules"_a.noconvert(), "paths"_a.noconvert())
        .def("items", &items_of, "words"_a.noconvert(), "rules"_a.noconvert(), "paths"_a.noconvert())
        .def(
            "items_bytes",
            [](const PyChartGrammar &self, std::int64_t words) { return ChartItems::bytes(*self.grammar, words); },
            "words"_a);

    nb::class_<PyChartLayout>(m, "ChartLayout")
        .def_static("plain", &make_plain, "grammar"_a, "words"_a, "memory_limit"_a)
        .def_prop_ro("arena_bytes", [](const PyChartLayout &l) { return l.layout->arena * 8; })
        .def_prop_ro("plan_bytes", [](const PyChartLayout &l) { return l.layout->plan_bytes; })
        .def_prop_ro("items", &count_items)
        .def_prop_ro("operations", [](const PyChartLayout &l) { return l.layout->operations; })
        .def_prop_ro("joined", [](const PyChartLayout &l) { return l.layout->chart->joined; })
        .def_prop_ro("most_cells", &most_cells)
        .def_prop_ro("pruned", [](const PyChartLayout &l) { return l.layout->pruned; })
        .def_prop_ro("steps", &step_table)
        .def_prop_ro("step_operations", &step_operations)
        .def_prop_ro("root_tallies", &root_tallies)
        .def_prop_ro("cells", &cells);

    nb::class_<PyChartOutline>(m, "ChartOutline")
        .def(
            "__init__",
            [](PyChartOutline *self, const PyChartGrammar &grammar, std::int64_t words, Shifts shifts, Ints caps,
               Ints low, Ints high, Items items) {
                new (self) PyChartOutline(make_outline(grammar, words, shifts, caps, low, high, items));
            },
            "grammar"_a, "words"_a, "shifts"_a.noconvert(), "caps"_a.noconvert(), "low"_a.noconvert(),
            "high"_a.noconvert(), "items"_a.noconvert())
        .def_prop_ro("least",
                     [](const PyChartOutline &self) {
                         const auto [splits, groups] = self.outline.least();
                         return nb::make_tuple(splits, groups);
                     })
        .def("layout", &lay_out_chart, "memory_limit"_a);
}

}  // namespace tallytree
