// How far sums of statistics go: over all of them, along the axes of a layout, and below each table.
#pragma once

#include "plan/layout.h"
#include "plan/sums.h"

namespace tallytree {

// What the integer tables of a request say.
class TallyRanges {
  public:
    TallyRanges(const Skeleton &skeleton, const LayoutRequest &request);

    bool capped(Index statistic) const { return request_.caps[statistic] != kUncapped; }
    // By how much its tallies differ at most.
    Index width(Index statistic) const;
    // Whether no statistic has a range worth a row.
    bool all_short() const;
    Index low(std::size_t block, Index row) const { return range(block, row).first; }
    Index high(std::size_t block, Index row) const { return range(block, row).second; }

    // Puts the statistics of a layout in order, and moves minima out of the capped ones. In rows mode the stretch
    // follows the statistic with the widest range, uncapped ones first.
    void choose_axes(Layout &layout, bool rows) const;

  private:
    std::pair<Index, Index> range(std::size_t block, Index row) const {
        return range_of_[first_of_[block] + (request_.shifts[block].count == 1 ? 0 : row)];
    }

    const Skeleton &skeleton_;
    const LayoutRequest &request_;
    std::vector<Index> first_of_;                    // per block: its place in range_of_
    std::vector<std::pair<Index, Index>> range_of_;  // per table of a block: least and largest entry
    std::vector<Index> total_low_, total_high_;      // per statistic
};

// The axis of each statistic in a layout.
std::vector<Index> axis_of(const Layout &layout);

// Which sums of a table can still end inside the caller's window; for a layout whose axes are chosen.
class Windows {
  public:
    Windows(const LayoutRequest &request, const TallyRanges &ranges, const Layout &layout);
    const Bounds &of(Index table);

  private:
    void find_sums(const TallyRanges &ranges);
    void narrow(Index table, Index axis);

    const LayoutRequest &request_;
    const Layout &layout_;
    Index count_;                                // of statistics
    std::vector<Index> below_low_, below_high_;  // the lowest and highest sum below each table, per axis
    Bounds window_;
};

}  // namespace tallytree
