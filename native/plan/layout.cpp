// Which of the two modes a layout has: rows, unless stretches are too short to be worth a vector, or mostly holes. Rows
// are laid out in no time; cells list their pairs one by one, so that this is given up where it costs more than a pass
// over rows would.
#include "plan/layout.h"

#include "plan/layout_builder.h"
#include "plan/memory_estimate.h"
#include "plan/placement.h"

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

double total_bytes(const Layout &layout) {
    return static_cast<double>(layout.bytes(layout.arena + layout.scratch) + layout.plan_bytes);
}

// What cells may cost where rows are at hand: the pairs that are listed in the time that a pass over rows takes, of its
// operations and of its numbers, which are written, often to fresh pages; and lists of the same size.
Worth worth_instead_of(const Layout &rows) {
    constexpr double kPairs = 1 << 16, kBytes = 1 << 20;  // always
    constexpr double kOperationsPerPair = 1000, kNumbersPerPair = 100;
    return {kPairs + rows.operations / kOperationsPerPair + static_cast<double>(rows.arena) / kNumbersPerPair,
            std::max(kBytes, total_bytes(rows))};
}

bool mostly_holes(const Layout &rows, const Layout &cells) {
    return 3 * total_cells(cells) < total_cells(rows) || 3 * total_bytes(cells) < total_bytes(rows);
}

}  // namespace

// What layouts certainly take, where they may be beyond the limit: known in no time, long before they are made.
static LeastMemory least_if_large(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                                  const TallyRanges &ranges, const Poll &poll) {
    if (request.caps.size() < 2) return {};
    double tallies = 1;
    for (Index k = 0; k < std::ssize(request.caps); k++) tallies *= static_cast<double>(ranges.width(k) + 1);
    const double bytes = 8 * tallies * static_cast<double>(skeleton->steps.size());
    return bytes <= request.memory_limit ? LeastMemory{} : least_memory(skeleton, request, ranges, poll);
}

static Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll,
                           Layout used, double room) {
    if (!skeleton->feasible) throw BudgetExceeded("a step of the skeleton is beyond any memory");
    std::optional<LayoutBuilder> builder(std::in_place, skeleton, request, poll, std::move(used), Worth{.room = room});
    const LeastMemory least = least_if_large(skeleton, request, builder->ranges(), poll);
    const double needed = request.mode == Mode::Rows    ? least.rows
                          : request.mode == Mode::Cells ? least.cells
                                                        : std::min(least.rows, least.cells);
    if (needed > request.memory_limit) throw_budget(0, needed);
    if (request.mode == Mode::Cells || request.caps.empty()) return builder->build(false);
    if (request.mode == Mode::Rows) return builder->build(true);
    if (builder->all_short()) return builder->build(false);
    const auto cells = [&](const Layout &beside, Worth worth = {}) {
        builder.reset();  // its memory first: both together may be beyond the limit
        LayoutRequest rest(request);
        rest.memory_limit -= static_cast<double>(beside.plan_bytes);
        worth.room = room - static_cast<double>(beside.plan_bytes);
        return LayoutBuilder(skeleton, rest, poll, {}, worth).build(false);
    };
    Layout rows;
    try {
        rows = builder->build(true);
    } catch (const BudgetExceeded &) {
        if (least.cells > request.memory_limit) throw;
        return cells(rows);
    }
    const bool short_rows = average_length(rows) < kShortRow;
    if (!short_rows && !builder->has_gaps()) return rows;
    try {
        Layout other = short_rows ? cells(rows) : cells(rows, worth_instead_of(rows));
        if (short_rows || mostly_holes(rows, other)) return other;
    } catch (const BudgetExceeded &) {
    }
    return rows;
}

Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll) {
    return build_layout(std::move(skeleton), request, poll, Layout{}, Worth().room);
}

void rebuild_layout(Layout &layout, std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request,
                    const Poll &poll, double room) {
    if (!layout.known) layout.known = std::make_shared<KnownSteps>();
    layout = build_layout(std::move(skeleton), request, poll, std::move(layout), room);
}

}  // namespace tallytree
