// An order in which few statistics are open at a time.
#pragma once

#include "plan/plan_shape.h"

namespace tallytree {

// A statistic is open from the first of its variables to the last. Of those that are open, the one with the fewest
// variables goes on, and among equals the one that was opened first; variables are taken as numbered. With counts per
// day and per person, for example, this goes through all people of a day or through all days of a person, whichever
// are fewer.
std::vector<std::int32_t> min_open_order(const PlanShape &shape);

}  // namespace tallytree
