// Where the numbers of a layout lie: runs inside rows, tables inside the arena.
#pragma once

#include "layout.h"

namespace tallytree {

// Fills in the places of a layout whose runs are known. Throws BudgetExceeded where no arrangement fits.
void place(Layout &layout, double memory_limit);

[[noreturn]] void throw_budget(std::int32_t step, double bytes);

}  // namespace tallytree
