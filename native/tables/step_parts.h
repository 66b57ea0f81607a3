// Large steps in parts: each thread that takes part in one computes some rows of the output, or some cells of them.
#pragma once

#include <algorithm>

#include "common.h"

namespace tallytree {

struct Threads {
    Index count = 1;
    double grain = 3e5;  // operations, some 100 microseconds of them, that are worth a look at what others do
};

struct Part {  // one of several; by default the whole
    Index number = 0, of = 1;
};

inline Range share(Part part, Index n) { return {n * part.number / part.of, n * (part.number + 1) / part.of}; }

// What a part has of `rows` rows of `units` units each: a row of states with its stretches, say. Units that are too few
// to go round are cut into slices. Of each unit, only some cells may be needed.
class Lot {
  public:
    static constexpr Range kAll{0, kNoLimit};

    Lot(Part part, Index rows, Index units, Range needed = kAll)
        : units_(units),
          slices_(part.of == 1 ? 1 : 1 + 4 * part.of / std::max<Index>(rows * units, 1)),
          all_(share(part, rows * units * slices_)),
          needed_(needed) {}

    bool sliced() const { return slices_ > 1 || some(); }

    // Whether what lies around a unit of n cells comes with these of its cells.
    bool has_end(Range cells, Index n) const { return cells.last == n || (some() && cells.first == 0); }

    // The rows of which it has something.
    Range rows() const {
        const Index each = units_ * slices_;
        return each ? Range{all_.first / each, (all_.last + each - 1) / each} : Range{};
    }

    // Which of the n cells of a unit it has: whole blocks, or all or none where they belong together.
    Range cells(Index row, Index unit, Index n, bool together = false) const {
        const Range slice = pieces(row, unit, n, together);
        return together ? slice : within(slice, n);
    }

    // The same of n things that are all needed.
    Range pieces(Index row, Index unit, Index n, bool together = false, Index block = kBlock) const {
        const Index begin = (row * units_ + unit) * slices_;
        const Index from = std::max<Index>(all_.first - begin, 0), to = std::min(all_.last - begin, slices_);
        if (from >= to) return {};
        if (slices_ == 1) return {0, n};
        if (together) return from == 0 ? Range{0, n} : Range{};
        const auto cut = [&](Index i) { return std::min(n, (n * i / slices_ + block - 1) / block * block); };
        return {cut(from), cut(to)};
    }

    // Those of some cells that are needed, in whole blocks.
    Range within(Range cells, Index n) const {
        if (!some()) return cells;
        return {std::max(cells.first, needed_.first / kBlock * kBlock),
                std::min({cells.last, round_up(needed_.last, kBlock), n})};
    }

  private:
    static constexpr Index kBlock = 16;

    bool some() const { return needed_.last != kNoLimit; }

    Index units_, slices_;
    Range all_, needed_;
};

// The same of a unit that is a box of rows of cells: some of the rows, or some cells of each.
struct Box {
    Range rows, cells;
    Box(const Lot &lot, Index row, Index unit, Index height, Index width, bool together = false)
        : rows{0, height}, cells{0, width} {
        const bool by_rows = together || 16 * height >= width;
        if (by_rows) rows = lot.pieces(row, unit, height, false, 5);  // as many as the kernels take together
        if (by_rows && !together) cells = lot.within(cells, width);
        if (!by_rows) cells = lot.cells(row, unit, width);
    }
    bool empty() const { return rows.empty() || cells.empty(); }
};

}  // namespace tallytree
