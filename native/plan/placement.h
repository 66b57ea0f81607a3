// The memory layout: positions of stretches in rows, and of tables in the arena.
#pragma once

#include "plan/layout.h"

namespace tallytree {

// Fills in the places of the stretches of a layout.
void place_stretches(Layout &layout);
// The same for one table with rows, given the step that consumes it; -1 for one that reads the stretches as they are.
void place_rows(Layout &layout, std::int32_t t, std::int32_t consumer);
// Fills in the places of tables whose sizes are known. Throws BudgetExceeded if no arrangement fits.
void place_tables(Layout &layout, double memory_limit);

// The same with a given number of segments, and one more that begins at a step: from there on, they share other memory.
void cut_tables(Layout &layout, Index segments, Index side = kNoLimit);

inline double bytes_of(const Layout &layout) {
    return 8 * static_cast<double>(layout.arena + layout.scratch) + static_cast<double>(layout.plan_bytes);
}

[[noreturn]] void throw_budget(std::int32_t step, double bytes);

}  // namespace tallytree
