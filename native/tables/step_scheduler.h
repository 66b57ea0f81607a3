// Several threads on one program: subtrees that do not depend on each other side by side, large steps in parts.
//
// Every table of a segment has its own memory, so its steps can run in any order that respects their inputs; a segment
// waits for the previous one on the same side, whose memory it reuses. Every cell is computed as it would be
// by one thread: results do not depend on the number of threads.
#pragma once

#include "plan/layout.h"
#include "tables/step_parts.h"
#include "bulk/thread_pool.h"

namespace tallytree {

// Computes a part of a step; called by several threads.
using StepWork = std::function<void(Worker &worker, std::int32_t step, Part part)>;

// Computes `steps`, which come in the program's order and whose other inputs are there already.
void work_together(const Layout &layout, std::span<const std::int32_t> steps, Threads threads, const StepWork &work,
                   const Poll &poll);

}  // namespace tallytree
