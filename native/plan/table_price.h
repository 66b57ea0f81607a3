// About how much time a full table takes, from the ranges of its statistics. No tally is listed.
#pragma once

#include "plan/tally_ranges.h"

namespace tallytree {

// The fraction of what a table takes, which a search may take before the table is computed. Both are counted, and up to
// a quarter off, so that the sum is below 1.5 times the table.
constexpr double kSearchShare = 0.38;

struct TablePrice {
    double operations = 0;  // add-max operations, as if every tally between the least and the largest occurred
    double work = 0;        // the time of the tables, in units of about a nanosecond
    double layout = 0;      // the time of laying them out, likewise,
    double bytes = 0;       // and the bytes of the lists of that layout
};

// What the steps of a program add to a tally at least and at most, and how many statistics do not depend on others.
struct StepRanges {
    std::vector<Index> low, high;  // [step][statistic]
    Index independent = 0;
    std::vector<Index> units;  // of each statistic: tallies differ by multiples of this; none: by 1
    double pairs = 0.75;       // of two statistics: the part of the pairs between these ends that occurs
};

TablePrice price_of_tables(const Skeleton &skeleton, const LayoutRequest &request);
// The same without caps and a window.
TablePrice price_of_tables(const Skeleton &skeleton, const StepRanges &ranges);

}  // namespace tallytree
