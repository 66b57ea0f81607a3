// A loss of tallies combined with a score: the objective of loss-augmented inference.
#pragma once

#include "tables/run.h"

namespace tallytree {

// A box of tallies; numbers of them are laid out with the last statistic fastest.
struct TallyGrid {
    std::vector<Index> low, extent;  // per statistic

    bool has(const Index *tally) const;
    Index place(const Index *tally) const;
    std::vector<Index> tally(Index place) const;
};

// Which tallies of a box a constraint allows; no others are.
struct TallySet : TallyGrid {
    std::vector<std::uint8_t> allowed;

    bool allows(const Index *tally) const { return has(tally) && allowed[place(tally)]; }
};

struct LossTable : TallyGrid {
    std::vector<double> losses;  // of the tallies of the box
    bool slack = false;          // loss * (margin + difference), else margin * loss + difference
    double margin = 1;
    std::vector<double> inverses;  // of the losses, where differences are scaled
    double largest = 0;            // of the losses, in size
    bool regular = false;          // whether all are numbers, and none is below 0 where differences are scaled

    // To be called once the losses are set.
    void measure();

    // A cell of a run's last table; places in the table of losses are ordered as tallies are.
    struct Choice {
        double value, score, loss;
        Index place, cell;
        bool operator<(const Choice &other) const {  // whether it comes first
            return value > other.value || (value == other.value && place < other.place);
        }
    };

    double at(const Index *tally) const { return losses[place(tally)]; }
    double value(double loss, double difference) const {
        return slack ? loss * (margin + difference) : margin * loss + difference;
    }

    // The losses of all cells of a run's last table, in the order of their numbers; 0 for unreachable cells.
    std::vector<double> of_root(const Run &run) const;

    // The cells with the largest values, best first; ties in order of the tally.
    std::vector<Choice> best(const Run &run, double truth_score, Index count = 1) const;
};

}  // namespace tallytree
