// Tables that stay near the processor: a layout with checkpoints, for time instead of memory.
#pragma once

#include <memory>

#include "plan/layout.h"

namespace tallytree {

// Where all tables together are far larger than a cache, cuts a layout into segments whose tables share memory that
// fits one, provided that decoding then has little to compute again. The two largest parts of a program that do not
// depend on each other, such as the halves of a chain, have memory of their own, so that two threads can compute them
// at the same time. Every table still fits the memory limit besides, if it did before.
void roll(Layout &layout, double memory_limit);

// The same with a given number of segments, whatever that costs.
void roll_into(Layout &layout, Index segments);

// A copy that has every table, of a layout where these fit.
std::shared_ptr<const Layout> unrolled(const Layout &layout);

}  // namespace tallytree
