// The border to Python: arrays in, arrays out. Everything runs with the GIL released and looks up for
// signals now and then.
#include <cstdlib>
#include <mutex>

#include "bind/checks.h"
#include "walk/evaluate.h"
#include "tables/joining.h"
#include "walk/kbest.h"
#include "plan/order.h"

namespace tallytree {
namespace {

void check_cardinalities(std::span<const std::int32_t> cardinalities) {
    for (auto n : cardinalities)
        if (n < 1) throw nb::value_error("every variable needs a state");
}

void check_order(std::span<const std::int32_t> order, std::size_t variables) {
    std::vector<bool> seen(variables, false);
    if (order.size() != variables) throw nb::value_error("an order must name every variable once");
    for (auto v : order) {
        if (v < 0 || static_cast<std::size_t>(v) >= variables || seen[v])
            throw nb::value_error("an order must name every variable once");
        seen[v] = true;
    }
}

void choose_kernels(const char *name) {
    const auto *found = maxplus_kernels(name && *name ? name : nullptr);
    if (!found) throw nb::value_error("no such instruction set on this machine");
    chosen_kernels = found;
}

struct PyRun {
    std::vector<Tables> tables;  // before `run`: destroyed after it
    std::unique_ptr<Run> run;
};

PySkeleton make_skeleton(Ints32 cardinalities, const std::vector<Scopes> &scores, const std::vector<Scopes> &shifts,
                         Ints32 statistic_of, Ints caps, Ints scales, Ints32 order) {
    const auto score_blocks = scope_blocks(scores), shift_blocks = scope_blocks(shifts);
    check_cardinalities(as_span(cardinalities));
    check_scopes(score_blocks, cardinalities.size());
    check_scopes(shift_blocks, cardinalities.size());
    for (auto k : as_span(statistic_of))
        if (k < 0 || static_cast<std::size_t>(k) >= caps.size())
            throw nb::value_error("a block belongs to no statistic");
    if (scales.size() != caps.size()) throw nb::value_error("every statistic has a scale");
    check_order(as_span(order), cardinalities.size());
    if (statistic_of.size() != shifts.size()) throw nb::value_error("every block of shifts belongs to one statistic");
    return {std::make_shared<Skeleton>(build_skeleton(as_span(cardinalities), score_blocks, shift_blocks,
                                                      as_span(statistic_of), as_span(caps), as_span(scales),
                                                      as_span(order)))};
}

PyLayout make_layout(const PySkeleton &skeleton, const std::vector<IntTables> &shifts, Ints caps, Ints low, Ints high,
                     Mode mode, double memory_limit, bool single) {
    auto request =
        layout_request(*skeleton.skeleton, shifts, as_span(caps), as_span(low), as_span(high), mode, memory_limit);
    if (single) request.lanes = kLanesOf<float>;
    nb::gil_scoped_release release;
    return {std::make_shared<const Layout>(build_layout(skeleton.skeleton, request, kPoll))};
}

PyRun make_run(const PyLayout &layout, std::vector<Tables> tables, AlgebraKind algebra, std::uint64_t prime,
               std::int64_t threads, double grain) {
    auto blocks = score_blocks(*layout.layout->skeleton, tables);
    check_prime(algebra, prime);
    if (layout.layout->lanes != kLanes) throw nb::value_error("this layout is for single precision");
    check_threads(threads, grain);
    PyRun result{std::move(tables), nullptr};
    nb::gil_scoped_release release;
    result.run = std::make_unique<Run>(layout.layout, std::move(blocks), algebra, prime, chosen_kernels);
    result.run->upward(kPoll, {threads, grain});
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
        for (std::size_t i = 0; i < cells.size(); i++)
            self.run->sample(cells.data()[i], uniforms.data() + i * uniforms.shape(1),
                             assignments.data() + i * variables, kPoll);
    }
    return to_numpy(std::move(assignments), {cells.size(), variables});
}

struct PyKBest {
    KBest search;
    std::mutex lock;
    PyKBest(const Run &run, std::span<const Index> cells) : search(run, cells) {}
};

void make_k_best(PyKBest *self, const PyRun &run, Ints root_cells) {
    if (!run.run->is_max_plus()) throw nb::value_error("only a max-plus run has its labellings in order");
    for (auto cell : as_span(root_cells)) check_cell(*run.run, cell);
    new (self) PyKBest(*run.run, as_span(root_cells));
}

auto next_labellings(PyKBest &self, std::int64_t count) {
    if (count < 0) throw nb::value_error("how many labellings cannot be negative");
    const Skeleton &skeleton = *self.search.layout().skeleton;
    const std::size_t variables = skeleton.cardinalities.size();
    std::vector<double> scores;
    std::vector<std::int64_t> positions, assignments;
    {
        nb::gil_scoped_release release;
        const std::lock_guard guard(self.lock);
        Meter meter(kPoll);
        std::vector<std::int64_t> labelling(variables, 0);
        const auto tell = [&](const Visit &visit) { label(skeleton, visit, labelling.data()); };
        while (static_cast<std::int64_t>(scores.size()) < count) {
            const auto found = self.search.next(tell, meter);
            if (found.position < 0) break;
            scores.push_back(found.score);
            positions.push_back(found.position);
            assignments.insert(assignments.end(), labelling.begin(), labelling.end());
        }
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

// ---- reading plans
// ---------------------------------------------------------------------------------------------------

auto step_table(const PySkeleton &self) {
    std::vector<std::int32_t> rows;
    for (const auto &s : self.skeleton->steps) {
        const std::int32_t row[] = {static_cast<std::int32_t>(s.verb), s.a, s.b, s.variable};
        rows.insert(rows.end(), row, row + 4);
    }
    return to_numpy(std::move(rows), {self.skeleton->steps.size(), 4});
}

auto refs_table(const Ragged<FactorRef> &refs) {
    std::vector<std::int32_t> rows;
    for (Index t = 0; t < refs.size(); t++)
        for (auto ref : refs[t]) {
            const std::int32_t row[] = {static_cast<std::int32_t>(t), ref.block, ref.row};
            rows.insert(rows.end(), row, row + 3);
        }
    const std::size_t count = rows.size() / 3;
    return to_numpy(std::move(rows), {count, 3});
}

auto table_sizes(const PyLayout &self) {  // states, stretches, cells, bytes, first address, checkpoint
    std::vector<std::int64_t> rows;
    for (const auto &t : self.layout->tables) {
        const std::int64_t row[] = {t.states, t.stretches, t.cells, self.layout->bytes(t.size), t.base, t.checkpoint};
        rows.insert(rows.end(), row, row + 6);
    }
    return to_numpy(std::move(rows), {self.layout->tables.size(), 6});
}

auto step_operations(const PyLayout &self) {
    std::vector<double> operations;
    for (const auto &s : self.layout->steps) operations.push_back(s.operations);
    return to_numpy(std::move(operations));
}

auto order_of(Ints32 cardinalities, const std::vector<Scopes> &scopes, OrderMethod method, std::uint64_t seed) {
    const auto blocks = scope_blocks(scopes);
    check_scopes(blocks, cardinalities.size());
    std::vector<std::int32_t> order;
    {
        nb::gil_scoped_release release;
        order = elimination_order(as_span(cardinalities), blocks, method, seed, kPoll);
    }
    return to_numpy(std::move(order));
}

}  // namespace
}  // namespace tallytree

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a model kept in a cache until the interpreter ends is no leak
    using namespace tallytree;
    m.doc() = "Native planner and executor: arrays in, arrays out.";
    bind_errors(m);
    bind_enums(m);

    nb::class_<PySkeleton>(m, "Skeleton")
        .def(
            "__init__",
            [](PySkeleton *self, Ints32 cardinalities, const std::vector<Scopes> &scores,
               const std::vector<Scopes> &shifts, Ints32 statistic_of, Ints caps, Ints scales, Ints32 order) {
                new (self) PySkeleton(make_skeleton(cardinalities, scores, shifts, statistic_of, caps, scales, order));
            },
            "cardinalities"_a.noconvert(), "scores"_a.noconvert(), "shifts"_a.noconvert(), "statistic_of"_a.noconvert(),
            "caps"_a.noconvert(), "scales"_a.noconvert(), "order"_a.noconvert())
        .def_prop_ro("steps", &step_table)
        .def_prop_ro("scope_begin",
                     [](const PySkeleton &s) { return to_numpy(std::vector<std::int64_t>(s.skeleton->scopes.begin)); })
        .def_prop_ro("scope_data",
                     [](const PySkeleton &s) { return to_numpy(std::vector<std::int32_t>(s.skeleton->scopes.data)); })
        .def_prop_ro("score_refs", [](const PySkeleton &s) { return refs_table(s.skeleton->score_refs); })
        .def_prop_ro("shift_refs", [](const PySkeleton &s) { return refs_table(s.skeleton->shift_refs); })
        .def_prop_ro("order",
                     [](const PySkeleton &s) { return to_numpy(std::vector<std::int32_t>(s.skeleton->order)); })
        .def_prop_ro("width", [](const PySkeleton &s) { return s.skeleton->width; })
        .def_prop_ro("degree", [](const PySkeleton &s) { return s.skeleton->degree; })
        .def_prop_ro("cost", [](const PySkeleton &s) { return s.skeleton->cost; })
        .def_prop_ro("feasible", [](const PySkeleton &s) { return s.skeleton->feasible; });

    nb::class_<PyLayout>(m, "Layout")
        .def(
            "__init__",
            [](PyLayout *self, const PySkeleton &skeleton, const std::vector<IntTables> &shifts, Ints caps, Ints low,
               Ints high, Mode mode, double memory_limit, bool single) {
                new (self) PyLayout(make_layout(skeleton, shifts, caps, low, high, mode, memory_limit, single));
            },
            "skeleton"_a, "shifts"_a.noconvert(), "caps"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(),
            "mode"_a, "memory_limit"_a, "single"_a = false)
        .def_prop_ro("rows", [](const PyLayout &l) { return l.layout->rows; })
        .def_prop_ro("operations", [](const PyLayout &l) { return l.layout->operations; })
        .def_prop_ro("arena_bytes", [](const PyLayout &l) { return l.layout->bytes(l.layout->arena); })
        .def_prop_ro("plan_bytes", [](const PyLayout &l) { return l.layout->plan_bytes; })
        .def_prop_ro("scratch_bytes", [](const PyLayout &l) { return l.layout->bytes(l.layout->scratch); })
        .def_prop_ro("segments", [](const PyLayout &l) { return l.layout->segment_begin.size() - 1; })
        .def_prop_ro("pruned", [](const PyLayout &l) { return l.layout->pruned; })
        .def_prop_ro("costliest", [](const PyLayout &l) { return l.layout->costliest; })
        .def_prop_ro("tables", &table_sizes)
        .def_prop_ro("step_operations", &step_operations);

    nb::class_<PyRun>(m, "Run")
        .def(
            "__init__",
            [](PyRun *self, const PyLayout &layout, std::vector<Tables> tables, AlgebraKind algebra,
               std::uint64_t prime, std::int64_t threads,
               double grain) { new (self) PyRun(make_run(layout, std::move(tables), algebra, prime, threads, grain)); },
            "layout"_a, "tables"_a.noconvert(), "algebra"_a, "prime"_a = 0, "threads"_a = 1,
            "grain"_a = Threads().grain)
        .def_prop_ro("values", [](const PyRun &r) { return to_numpy(r.run->root_values()); })
        .def("root", [](const PyRun &r) { return root_of(*r.run); })
        .def_prop_ro("native_steps", [](const PyRun &r) { return r.run->native_steps(); })
        .def(
            "decode", [](PyRun &r, std::int64_t cell) { return decoded(*r.run, cell); }, "cell"_a)
        .def("sample", &sample, "cells"_a.noconvert(), "uniforms"_a.noconvert())
        .def(
            "downward",
            [](PyRun &r, Doubles weights) {
                if (static_cast<Index>(weights.size()) != r.run->layout().tables.back().cells)
                    throw nb::value_error("one weight per root cell");
                std::vector<double> result;
                {
                    nb::gil_scoped_release release;
                    result = r.run->downward(as_span(weights), kPoll);
                }
                return to_numpy(std::move(result));
            },
            "weights"_a.noconvert());

    nb::class_<PyKBest>(m, "KBest")
        .def("__init__", &make_k_best, nb::keep_alive<1, 2>(), "run"_a, "root_cells"_a.noconvert())
        .def("next", &next_labellings, "count"_a);

    m.def("elimination_order", &order_of, "cardinalities"_a.noconvert(), "scopes"_a.noconvert(), "method"_a,
          "seed"_a = 0);
    m.def("evaluate", &evaluate, "cardinalities"_a.noconvert(), "score_scopes"_a.noconvert(), "scores"_a.noconvert(),
          "shift_scopes"_a.noconvert(), "shifts"_a.noconvert(), "assignment"_a.noconvert());
    m.def("join", &join_arrays, "a"_a.noconvert(), "b"_a.noconvert(), "repeats"_a = 1);
    m.def("use_instruction_set", [](const std::string &name) { choose_kernels(name.c_str()); }, "name"_a = "");
    m.def("instruction_set", [] { return std::string(chosen_kernels->name); });
    m.def("instruction_sets", [] {
        std::vector<std::string> names;
        for (const char *name : {"baseline", "v3", "v4"})
            if (maxplus_kernels(name)) names.emplace_back(name);
        return names;
    });
    bind_batch(m);
    bind_blocks(m);
    bind_chains(m);
    bind_charts(m);
    bind_single(m);
    choose_kernels(nullptr);
}
