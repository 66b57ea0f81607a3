#include "bulk/objectives.h"

#include <algorithm>
#include <cmath>

namespace tallytree {
namespace {

// Makes probabilities of logarithms, and returns the log of their sum.
double normalise(std::vector<double> &logs) {
    const double top = logs.empty() ? kNegativeInfinity : *std::max_element(logs.begin(), logs.end());
    if (top == kNegativeInfinity) {
        std::fill(logs.begin(), logs.end(), 0.0);
        return top;
    }
    double sum = 0;
    for (auto &log : logs) sum += log = std::exp(log - top);
    for (auto &part : logs) part /= sum;
    return top + std::log(sum);
}

// What is known is that the loss is 0: infinite where no labelling has that.
double evidence(std::vector<double> &weights, std::span<const double> costs) {
    std::vector<double> allowed(weights);
    for (std::size_t i = 0; i < allowed.size(); i++)
        if (costs[i] != 0) allowed[i] = kNegativeInfinity;
    const double all = normalise(weights), some = normalise(allowed);
    for (std::size_t i = 0; i < weights.size(); i++) weights[i] -= allowed[i];
    return all - some;
}

}  // namespace

double root_objective(Objective objective, const Run &run, const LossTable *losses, std::vector<double> &weights) {
    weights = run.root_values();
    if (objective == Objective::Likelihood) return normalise(weights);
    const std::vector<double> costs = losses->of_root(run);
    if (objective == Objective::Evidence) return evidence(weights, costs);
    if (objective == Objective::SoftmaxMargin)
        for (std::size_t i = 0; i < weights.size(); i++) weights[i] += losses->margin * costs[i];
    const double log_sum = normalise(weights);
    if (objective == Objective::SoftmaxMargin || log_sum == kNegativeInfinity) return log_sum;
    double mean = 0;
    for (std::size_t i = 0; i < weights.size(); i++) mean += weights[i] * costs[i];
    for (std::size_t i = 0; i < weights.size(); i++) weights[i] *= costs[i] - mean;
    return mean;
}

}  // namespace tallytree
