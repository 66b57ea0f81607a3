// The distinct shifts of eliminations: what a step's statistics add to a tally, entry by entry of its local table.
#pragma once

#include "plan/tally_ranges.h"

namespace tallytree {

class ShiftClasses {
  public:
    // For a layout whose axes are chosen.
    ShiftClasses(const LayoutRequest &request, const TallyRanges &ranges, Layout &layout);

    // Finds those of step t and puts them into the pools of the layout.
    void make(std::int32_t t);
    // Whether along the stretches some of them were apart by more than one.
    bool has_gaps() const { return gaps_; }

  private:
    void add_shift(FactorRef ref, std::span<const FactorLoop> loops);
    void cap_sums(Index entries);
    Index number(Index entries, std::int32_t *numbers);
    Index number_many(Index entries, std::int32_t *numbers);
    void note_gaps(std::span<const Index> shifts);

    const LayoutRequest &request_;
    const TallyRanges &ranges_;
    Layout &layout_;
    const Skeleton &skeleton_;
    Index count_;  // of statistics
    std::vector<Index> axis_;
    bool gaps_ = false;
    std::vector<Index> sums_, distinct_, sorted_;  // of the step at hand
};

}  // namespace tallytree
