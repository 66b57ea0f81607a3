// The border to Python: arrays in, arrays out. Everything runs with the GIL released and looks up for
// signals now and then.
#include "bind/checks.h"
#include "bind/launches.h"
#include "bind/names.h"

namespace tallytree {
namespace {

void choose_kernels(const char *name) {
    const auto *found = maxplus_kernels(name && *name ? name : nullptr);
    if (!found) throw nb::value_error("no such instruction set on this machine");
    chosen_kernels = found;
}

std::vector<std::string> usable_instruction_sets() {
    std::vector<std::string> names;
    for (const char *name : {"baseline", "v3", "v4"})
        if (maxplus_kernels(name)) names.emplace_back(name);
    return names;
}

// For tests: the n-th look for signals from now on finds an interrupt (0: none does), and looks are so many operations
// apart. Returns how many looks were left of what was asked for before.
std::int64_t interrupt_at(std::int64_t look, double operations) {
    Meter::between_polls = operations;
    return std::exchange(looks_until_interrupt, look);
}

}  // namespace
}  // namespace tallytree

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a model kept in a cache until the interpreter ends is no leak
    using namespace tallytree;
    const nb::module_ numpy = nb::module_::import_("numpy");
    numpy_empty = nb::object(numpy.attr("empty")).release();
    numpy_int64 = nb::object(numpy.attr("dtype")("int64")).release();
    m.doc() = "Native planner and executor: arrays in, arrays out.";
    m.def("use_instruction_set", [](const std::string &name) { choose_kernels(name.c_str()); }, "name"_a = "");
    m.def("instruction_set", [] { return std::string(chosen_kernels->name); });
    m.def("instruction_sets", &usable_instruction_sets);
    m.def("interrupt_at", &interrupt_at, "look"_a, "operations"_a = Meter::kOperations);
    bind_errors(m);
    bind_enums(m);
    bind_plans(m);
    bind_runs(m);
    bind_single(m);
    bind_charts(m);
    bind_chart_runs(m);
    bind_truths(m);
    bind_batch(m);
    bind_dual_steps(m);
    bind_bounds(m);
    bind_chart_bounds(m);
    bind_sequences(m);
    bind_crf(m);
    bind_names(m);
    bind_launches(m);
    choose_kernels(nullptr);
}
