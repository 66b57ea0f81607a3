// Runs at the border to Python, and what is read from them: labellings in order, samples, marginals.
#include <mutex>

#include "bind/checks.h"
#include "plan/rolling.h"
#include "tables/joining.h"
#include "walk/evaluate.h"
#include "walk/kbest.h"

namespace tallytree {
namespace {

struct PyRun {
    std::vector<Tables> tables;  // before the runs: destroyed after them
    std::unique_ptr<Run> run;
    Threads threads;
    std::unique_ptr<Run> whole;  // once every table is needed, if `run` has checkpoints alone
    std::unique_ptr<std::mutex> lock = std::make_unique<std::mutex>();

    // A run that has every table, if they fit.
    Run &every_table() {
        const std::lock_guard guard(*lock);
        if (run->layout().unrolled == 0) return *run;
        if (!whole) {
            const auto scores = run->scores();
            auto made = std::make_unique<Run>(unrolled(run->layout()), std::vector(scores.begin(), scores.end()),
                                              run->algebra(), 0, chosen_kernels);
            made->upward(kPoll, threads);
            whole = std::move(made);
        }
        return *whole;
    }
};

PyRun make_run(const PyLayout &layout, std::vector<Tables> tables, AlgebraKind algebra, std::uint64_t prime,
               std::int64_t threads, double grain, bool every) {
    auto blocks = score_blocks(*layout.layout->skeleton, tables);
    check_prime(algebra, prime);
    if (layout.layout->lanes != kLanes) throw nb::value_error("this layout is for single precision");
    check_threads(threads, grain);
    PyRun result{std::move(tables), nullptr, {threads, grain}, nullptr};
    nb::gil_scoped_release release;
    every = every || algebra != AlgebraKind::MaxPlus;
    result.run = std::make_unique<Run>(every && layout.layout->unrolled > 0 ? unrolled(*layout.layout) : layout.layout,
                                       std::move(blocks), algebra, prime, chosen_kernels);
    result.run->upward(kPoll, result.threads);
    return result;
}

auto sample(PyRun &self, Ints cells, Doubles2 uniforms) {
    const std::size_t variables = self.run->layout().skeleton->cardinalities.size();
    if (uniforms.shape(0) != cells.size() || uniforms.shape(1) != self.run->layout().tables.size())
        throw nb::value_error("one row of uniform numbers per sample, one number per step");
    for (auto cell : as_span(cells)) check_cell(*self.run, cell);
    std::vector<std::int64_t> assignments(cells.size() * variables, 0);
    {
        nb::gil_scoped_release release;
        self.run->sample(as_span(cells), uniforms.data(), assignments.data(), kPoll);
    }
    return to_numpy(std::move(assignments), {cells.size(), variables});
}

// What a function of the root's values gains with every entry of the tables, in their shapes.
auto differentiate(PyRun &self, Doubles weights) {
    if (self.run->algebra() != AlgebraKind::LogSumExp) throw nb::value_error("only sums have derivatives");
    if (static_cast<Index>(weights.size()) != self.run->layout().tables.back().cells)
        throw nb::value_error("one weight per root cell");
    std::vector<std::vector<double>> found;
    std::vector<double *> entries;
    for (const auto &table : self.tables) found.emplace_back(table.size(), 0.0);
    for (auto &table : found) entries.push_back(table.data());
    {
        nb::gil_scoped_release release;
        Arena shares;
        self.run->differentiate(as_span(weights), entries, shares, kPoll);
    }
    nb::list arrays;
    for (std::size_t i = 0; i < found.size(); i++) {
        std::vector<std::size_t> shape;
        for (std::size_t d = 0; d < self.tables[i].ndim(); d++) shape.push_back(self.tables[i].shape(d));
        arrays.append(to_numpy(std::move(found[i]), shape));
    }
    return arrays;
}

struct PyKBest {
    KBest search;
    std::mutex lock;
    PyKBest(const Run &run, std::span<const Index> cells) : search(run, cells) {}
};

void make_k_best(PyKBest *self, PyRun &run, Ints root_cells) {
    if (!run.run->is_max_plus()) throw nb::value_error("only a max-plus run has its labellings in order");
    for (auto cell : as_span(root_cells)) check_cell(*run.run, cell);
    Run *every = nullptr;
    {
        nb::gil_scoped_release release;
        every = &run.every_table();
    }
    new (self) PyKBest(*every, as_span(root_cells));
}

// Up to `count` of them; fewer where the search has no room for more, and an error where it has none for the first.
auto next_labellings(PyKBest &self, std::int64_t count, double room) {
    if (count < 0) throw nb::value_error("how many labellings cannot be negative");
    const Skeleton &skeleton = *self.search.layout().skeleton;
    const std::size_t variables = skeleton.cardinalities.size();
    std::vector<double> scores;
    std::vector<std::int64_t> positions, assignments;
    {
        nb::gil_scoped_release release;
        const std::lock_guard guard(self.lock);
        Meter meter(kPoll);
        self.search.set_room(room);
        std::vector<std::int64_t> labelling(variables, 0);
        const auto tell = [&](const Visit &visit) { label(skeleton, visit, labelling.data()); };
        self.search.all_or_none([&] {
            while (static_cast<std::int64_t>(scores.size()) < count) {
                const auto found = self.search.next_within(!scores.empty(), tell, meter);
                if (found.position < 0) break;
                scores.push_back(found.score);
                positions.push_back(found.position);
                assignments.insert(assignments.end(), labelling.begin(), labelling.end());
            }
        });
    }
    const std::size_t rows = scores.size();
    return nb::make_tuple(to_numpy(std::move(scores)), to_numpy(std::move(positions)),
                          to_numpy(std::move(assignments), {rows, variables}));
}

// The score of a labelling, the sum of its local scores' sizes, their number, and the sum of every block of
// integer tables, straight from the model.
auto evaluate(Ints32 cardinalities, const std::vector<Scopes> &score_scopes, const std::vector<Tables> &scores,
              const std::vector<Scopes> &shift_scopes, const std::vector<IntTables> &shifts, Ints assignment) {
    const auto score_blocks = scope_blocks(score_scopes), shift_blocks = scope_blocks(shift_scopes);
    check_scopes(score_blocks, cardinalities.size());
    check_scopes(shift_blocks, cardinalities.size());
    if (scores.size() != score_blocks.size() || shifts.size() != shift_blocks.size() ||
        assignment.size() != cardinalities.size())
        throw nb::value_error("scopes, tables and labelling do not belong together");
    for (std::size_t i = 0; i < cardinalities.size(); i++)
        if (assignment.data()[i] < 0 || assignment.data()[i] >= cardinalities.data()[i])
            throw nb::value_error("a state is out of range");
    const auto score_tables = table_blocks<double>(scores);
    const auto shift_tables = table_blocks<std::int64_t>(shifts);
    Evaluation found;
    evaluate_scores(as_span(cardinalities), assignment.data(), {score_blocks, score_tables}, found);
    evaluate_shifts(as_span(cardinalities), assignment.data(), {shift_blocks, shift_tables}, found);
    return std::tuple(found.score, found.magnitude, found.terms, found.sums);
}

auto join_arrays(Doubles3 a, Doubles3 b, std::int64_t repeats) {
    const std::size_t rows = a.shape(1) + b.shape(1) - 1, columns = a.shape(2) + b.shape(2) - 1;
    if (a.shape(0) != b.shape(0) || a.size() == 0 || b.size() == 0 || repeats < 1)
        throw nb::value_error("both need the same states and some cells, and one repeat or more");
    std::vector<double> out(a.shape(0) * rows * columns);
    {
        nb::gil_scoped_release release;
        join_boxes(static_cast<Index>(a.shape(0)), a.data(), static_cast<Index>(a.shape(1)),
                   static_cast<Index>(a.shape(2)), b.data(), static_cast<Index>(b.shape(1)),
                   static_cast<Index>(b.shape(2)), out.data(), repeats, chosen_kernels, kPoll);
    }
    return to_numpy(std::move(out), {a.shape(0), rows, columns});
}

}  // namespace

void bind_runs(nb::module_ &m) {
    nb::class_<PyRun>(m, "Run")
        .def(
            "__init__",
            [](PyRun *self, const PyLayout &layout, std::vector<Tables> tables, AlgebraKind algebra,
               std::uint64_t prime, std::int64_t threads, double grain, bool every) {
                new (self) PyRun(make_run(layout, std::move(tables), algebra, prime, threads, grain, every));
            },
            "layout"_a, "tables"_a.noconvert(), "algebra"_a, "prime"_a = 0, "threads"_a = 1,
            "grain"_a = Threads().grain, "every"_a = false)
        .def_prop_ro("values", [](const PyRun &r) { return to_numpy(r.run->root_values()); })
        .def("root", [](const PyRun &r) { return root_of(*r.run); })
        .def_prop_ro("native_steps", [](const PyRun &r) { return r.run->native_steps(); })
        .def(
            "decode", [](PyRun &r, std::int64_t cell) { return decoded(*r.run, cell); }, "cell"_a)
        .def("differentiate", &differentiate, "weights"_a.noconvert())
        .def("sample", &sample, "cells"_a.noconvert(), "uniforms"_a.noconvert())
        .def(
            "downward",
            [](PyRun &r, Doubles weights) {
                if (static_cast<Index>(weights.size()) != r.run->layout().tables.back().cells)
                    throw nb::value_error("one weight per root cell");
                std::vector<double> result;
                {
                    nb::gil_scoped_release release;
                    result = r.every_table().downward(as_span(weights), kPoll);
                }
                return to_numpy(std::move(result));
            },
            "weights"_a.noconvert());

    nb::class_<PyKBest>(m, "KBest")
        .def("__init__", &make_k_best, nb::keep_alive<1, 2>(), "run"_a, "root_cells"_a.noconvert())
        .def("next", &next_labellings, "count"_a, "room"_a = kEndless)
        .def_prop_ro("bytes", [](const PyKBest &self) { return self.search.bytes(); });

    m.def("evaluate", &evaluate, "cardinalities"_a.noconvert(), "score_scopes"_a.noconvert(), "scores"_a.noconvert(),
          "shift_scopes"_a.noconvert(), "shifts"_a.noconvert(), "assignment"_a.noconvert());
    m.def("join", &join_arrays, "a"_a.noconvert(), "b"_a.noconvert(), "repeats"_a = 1);
}

}  // namespace tallytree
