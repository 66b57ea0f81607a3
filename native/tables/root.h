// The content of the last table of a run, stretch by stretch.
#pragma once

#include <algorithm>

#include "tables/upward.h"

namespace tallytree {

struct RootStretch {
    Index cell;                      // the number of the first one
    const Index *tally;              // of the first one, in the user's order of statistics
    Index along;                     // the statistic that grows by one from cell to cell; -1 where there is one cell
    std::span<const double> values;  // without the constants of the model
};

template <class Use>
void each_root_stretch(const Run &run, Use use) {
    const Layout &layout = run.layout();
    if (layout.root_state < 0) return;
    const auto last = static_cast<std::int32_t>(layout.tables.size()) - 1;
    const Stretches stretches(layout, last);
    const Index q = layout.prefix_size, along = q < layout.statistics ? layout.permutation[q] : -1;
    const double *row = run.row(last, layout.root_state);
    std::vector<Index> tally(layout.statistics);
    const auto set = [&](Index i, Index sum) {  // statistic i in the order of the layout
        tally[layout.permutation[i]] = std::min(sum + layout.floors[i], layout.user_caps[i]);
    };
    Index cell = 0;
    for (Index r = 0; r < stretches.count; cell += stretches.length[r++]) {
        for (Index i = 0; i < q; i++) set(i, stretches.prefix[r * q + i]);
        if (along >= 0) set(q, stretches.low[r]);
        use(RootStretch{
            cell, tally.data(), along, {row + stretches.start[r], static_cast<std::size_t>(stretches.length[r])}});
    }
}

}  // namespace tallytree
