// A loss of tallies, put together with a score: what loss-augmented inference maximises.
#pragma once

#include <algorithm>

#include "run.h"

namespace tallytree {

struct LossTable {
    std::vector<double> losses;      // over a box of tallies, the last statistic fastest
    std::vector<Index> low, extent;  // of the box, per statistic
    bool slack = false;              // loss * (margin + difference), else margin * loss + difference
    double margin = 1;

    double at(const Index *tally) const {
        Index place = 0;
        for (std::size_t i = 0; i < low.size(); i++) {
            const Index x = tally[i] - low[i];
            if (x < 0 || x >= extent[i]) throw std::invalid_argument("a tally lies outside the table of losses");
            place = place * extent[i] + x;
        }
        return losses[place];
    }

    double value(double loss, double difference) const {
        return slack ? loss * (margin + difference) : margin * loss + difference;
    }

    // The first row of largest value.
    Index best_row(const Run::Root &root, double truth_score) const {
        Index best = -1;
        double most = kNegativeInfinity;
        for (Index row = 0; row < static_cast<Index>(root.cells.size()); row++) {
            const double v =
                value(at(root.tallies.data() + row * static_cast<Index>(low.size())), root.values[row] - truth_score);
            if (v > most) {
                most = v;
                best = row;
            }
        }
        return best;
    }
};

}  // namespace tallytree
