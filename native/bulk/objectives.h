// Training objectives as functions of log Σ exp F for each tally, and their derivatives.
#pragma once

#include "bulk/loss_table.h"

namespace tallytree {

enum class Objective : int {
    Likelihood = 0,     // log of the sum over all tallies
    SoftmaxMargin = 1,  // the same, each with its loss added
    Risk = 2,           // the mean of the losses
    Evidence = 3,       // the log of the sum over all tallies, less that over those without a loss
    Given = 4,          // any: its derivatives by tally are given, and its value is not needed
    Sums = 5,           // the log of the sum of each tally, without derivatives
};

// The objective of one item.
struct TallyQuestion {
    Objective objective = Objective::Likelihood;
    const TallyGrid *grid = nullptr;  // the tallies of what follows,
    std::span<const double> gains;    // of Objective::Given,
    std::span<double> sums;           // and of Objective::Sums: what is found; -inf for tallies that nothing has
};

// The value for the last table of a run over log-sum-exp; -inf where all labellings are forbidden. `weights` takes the
// derivative by the value of each of its cells. Losses may be left out for the likelihood.
double root_objective(Objective objective, const Run &run, const LossTable *losses, std::vector<double> &weights);

}  // namespace tallytree
