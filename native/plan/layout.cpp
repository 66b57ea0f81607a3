// Which of the two modes a layout has: rows, unless stretches are too short to be worth a vector, or mostly holes.
#include "plan/layout.h"

#include "plan/layout_builder.h"

namespace tallytree {
namespace {

constexpr double kShortRow = 1.5;  // cells on average below which rows are no better than cells

double average_length(const Layout &layout) {
    double cells = 0, stretches = 0;
    for (const auto &table : layout.tables) {
        cells += static_cast<double>(table.cells);
        stretches += static_cast<double>(table.stretches);
    }
    return stretches > 0 ? cells / stretches : 0;
}

double total_cells(const Layout &layout) {
    double cells = 0;
    for (const auto &table : layout.tables)
        cells += static_cast<double>(table.cells) * static_cast<double>(table.states);
    return cells;
}

}  // namespace

static Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll,
                           Layout used) {
    if (!skeleton->feasible) throw BudgetExceeded("a step of the skeleton is beyond any memory");
    std::optional<LayoutBuilder> builder(std::in_place, skeleton, request, poll, std::move(used));
    if (request.mode == Mode::Cells || request.caps.empty()) return builder->build(false);
    if (request.mode == Mode::Rows) return builder->build(true);
    if (builder->all_short()) return builder->build(false);
    const auto cells = [&](const Layout &beside) {
        builder.reset();  // its memory first: both together may be beyond the limit
        LayoutRequest rest(request);
        rest.memory_limit -= static_cast<double>(beside.plan_bytes);
        return LayoutBuilder(skeleton, rest, poll).build(false);
    };
    Layout rows;
    try {
        rows = builder->build(true);
    } catch (const BudgetExceeded &) {
        return cells(rows);
    }
    const double length = average_length(rows);
    if (length >= kShortRow && !builder->has_gaps()) return rows;
    try {
        Layout other = cells(rows);
        if (length < kShortRow || 3 * total_cells(other) < total_cells(rows)) return other;
    } catch (const BudgetExceeded &) {
    }
    return rows;
}

Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll) {
    return build_layout(std::move(skeleton), request, poll, Layout{});
}

void rebuild_layout(Layout &layout, std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request,
                    const Poll &poll) {
    if (!layout.known) layout.known = std::make_shared<KnownSteps>();
    layout = build_layout(std::move(skeleton), request, poll, std::move(layout));
}

}  // namespace tallytree
