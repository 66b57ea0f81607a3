// Plans at the border to Python: skeletons, layouts, orders.
#include "bind/checks.h"
#include "plan/give_back.h"
#include "plan/memory_estimate.h"
#include "plan/table_price.h"
#include "plan/order.h"
#include "plan/rolling.h"

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

struct PyShape {
    std::shared_ptr<const PlanShape> shape;
};

PyShape make_shape(Ints32 cardinalities, const std::vector<Scopes> &scores, const std::vector<Scopes> &shifts,
                   Ints32 statistic_of, Ints caps, Ints scales) {
    const auto score_blocks = scope_blocks(scores), shift_blocks = scope_blocks(shifts);
    check_cardinalities(as_span(cardinalities));
    check_scopes(score_blocks, cardinalities.size());
    check_scopes(shift_blocks, cardinalities.size());
    for (auto k : as_span(statistic_of))
        if (k < 0 || static_cast<std::size_t>(k) >= caps.size())
            throw nb::value_error("a block belongs to no statistic");
    if (scales.size() != caps.size()) throw nb::value_error("every statistic has a scale");
    if (statistic_of.size() != shifts.size()) throw nb::value_error("every block of shifts belongs to one statistic");
    return {std::make_shared<PlanShape>(as_span(cardinalities), score_blocks, shift_blocks, as_span(statistic_of),
                                        as_span(caps), as_span(scales))};
}

PySkeleton make_skeleton(const PyShape &self, Ints32 order, Purpose purpose, Index expected_steps) {
    check_order(as_span(order), self.shape->cardinalities.size());
    return {std::make_shared<Skeleton>(build_skeleton(self.shape, as_span(order), purpose, expected_steps))};
}

PySkeleton laid_out(const PySkeleton &draft) {
    if (!draft.skeleton->outline) throw nb::value_error("only a draft with an outline can be laid out, once");
    return {std::make_shared<Skeleton>(lay_out(*draft.skeleton))};
}

// In as many segments as are quick, or in so many; in one, but for those that the limit needs.
PyLayout make_layout(const PySkeleton &skeleton, const std::vector<IntTables> &shifts, const std::vector<Index> &caps,
                     const std::vector<Index> &low, const std::vector<Index> &high, Mode mode, double memory_limit,
                     bool single, Index segments, double operation_limit) {
    auto request = layout_request(*skeleton.skeleton, shifts, caps, low, high, mode, memory_limit);
    request.operation_limit = operation_limit;
    if (single) request.lanes = kLanesOf<float>;
    nb::gil_scoped_release release;
    Arena::trim(memory_limit);
    auto layout = std::make_shared<Layout>(build_layout(skeleton.skeleton, request, kPoll));
    if (segments == 0) roll(*layout, memory_limit);
    if (segments > 1) roll_into(*layout, segments);
    give_back_after(static_cast<double>(layout->plan_bytes));
    return {std::move(layout)};
}

// Bytes, and the largest table: its step, states and tallies.
auto memory_of(const PySkeleton &skeleton, const std::vector<IntTables> &shifts, const std::vector<Index> &caps,
               const std::vector<Index> &low, const std::vector<Index> &high, Mode mode, double memory_limit,
               bool single) {
    auto request = layout_request(*skeleton.skeleton, shifts, caps, low, high, mode, memory_limit);
    if (single) request.lanes = kLanesOf<float>;
    nb::gil_scoped_release release;
    const MemoryEstimate found = estimate_memory(skeleton.skeleton, request, kPoll);
    return std::tuple(found.bytes, found.largest, found.states, found.tallies);
}

// Operations of the full tables, the work of them and of their layout, and the bytes of that.
auto price_of(const PySkeleton &skeleton, const std::vector<IntTables> &shifts, const std::vector<Index> &caps,
              const std::vector<Index> &low, const std::vector<Index> &high) {
    require(!skeleton.skeleton->steps.empty(),
            "a program without steps, a draft or one that is not feasible, has no tables");
    const auto request = layout_request(*skeleton.skeleton, shifts, caps, low, high, Mode::Rows, 0);
    const TablePrice price = price_of_tables(*skeleton.skeleton, request);
    return std::tuple(price.operations, price.work, price.layout, price.bytes);
}

auto least_of(const PySkeleton &skeleton, const std::vector<IntTables> &shifts, const std::vector<Index> &caps,
              const std::vector<Index> &low, const std::vector<Index> &high, Mode mode) {
    const auto request = layout_request(*skeleton.skeleton, shifts, caps, low, high, mode, 0);
    auto found = least_tallies(skeleton.skeleton, request, kPoll);
    return to_numpy(std::move(found), {skeleton.skeleton->steps.size(), 2});
}

// ---- reading plans -------------------------------------------------------------------------------------------------

auto step_table(const PySkeleton &self) {
    std::vector<std::int32_t> rows;
    for (const auto &s : self.skeleton->steps) {
        const std::int32_t row[] = {static_cast<std::int32_t>(s.verb), s.a, s.b, s.variable};
        rows.insert(rows.end(), row, row + 4);
    }
    return to_numpy(std::move(rows), {self.skeleton->steps.size(), 4});
}

// One step: verb, inputs, variable; and the scope of its table.
auto step_row(const PySkeleton &self, std::int64_t number) {
    const Skeleton &skeleton = *self.skeleton;
    if (number < 0 || number >= static_cast<Index>(skeleton.steps.size()))
        throw nb::index_error("there is no such step");
    const Step &s = skeleton.steps[number];
    const auto scope = skeleton.scopes[number];
    return std::tuple(std::vector<std::int32_t>{static_cast<std::int32_t>(s.verb), s.a, s.b, s.variable},
                      std::vector<std::int32_t>(scope.begin(), scope.end()));
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

Index most_tallies(const PyLayout &self) {
    Index most = 0;
    for (const auto &t : self.layout->tables) most = std::max(most, t.cells);
    return most;
}

auto step_operations(const PyLayout &self) {
    std::vector<double> operations;
    for (const auto &s : self.layout->steps) operations.push_back(s.operations);
    return to_numpy(std::move(operations));
}

auto order_of(const PyShape &self, OrderMethod method, std::uint64_t seed) {
    std::vector<std::int32_t> order;
    {
        nb::gil_scoped_release release;
        order = elimination_order(*self.shape, method, seed, kPoll);
    }
    return to_numpy(std::move(order));
}

void bind_shapes(nb::module_ &m) {
    nb::class_<PyShape>(m, "Shape")
        .def(
            "__init__",
            [](PyShape *self, Ints32 cardinalities, const std::vector<Scopes> &scores,
               const std::vector<Scopes> &shifts, Ints32 statistic_of, Ints caps, Ints scales) {
                new (self) PyShape(make_shape(cardinalities, scores, shifts, statistic_of, caps, scales));
            },
            "cardinalities"_a.noconvert(), "scores"_a.noconvert(), "shifts"_a.noconvert(), "statistic_of"_a.noconvert(),
            "caps"_a.noconvert(), "scales"_a.noconvert())
        .def("order", &order_of, "method"_a, "seed"_a = 0)
        .def("program", &make_skeleton, "order"_a.noconvert(), "purpose"_a = Purpose::Tables, "expected_steps"_a = 0)
        .def_prop_ro("is_forest", [](const PyShape &s) { return s.shape->is_forest(); })
        .def_prop_ro("parts", [](const PyShape &s) { return s.shape->parts(); });
}

void bind_skeletons(nb::module_ &m) {
    nb::class_<PySkeleton>(m, "Skeleton")
        .def("laid_out", &laid_out)
        .def_prop_ro("steps", &step_table)
        .def("step", &step_row, "number"_a)
        .def_prop_ro("step_count", [](const PySkeleton &s) { return s.skeleton->step_count; })
        .def_prop_ro("drafted", [](const PySkeleton &s) { return s.skeleton->steps.empty(); })
        .def_prop_ro("variables", [](const PySkeleton &s) { return s.skeleton->order.size(); })
        .def_prop_ro("bytes", [](const PySkeleton &s) { return s.skeleton->bytes; })
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
        .def_prop_ro("pass_operations", [](const PySkeleton &s) { return s.skeleton->pass_operations; })
        .def_prop_ro("feasible", [](const PySkeleton &s) { return s.skeleton->feasible; });
}

void bind_layouts(nb::module_ &m) {
    nb::class_<PyLayout>(m, "Layout")
        .def(
            "__init__",
            [](PyLayout *self, const PySkeleton &skeleton, const std::vector<IntTables> &shifts,
               const std::vector<Index> &caps, const std::vector<Index> &low, const std::vector<Index> &high, Mode mode,
               double memory_limit, bool single, Index segments, double operation_limit) {
                new (self) PyLayout(make_layout(skeleton, shifts, caps, low, high, mode, memory_limit, single, segments,
                                                operation_limit));
            },
            "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a, "mode"_a, "memory_limit"_a,
            "single"_a = false, "segments"_a = 0, "operation_limit"_a = std::numeric_limits<double>::infinity())
        .def_prop_ro("rows", [](const PyLayout &l) { return l.layout->rows; })
        .def_prop_ro("operations", [](const PyLayout &l) { return l.layout->operations; })
        .def_prop_ro("arena_bytes", [](const PyLayout &l) { return l.layout->bytes(l.layout->arena); })
        .def_prop_ro("unrolled_bytes", [](const PyLayout &l) { return l.layout->bytes(l.layout->unrolled); })
        .def_prop_ro("plan_bytes", [](const PyLayout &l) { return l.layout->plan_bytes; })
        .def_prop_ro("bytes", [](const PyLayout &l) { return l.layout->all_bytes(); })
        .def_prop_ro("answer_bytes", [](const PyLayout &l) { return l.layout->answer_bytes(); })
        .def_prop_ro("most_tallies", &most_tallies)
        .def_prop_ro("scratch_bytes", [](const PyLayout &l) { return l.layout->bytes(l.layout->scratch); })
        .def_prop_ro("segments", [](const PyLayout &l) { return l.layout->segment_begin.size() - 1; })
        .def_prop_ro("pruned", [](const PyLayout &l) { return l.layout->pruned; })
        .def_prop_ro("costliest", [](const PyLayout &l) { return l.layout->costliest; })
        .def_prop_ro("tables", &table_sizes)
        .def_prop_ro("step_operations", &step_operations);
}

}  // namespace

void bind_plans(nb::module_ &m) {
    bind_shapes(m);
    bind_skeletons(m);
    bind_layouts(m);
    m.def("least_plan_bytes", &least_plan_bytes, "variables"_a, "factors"_a, "others"_a = 0);
    m.def("estimate_memory", &memory_of, "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a, "mode"_a,
          "memory_limit"_a, "single"_a = false);
    m.def("table_price", &price_of, "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a);
    m.def("least_tallies", &least_of, "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a, "mode"_a);
    m.def("give_memory_back", &give_memory_back);
}

}  // namespace tallytree
