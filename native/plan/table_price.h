// About how much time a full table takes, from the ranges of its statistics. No tally is listed.
#pragma once

#include "plan/tally_ranges.h"

namespace tallytree {

struct TablePrice {
    double operations = 0;  // add-max operations
    double work = 0;        // the time that it takes at least, in units of about a nanosecond
};

// As if every tally between the least and the largest of a table occurred; of several statistics, not all do, which the
// time allows for.
TablePrice price_of_tables(const Skeleton &skeleton, const LayoutRequest &request);

}  // namespace tallytree
