// Tables that stay in the cache: a layout with checkpoints that saves time rather than memory.
#pragma once

#include <memory>

#include "plan/layout.h"

namespace tallytree {

// If all tables together are far larger than a cache, cuts a layout into segments whose tables share memory that fits
// in one, provided that decoding then recomputes little. The two largest parts of a program that do not
// depend on each other, such as the halves of a chain, have separate memory, so that two threads can compute them
// at the same time. If all tables may be needed later, they still fit the memory limit besides, if they did before.
void roll(Layout &layout, double memory_limit, bool all_later = true);

// The same with a given number of segments, regardless of the cost.
void roll_into(Layout &layout, Index segments);

// A copy of a layout that keeps all tables, which must fit.
std::shared_ptr<const Layout> unrolled(const Layout &layout);

}  // namespace tallytree
