// The layout of a plan: which tallies each table holds and where its numbers lie. It depends on the
// integer tables of the statistics, never on scores.
//
// A table's tallies are a sorted list of stretches. In `rows` mode a stretch is a reachable prefix (every statistic
// but one) with an interval of the remaining one; in `cells` mode a stretch is one reachable tally. The number
// for state s and cell i of stretch r lies at
//     base + s * stride + start[r] + i
// in both modes: rows have stride = row length, cells have stride 1 and start[r] = r * states.
#pragma once

#include <algorithm>
#include <memory>

#include "plan/skeleton.h"

namespace tallytree {

// Calls `inner(position in the factor's table, count, stride)` for each innermost stretch of a local table.
template <class Inner>
void walk_factor(std::span<const FactorLoop> loops, Inner &&inner, Index at = 0) {
    if (loops.empty()) return inner(at, 1, 0);
    if (loops.size() == 1) return inner(at, loops[0].count, loops[0].stride);
    for (Index i = 0; i < loops[0].count; i++) walk_factor(loops.subspan(1), inner, at + i * loops[0].stride);
}

struct Window {  // tallies that the caller can still use; both ends included
    std::vector<Index> low, high;
    bool open = true;  // no limit anywhere
};

enum class Mode : int { Automatic = 0, Rows = 1, Cells = 2 };

struct TableLayout {
    Index stretches_begin = 0, stretches = 0;
    Index states = 1;
    Index cells = 0;  // over all stretches
    Index stride = 0, size = 0;
    Index base = 0;
    bool checkpoint = false;
};

// The pairs of stretches that a step combines, sorted by the stretch they go to. Group (r) of a join lists pairs of
// input stretches; group (r * classes + d) of an elimination lists the input stretches that shift d carries to r.
struct PairList {
    const Index *begin;
    const std::int32_t *a, *b;
    Index groups;
    Index count() const { return begin[groups]; }
};

// The effect of a step on tallies, as views into the layout's pools.
struct StepView {
    Index classes;                 // distinct shifts of an elimination; 0 for a join
    const std::int32_t *class_of;  // local shift table
    const Index *class_shift;      // along the stretch
    PairList pairs;
};

// Where a sum lands in a stretch of the output, counted from its beginning. Everything beyond a cap is folded into
// the last cell, so no memory is needed beyond it.
inline Index landing(Index sum, Index low, Index length) { return std::min(sum - low, length - 1); }

struct StepLayout {
    Index classes = 0, groups = 0;
    Index class_of = 0, class_prefix = 0, class_shift = 0, begin = 0, pairs = 0;  // places in the pools
    double operations = 0;
};

struct ChartTables;
struct KnownSteps;

struct Layout {
    std::shared_ptr<const Skeleton> skeleton;
    std::shared_ptr<const ChartTables> chart;  // what the verbs of charts need besides
    std::shared_ptr<KnownSteps> known;         // what the pools hold besides, for layouts to come in the same memory
    bool rows = false;
    Index lanes = kLanes;  // numbers to 64 bytes: doubles, or floats
    Index statistics = 0;
    Index prefix_size = 0;                  // statistics that are not along the stretch
    std::vector<std::int32_t> permutation;  // internal position -> statistic
    std::vector<Index> caps;                // internal order; on sums whose minima were moved out
    std::vector<Index> floors;              // internal order: the minima moved out, and constants
    std::vector<Index> user_caps;           // internal order: the caps as given

    std::vector<TableLayout> tables;
    std::vector<StepLayout> steps;
    std::vector<std::int32_t> class_of, pair_a, pair_b;  // pools that the steps point into
    std::vector<Index> class_prefix, class_shift, pair_begin;
    std::vector<Index> low, length, natural, start;  // per stretch; natural: length before a cap folds it
    std::vector<Index> prefix;                       // per stretch, prefix_size values

    std::vector<Index> segment_begin;  // steps of each segment; tables inside one share memory with others
    std::vector<Index> side_begin{0};  // segments of each side, which shares memory with no other (see rolling.h)
    Index arena = 0;                   // numbers
    Index unrolled = 0;                // of an arena for every table; 0 if this one is, or where that does not fit
    double operations = 0;
    Index plan_bytes = 0;  // tables, steps, stretches and pairs
    Index scratch = 0;     // numbers: local tables and padded operands
    bool clipped = false;  // a window cut stretches short
    Index pruned = 0;      // tallies that the window cut off
    std::int32_t costliest = -1;
    std::int32_t root_state = 0;  // of the last table; -1: nothing comes to it

    Index bytes(Index numbers) const { return numbers * (64 / lanes); }
    // What the last table is read into, with its tallies; a labelling, and the way down to it.
    Index answer_bytes() const {
        const Index cells = tables.empty() ? 0 : tables.back().cells;
        return 8 * cells * (3 + statistics) + 8 * static_cast<Index>(skeleton->cardinalities.size());
    }
    // The program and its lists, tables, scratch memory of one thread, and the answer.
    Index all_bytes() const { return skeleton->bytes + plan_bytes + bytes(arena + scratch) + answer_bytes(); }

    StepView step(std::int32_t t) const {
        const StepLayout &s = steps[t];
        return {s.classes,
                class_of.data() + s.class_of,
                class_shift.data() + s.class_shift,
                {pair_begin.data() + s.begin, pair_a.data() + s.pairs, pair_b.data() + s.pairs, s.groups}};
    }
};

struct LayoutRequest {
    std::vector<TableBlock<std::int64_t>> shifts;
    std::vector<Index> caps;  // as given; kUncapped for none
    Window window;            // on the tallies as the user sees them
    Mode mode = Mode::Automatic;
    double memory_limit = 0;                                           // bytes
    double operation_limit = std::numeric_limits<double>::infinity();  // where long lists are made
    Index lanes = kLanes;
};

// Calls `use(statistic, each)` for every factor of a statistic that a step absorbs; `each(f)` calls f(entry of the
// local shift table, count) for all entries.
template <class Use>
void each_counted(const Skeleton &skeleton, std::span<const TableBlock<std::int64_t>> shifts, Index t, Use use) {
    Index loops = skeleton.shift_refs.begin[t];
    for (const FactorRef ref : skeleton.shift_refs[t]) {
        const std::int64_t *table = shifts[ref.block].row(ref.row);
        const auto walk = skeleton.shift_loops[loops++];
        use(skeleton.statistic_of[ref.block], [&](auto f) {
            Index entry = 0;
            walk_factor(walk, [&](Index at, Index n, Index stride) {
                for (Index x = 0; x < n; x++) f(entry + x, table[at + x * stride]);
                entry += n;
            });
        });
    }
}

Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll);

// The same in the memory of a layout that is no longer needed; steps that are met again are not made again. Throws
// OutOfRoom where its lists take more than `room` bytes, and fit the memory limit.
void rebuild_layout(Layout &layout, std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request,
                    const Poll &poll, double room);

}  // namespace tallytree
