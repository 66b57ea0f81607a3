// The order in which the steps of a program run.
#pragma once

#include "plan/outline.h"

namespace tallytree {

// The numbers of the steps in an order in which a table is consumed soon after it is made: fewer tables wait, and there
// are few checkpoints. At a join the side with more work goes first, so that the other's tables do not wait for it.
// `work` is that of each step by itself, and then that of all steps below it as well.
std::vector<std::int32_t> depth_first(std::span<const OutlineStep> steps, std::span<double> work);

}  // namespace tallytree
