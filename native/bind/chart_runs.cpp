// The border to Python for runs of charts, and what is read from them: trees, marginals, expectations.
#include <mutex>

#include "bind/charts.h"
#include "charts/derivation.h"
#include "walk/kbest.h"

namespace tallytree {
namespace {

struct PyChartRun {
    PyChartLayout layout;
    std::vector<Doubles2> arrays;  // before `run`: destroyed after it
    std::unique_ptr<Run> run;
};

struct PyChartKBest {
    KBest search;
    std::mutex lock;
    PyChartKBest(const Run &run, std::span<const Index> cells) : search(run, cells) {}
};

PyChartRun make_run(const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 paths, AlgebraKind algebra,
                    std::uint64_t prime) {
    auto scores = chart_scores(layout.grammar(), layout.spans(), words, rules, paths);
    if (algebra == AlgebraKind::Counting && layout.layout->chart->plain())
        throw nb::value_error("derivations are counted in a layout of tallies");
    check_prime(algebra, prime);
    PyChartRun result{layout, {words, rules, paths}, nullptr};
    nb::gil_scoped_release release;
    result.run = std::make_unique<Run>(layout.layout, std::move(scores), algebra, prime, chosen_kernels);
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
                          to_numpy(std::move(e.rules)), to_numpy(std::move(e.paths), {grammar.paths.size(), count}));
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

void make_k_best(PyChartKBest *self, const PyChartRun &run, Ints root_cells) {
    if (!run.run->is_max_plus()) throw nb::value_error("trees in order come from a max-plus run");
    for (auto cell : as_span(root_cells)) check_cell(run, cell);
    new (self) PyChartKBest(*run.run, as_span(root_cells));
}

nb::object next_trees(PyChartKBest &self, std::int64_t count, double room) {
    if (count < 0) throw nb::value_error("the number of trees cannot be negative");
    std::vector<double> scores;
    std::vector<std::int64_t> positions;
    Ragged<ChartStep> trees;
    {
        nb::gil_scoped_release release;
        const std::lock_guard guard(self.lock);
        Meter meter(kPoll);
        self.search.set_room(room);
        const auto tell = [&](const Visit &visit) { trees.data.push_back(chart_step(self.search.layout(), visit)); };
        self.search.all_or_none([&] {
            for (; trees.size() < count; trees.close_row()) {
                const auto found = self.search.next_within(trees.size() > 0, tell, meter);
                if (found.position < 0) break;
                scores.push_back(found.score);
                positions.push_back(found.position);
            }
        });
    }
    return nb::make_tuple(to_numpy(std::move(scores)), to_numpy(std::move(positions)), step_lists(trees));
}

}  // namespace

void bind_chart_runs(nb::module_ &m) {
    nb::class_<PyChartRun>(m, "ChartRun")
        .def(
            "__init__",
            [](PyChartRun *self, const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 paths,
               AlgebraKind algebra,
               std::uint64_t prime) { new (self) PyChartRun(make_run(layout, words, rules, paths, algebra, prime)); },
            "layout"_a, "words"_a.noconvert(), "rules"_a.noconvert(), "paths"_a.noconvert(), "algebra"_a, "prime"_a = 0)
        .def("root", [](const PyChartRun &r) { return root_of(*r.run); })
        .def("decode", &decode, "cell"_a)
        .def("marginals", &marginals)
        .def("expectations", &expectations)
        .def("expectations_of", &expectations_of, "probabilities"_a.noconvert())
        .def("sample", &sample, "cells"_a.noconvert(), "uniforms"_a.noconvert())
        .def_prop_ro("choices", [](const PyChartRun &self) { return most_choices(self.layout.spans().words); });

    nb::class_<PyChartKBest>(m, "ChartKBest")
        .def("__init__", &make_k_best, nb::keep_alive<1, 2>(), "run"_a, "root_cells"_a.noconvert())
        .def("next", &next_trees, "count"_a, "room"_a = kEndless)
        .def_prop_ro("bytes", [](const PyChartKBest &self) { return self.search.bytes(); });
}

}  // namespace tallytree
