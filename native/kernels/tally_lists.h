// Lists of single tallies, and of what is known about each.
#pragma once

#include <cstdint>

namespace tallytree {

// Lists are as long as `size` rounded up to whole vectors; entries beyond the size are ignored.
struct TallyLists {
    std::int64_t size, statistics;
    const double *prices;     // for each statistic
    double most;              // at these prices
    double *need;             // the least score that will do; inf where nothing will
    const double *counts[3];  // for each statistic, of which there are three at most
};

// Tallies along one statistic, with the losses of a table.
struct TallyLine {
    std::int64_t size;
    const double *losses;
    double over, price;  // what the first of them scores more than the truth, at most, and what each further one pays
    double margin, value;
    bool slack;
};

// Numbers of tallies are given in order, in a list with room for all of them and a whole vector.
struct TallyKernels {
    // Those that reach the value: with slack, (over + margin) * loss, where there is a loss; else over + margin * loss.
    // Returns how many.
    std::int64_t (*reach)(const TallyLine &line, std::int32_t *numbers);
    // bound = the minimum of itself and the largest score of a tally; need = inf if it exceeds that. Returns the number
    // of tallies left.
    std::int64_t (*cut)(const TallyLists &lists, double *bound);
    // The tallies whose bound exceeds their need the most; `over`: by how much. Returns their number.
    std::int64_t (*farthest)(const TallyLists &lists, double *over, std::int32_t *numbers);
};

}  // namespace tallytree
