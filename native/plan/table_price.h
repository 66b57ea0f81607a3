// About how much time a full table takes, from the ranges of its statistics. No tally is listed.
#pragma once

#include "plan/tally_ranges.h"

namespace tallytree {

// The fraction of what a table takes at least, which a search may take before the table is computed. Searches take up
// to 1.8 times what is counted, so that the sum is nearly always below 1.5 times the table.
constexpr double kSearchShare = 0.33;

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
};

TablePrice price_of_tables(const Skeleton &skeleton, const LayoutRequest &request);
// The same without caps and a window.
TablePrice price_of_tables(const Skeleton &skeleton, const StepRanges &ranges);

}  // namespace tallytree
