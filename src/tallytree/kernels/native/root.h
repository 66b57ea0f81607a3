// What the last table of a run holds, one of its runs of tallies after the other.
#pragma once

#include <algorithm>

#include "upward.h"

namespace tallytree {

struct RootRun {
    Index cell;                      // the number of the first one
    const Index *tally;              // of the first one, in the user's order of statistics
    Index along;                     // the statistic that grows by one from cell to cell; -1 where there is one cell
    std::span<const double> values;  // without the constants of the model
};

template <class Use>
void each_root_run(const Run &run, Use use) {
    const Layout &layout = run.layout();
    if (layout.root_state < 0) return;
    const auto last = static_cast<std::int32_t>(layout.tables.size()) - 1;
    const Runs runs(layout, last);
    const Index q = layout.prefix_size, along = q < layout.statistics ? layout.permutation[q] : -1;
    const double *row = run.row(last, layout.root_state);
    std::vector<Index> tally(layout.statistics);
    const auto set = [&](Index i, Index sum) {  // statistic i in the order of the layout
        tally[layout.permutation[i]] = std::min(sum + layout.floors[i], layout.user_caps[i]);
    };
    Index cell = 0;
    for (Index r = 0; r < runs.count; cell += runs.length[r++]) {
        for (Index i = 0; i < q; i++) set(i, runs.prefix[r * q + i]);
        if (along >= 0) set(q, runs.low[r]);
        use(RootRun{cell, tally.data(), along, {row + runs.start[r], static_cast<std::size_t>(runs.length[r])}});
    }
}

}  // namespace tallytree
