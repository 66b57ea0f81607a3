// The number of different sums of the shifts of some steps, from the distinct shifts of each step, without a list.
#pragma once

#include <utility>
#include <vector>

#include "common.h"

namespace tallytree {

inline constexpr double kBeyondMemory = 1e15;  // numbers
inline constexpr Index kMostCounted = 2048;    // steps whose sums between ends are counted; of more, those of so many

// Steps with the same distinct shifts are of one kind, and their order does not matter.
class ShiftKinds {
  public:
    struct Steps {
        std::vector<Index> of_kind;  // how many
        std::vector<Index> base;     // the sum of their first shifts
        double others = 1;           // ways to choose in steps of further kinds
    };
    using Ends = std::vector<std::pair<Index, Index>>;  // the least and the largest sum of use, per axis

    void add(Steps &to, std::vector<std::vector<Index>> shifts);
    static void join(Steps &to, const Steps &from);

    // How many there are at most.
    double sums(const Steps &steps) const;

    // How many there are at least between the ends, or how many that differ along another axis than the one left out:
    // those of the steps of one kind, while all others add their first shift. 0 where it is not known.
    double least_sums(const Steps &steps, const Ends &ends, Index left_out = -1) const;

  private:
    struct Kind {
        std::vector<std::vector<Index>> shifts;  // without the first one, from which they are counted
        std::vector<Index> own;                  // an axis of each shift that no other one changes, or nothing
    };
    static double between(const Kind &kind, Index steps, const std::vector<Index> &base, const Ends &ends,
                          Index left_out);

    std::vector<Kind> kinds_;
};

}  // namespace tallytree
