// What is maximised over single tallies: the score of those that are allowed, alone or together with a loss.
#pragma once

#include <cstdint>

#include "bounds/tally.h"

namespace tallytree::bounds {

struct TallyGoal {
    Index statistics = 0;
    Index count = 1;  // how many tallies are wanted, where there are losses: those of the largest values
    FewBox box;       // no other tallies are relevant
    // Tables of tallies, the last statistic fastest. Tallies beyond a cap are looked up where that is.
    Few<Index> low{}, extent{}, caps{kUncapped, kUncapped, kUncapped};
    const std::uint8_t *allowed = nullptr;                // whether a tally is; null: all of the box are
    const double *losses = nullptr, *inverses = nullptr;  // inverses: under slack scaling. Null: the score alone
    bool slack = false;
    double margin = 0, truth = 0;
    double largest = 0;   // of the losses, in size
    bool regular = true;  // whether all losses are numbers, none of them below 0 under slack scaling

    bool plain() const { return !losses; }
    double value(double loss, double score) const {
        return slack ? loss * (margin + (score - truth)) : margin * loss + (score - truth);
    }
    // Of a tally of the box.
    const double &loss(const Few<Index> &tally) const {
        Index place = 0;
        for (Index p = 0; p < statistics; p++) place = place * extent[p] + tally[p] - low[p];
        return losses[place];
    }
    bool allows(const Few<Index> &tally) const {
        if (!box.holds(tally) || !allowed) return box.holds(tally);
        Index place = 0;
        for (Index p = 0; p < statistics; p++) {
            const Index x = std::min(tally[p], caps[p]) - low[p];
            if (x < 0 || x >= extent[p]) return false;
            place = place * extent[p] + x;
        }
        return allowed[place] != 0;
    }
    // -inf where the tally is not allowed.
    double value(const Few<Index> &tally, double score) const {
        if (!plain()) return box.holds(tally) ? value(loss(tally), score) : kNegativeInfinity;
        return allows(tally) ? score : kNegativeInfinity;
    }
};

}  // namespace tallytree::bounds
