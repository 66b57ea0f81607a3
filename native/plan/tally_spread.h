// What the entries of statistics say about their tallies, without listing these.
#pragma once

#include "plan/layout.h"

namespace tallytree {

// The part of the pairs between the least and the largest tallies of two statistics that may occur: their sum and their
// difference have ends, too. Two states of a variable are never counted both, for example. From some of the steps.
double part_of_pairs(const Skeleton &skeleton, const LayoutRequest &request);

// How many of the statistics are independent: of two states, for example, all but a constant of the one count is the
// other.
Index independent(const Skeleton &skeleton, const LayoutRequest &request);

// By multiples of what the tallies of each statistic differ.
std::vector<Index> units(const Skeleton &skeleton, const LayoutRequest &request);

}  // namespace tallytree
