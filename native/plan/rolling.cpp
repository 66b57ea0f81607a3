#include "plan/rolling.h"

#include <algorithm>

#include "plan/needed.h"
#include "plan/placement.h"

namespace tallytree {
namespace {

constexpr Index kFar = Index{16} << 20;  // bytes of all tables above which rolling is tried
constexpr Index kNear = Index{2} << 20;  // bytes that are small enough
constexpr Index kTimes = 8;              // rolling tables are at least this many times smaller
constexpr double kSide = 8;              // a side with 1/8 of all tables or more gets its own thread
constexpr double kShare = 0.1;           // the largest share of operations repeated for a labelling

// The operations of computing again what leads to one cell in the middle of each checkpoint. The last segment is there.
double operations_again(const Layout &layout) {
    std::vector<TableCell> wanted;
    for (std::size_t t = 0; t < layout.tables.size(); t++)
        if (layout.tables[t].checkpoint)
            wanted.push_back({static_cast<std::int32_t>(t), layout.length[layout.tables[t].stretches_begin] / 2});
    std::vector<Range> needed(layout.tables.size());
    auto from = wanted.begin();
    for (std::size_t segment = 0; segment + 2 < layout.segment_begin.size(); segment++) {
        const Index last = layout.segment_begin[segment + 1];
        const auto begin = from;
        while (from != wanted.end() && from->table < last) from++;
        find_needed_cells(layout, static_cast<Index>(segment), {begin, from}, needed);
    }
    return operations_of(layout, {0, std::ssize(layout.tables)}, needed);
}

// The first step of the second of two large parts that do not depend on each other: the inputs of a join, each with its
// subtree, which lie one behind the other.
Index other_side(const Layout &layout) {
    const auto &steps = layout.skeleton->steps;
    std::vector<double> before(1, 0);  // bytes of the tables before each step
    for (const auto &table : layout.tables) before.push_back(before.back() + static_cast<double>(table.size));
    std::vector<std::int32_t> first(steps.size());  // of its subtree
    for (std::size_t t = 0; t < steps.size(); t++) {
        first[t] = static_cast<std::int32_t>(t);
        for (auto input : {steps[t].a, steps[t].b})
            if (input >= 0) first[t] = std::min(first[t], first[input]);
    }
    for (auto t = static_cast<std::int32_t>(steps.size()) - 1; steps[t].a >= 0;) {
        auto large = steps[t].a, small = steps[t].b;
        const auto size = [&](std::int32_t i) { return i < 0 ? 0 : before[i + 1] - before[first[i]]; };
        if (size(small) > size(large)) std::swap(large, small);
        if (size(small) * kSide >= before.back()) return first[std::max(large, small)];
        t = large;
    }
    return kNoLimit;
}

Index whole_arena(const Layout &layout) {
    Index arena = 0;
    for (const auto &table : layout.tables) arena += round_up(table.size, layout.lanes);
    return arena;
}

// In 2, 4, 8, … segments, until their tables are near or further cuts gain nothing.
void cut_small(Layout &layout) {
    const Index most = std::ssize(layout.tables), side = other_side(layout);
    for (Index segments = 2, before = kNoLimit; segments < most; segments *= 2) {
        cut_tables(layout, segments, side);
        if (layout.arena >= before) return cut_tables(layout, segments / 2, side);
        before = layout.arena;
        if (layout.bytes(layout.arena) <= kNear) return;
    }
}

}  // namespace

void roll(Layout &layout, double memory_limit, bool all_later) {
    const Index whole = whole_arena(layout), bytes = layout.bytes(whole);
    if (bytes < kFar || 8 * layout.plan_bytes > bytes || !knows_needed_cells(layout)) return;
    const auto tables = layout.tables;
    const auto segment_begin = layout.segment_begin;
    const Index arena = layout.arena;
    cut_small(layout);
    const bool cut = segment_begin.size() > 2;
    const auto needs = static_cast<double>(layout.all_bytes() + (all_later && !cut ? bytes + layout.plan_bytes : 0));
    const bool pays = kTimes * layout.arena <= whole && operations_again(layout) <= kShare * layout.operations;
    if (pays && needs <= memory_limit) {
        layout.unrolled = all_later && !cut ? whole : 0;
    } else {
        layout.tables = tables;
        layout.segment_begin = segment_begin;
        layout.side_begin = {0};
        layout.arena = arena;
    }
}

void roll_into(Layout &layout, Index segments) {
    layout.unrolled = whole_arena(layout);
    cut_tables(layout, segments, other_side(layout));
}

std::shared_ptr<const Layout> unrolled(const Layout &layout) {
    auto whole = std::make_shared<Layout>(layout);
    cut_tables(*whole, 1);
    whole->unrolled = 0;
    return whole;
}

}  // namespace tallytree
