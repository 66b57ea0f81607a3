// The cells of a segment's tables that lead to some cells: those that must be recomputed to decode these.
#pragma once

#include "plan/layout.h"

namespace tallytree {

struct TableCell {
    std::int32_t table;
    Index cell;  // of its one stretch
};

// Whether every table has one stretch of tallies, of which a part can be computed.
bool knows_needed_cells(const Layout &layout);

// For each table of the segment: an interval around all cells that lead to those of `wanted` that are in it, of any
// state. The entries of `needed` for other segments are left alone.
void find_needed_cells(const Layout &layout, Index segment, std::span<const TableCell> wanted,
                       std::vector<Range> &needed);

// The operations of computing these cells of some tables, but for checkpoints.
double operations_of(const Layout &layout, Range tables, std::span<const Range> needed);

}  // namespace tallytree
