// The border for runs in single precision.
#include "bind/checks.h"

namespace tallytree {
namespace {

struct PySingleRun {
    std::vector<Tables> tables;  // before `run`: destroyed after it
    std::unique_ptr<SingleRun> run;
};

PySingleRun make_run(const PyLayout &layout, std::vector<Tables> tables, std::int64_t threads, double grain) {
    auto blocks = score_blocks(*layout.layout->skeleton, tables);
    if (layout.layout->lanes != kLanesOf<float>) throw nb::value_error("this layout is for double precision");
    check_threads(threads, grain);
    PySingleRun result{std::move(tables), nullptr};
    nb::gil_scoped_release release;
    result.run = std::make_unique<SingleRun>(layout.layout, std::move(blocks), AlgebraKind::MaxPlus, 0, chosen_kernels);
    result.run->upward(kPoll, {threads, grain});
    return result;
}

}  // namespace

void bind_single(nb::module_ &m) {
    nb::class_<PySingleRun>(m, "SingleRun")
        .def(
            "__init__",
            [](PySingleRun *self, const PyLayout &layout, std::vector<Tables> tables, std::int64_t threads,
               double grain) { new (self) PySingleRun(make_run(layout, std::move(tables), threads, grain)); },
            "layout"_a, "tables"_a.noconvert(), "threads"_a = 1, "grain"_a = Threads().grain)
        .def_prop_ro("values", [](const PySingleRun &r) { return to_numpy(r.run->root_values()); })
        .def("root", [](const PySingleRun &r) { return root_of(*r.run); })
        .def_prop_ro("native_steps", [](const PySingleRun &r) { return r.run->native_steps(); })
        .def_prop_ro("overflowed", [](const PySingleRun &r) { return r.run->overflowed(); })
        .def("decode", [](PySingleRun &r, std::int64_t cell) { return decoded(*r.run, cell); }, "cell"_a);
}

}  // namespace tallytree
