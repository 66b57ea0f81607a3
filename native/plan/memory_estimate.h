// About how much memory a layout takes, from the ranges of its statistics and their distinct shifts. No tally is
// listed, so this also works for layouts that are far too large to build.
#pragma once

#include "plan/tally_ranges.h"

namespace tallytree {

// A lower bound for layouts of both kinds, from the largest table or all lists; 0 if unknown.
struct LeastMemory {
    double rows = 0, cells = 0;
};

// From tallies that can be counted without a list: those that steps with the same shifts lead to.
LeastMemory least_memory(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                         const TallyRanges &ranges, const Poll &poll);

// The stretches and the tallies that each table has at least, one after the other.
std::vector<double> least_tallies(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                                  const Poll &poll);

// The stretches that each table is expected to have where sums are far apart, so that hardly two choices of shifts have
// the same one: as many as choices, or the part of them that lies in the window if sums are spread as usual. 0 where
// sums are close to each other. Bytes: of all lists, while they are made.
struct FarApart {
    std::vector<double> stretches;
    double bytes = 0;
};
FarApart far_apart(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                   const TallyRanges &ranges, const Poll &poll, bool rows);

struct MemoryEstimate {
    double bytes = 0;                // at most about so much, for planning and for a run; 0 where it is not known
    std::int32_t largest = 0;        // the step that makes the largest table
    double states = 1, tallies = 1;  // of that table
};

// The memory limit of the request is only one for the estimate itself, which takes some for each step.
MemoryEstimate estimate_memory(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                               const Poll &poll);

}  // namespace tallytree
