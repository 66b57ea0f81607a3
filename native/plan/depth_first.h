// The order in which the steps of a program run.
#pragma once

#include "plan/skeleton.h"

namespace tallytree {

// Renumbers the steps so that a table is consumed soon after it is made: fewer tables wait, and there are few
// checkpoints. At a join the side with more work goes first, so that the other's tables do not wait for it. `work` is
// that of each step by itself. Then the consumer of each table is known.
void order_depth_first(Skeleton &skeleton, std::vector<double> work);

}  // namespace tallytree
