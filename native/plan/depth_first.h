// The order in which the steps of a program are done.
#pragma once

#include "plan/skeleton.h"

namespace tallytree {

// Renumbers the steps so that a table is consumed soon after it is made: fewer of them wait, and checkpoints are few.
// At a join the side with more work goes first, so that the other's tables do not wait for it. `work` is that of each
// step by itself. Then it is known who consumes each table.
void order_depth_first(Skeleton &skeleton, std::vector<double> work);

}  // namespace tallytree
