// Objectives of the probabilities of tallies, in plain numbers, and how they change with each of them.
#pragma once

#include <vector>

#include "common.h"

namespace tallytree {

inline constexpr double kSmallestLog = 667;         // exp(-667) is 1e-290: normal, also times a factor
inline constexpr double kSmallestAllowedLog = 300;  // the same where labels are forbidden
inline constexpr double kMostLoss = 100;  // how far the losses of tallies may lie apart where they are added to logs

// Which sums are right to rounding: those that are large enough, and nothing at all if nothing was left out.
struct SureSums {
    double least = 0;
    bool complete = false;
    bool holds(double sum) const { return sum == 0 ? complete : sum >= least; }
};

struct TallyWeights {
    std::vector<double> likely, costs;  // of each tally: its probability, up to a factor, and its loss
    std::vector<double> weights;        // what comes out: the derivative by each of the former
    std::vector<std::uint8_t> inside;   // whether the loss is known; what is not known is impossible

    // The log of the sum of all tallies, each with its loss added; false where losses lie too far apart.
    bool softmax_margin(double margin, double &value);
    // The mean of the losses.
    void risk(double &value);
    // The log of the sum over all tallies less that over those without a loss; false where it is not certain.
    bool evidence(const SureSums &sure, double &value);
    // Any function, which gains `costs` with the log of each probability; false where one of these is not certain.
    bool given(const SureSums &sure);
};

}  // namespace tallytree
