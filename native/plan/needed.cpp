#include "plan/needed.h"

#include <algorithm>

namespace tallytree {
namespace {

// The one stretch of a table.
struct Stretch {
    Index low, length, natural;
    Stretch(const Layout &l, std::int32_t t)
        : low(l.low[l.tables[t].stretches_begin]),
          length(l.length[l.tables[t].stretches_begin]),
          natural(l.natural[l.tables[t].stretches_begin]) {}
    Range clip(Range cells) const { return {std::max<Index>(cells.first, 0), std::min(cells.last, length)}; }
};

void widen(Range &range, Range by) {
    if (by.empty()) return;
    range = range.empty() ? by : Range{std::min(range.first, by.first), std::max(range.last, by.last)};
}

// The cells of an input that reach `cells` when something between `least` and `most` is added to their number. What
// lies beyond a cap is in the last cell.
Range before(const Stretch &out, Range cells, const Stretch &in, Index least, Index most) {
    const bool folded = out.natural > out.length && cells.last == out.length;
    return in.clip({cells.first - most, folded ? in.length : cells.last - least});
}

}  // namespace

bool knows_needed_cells(const Layout &layout) {
    return layout.rows && layout.prefix_size == 0 && !layout.chart &&
           std::all_of(layout.tables.begin(), layout.tables.end(), [](const auto &t) { return t.stretches == 1; });
}

void find_needed_cells(const Layout &layout, Index segment, std::span<const TableCell> wanted,
                       std::vector<Range> &needed) {
    const Index first = layout.segment_begin[segment], last = layout.segment_begin[segment + 1];
    std::fill(needed.begin() + first, needed.begin() + last, Range{});
    for (const auto &[table, cell] : wanted)
        if (table >= first && table < last) widen(needed[table], {cell, cell + 1});
    for (auto t = static_cast<std::int32_t>(last); t-- > first;) {
        const Range cells = needed[t];
        const Step &step = layout.skeleton->steps[t];
        if (cells.empty() || step.verb == Verb::Unit) continue;
        const Stretch out(layout, t), a(layout, step.a);
        const auto lead = [&](std::int32_t input, const Stretch &in, Index least, Index most) {
            if (input >= first) widen(needed[input], before(out, cells, in, least, most));
        };
        if (step.verb == Verb::Join) {
            const Stretch b(layout, step.b);
            const Index offset = a.low + b.low - out.low;
            lead(step.a, a, offset, offset + b.length - 1);
            lead(step.b, b, offset, offset + a.length - 1);
        } else {
            const StepView s = layout.step(t);
            const auto [least, most] = std::minmax_element(s.class_shift, s.class_shift + s.classes);
            lead(step.a, a, a.low - out.low + *least, a.low - out.low + *most);
        }
    }
}

double operations_of(const Layout &layout, Range tables, std::span<const Range> needed) {
    double operations = 0;
    for (Index t = tables.first; t < tables.last; t++) {
        const auto &table = layout.tables[t];
        if (!table.checkpoint && !needed[t].empty())
            operations += layout.steps[t].operations * static_cast<double>(needed[t].last - needed[t].first) /
                          static_cast<double>(layout.length[table.stretches_begin]);
    }
    return operations;
}

}  // namespace tallytree
