// The range of tallies of a chart's trees, below each table and around it.
#pragma once

#include "charts/layout.h"

namespace tallytree {

class ChartRanges {
  public:
    // `shifts` are the distinct shifts of the paths over each span, one after the other. Tables without states are
    // ignored.
    ChartRanges(const Layout &layout, const Ragged<std::int32_t> &shifts);

    Index low(Index table, Index i) const { return inside_.low[table * p_ + i]; }
    Index high(Index table, Index i) const { return inside_.high[table * p_ + i]; }

    // The sums of a table that can still end inside the window of the request. False: none can.
    bool find_window(Index table, const ChartRequest &request, Bounds &window) const;

  private:
    void find_inside(Index start, Index width);
    void find_outside(Index start, Index width);
    bool some(const Bounds &bounds, Index table, Index i) const {
        return there_[table] && bounds.low[table * p_ + i] <= bounds.high[table * p_ + i];
    }
    // Widens the range of a table by that of another one, moved by a range.
    void widen(Bounds &to, Index table, const Bounds &from, Index source, Index i, Index least, Index most) const;
    void widen_by_shifts(Bounds &to, Index table, const Bounds &from, Index source, Index span, Index i) const;

    const Spans spans_;
    const Ragged<std::int32_t> &shifts_;
    const Index p_;
    std::vector<bool> there_;
    Bounds inside_, outside_;
};

}  // namespace tallytree
