#include "svm/dual_steps.h"

#include <algorithm>
#include <cmath>

namespace tallytree {
namespace {

Index first_entry(const PlaneBlock &block, Index plane) { return plane ? block.ends[plane - 1] : 0; }

Index lowest_in_use(const std::vector<double> &slopes, std::span<const double> alpha) {
    Index lowest = -1;
    for (Index k = 0; k < static_cast<Index>(slopes.size()); k++)
        if (alpha[k] > 0 && (lowest < 0 || slopes[k] < slopes[lowest])) lowest = k;
    return lowest;
}

void move(const PlaneBlock &block, std::vector<double> &slopes, std::span<double> alpha, Index up, Index down) {
    const double *above = block.gram.data() + up * block.size(), *below = block.gram.data() + down * block.size();
    const double slope = slopes[up] - slopes[down], curvature = above[up] - 2 * above[down] + below[down];
    const double step = curvature > 0 ? std::min(alpha[down], slope / curvature) : alpha[down];
    alpha[up] += step;
    alpha[down] -= step;
    for (Index k = 0; k < block.size(); k++) slopes[k] -= step * (above[k] - below[k]);
}

}  // namespace

std::vector<double> block_inner(const PlaneBlock &block, std::span<const double> vector) {
    std::vector<double> inner(block.ends.size(), 0);
    for (Index k = 0; k < static_cast<Index>(inner.size()); k++) {
        double sum = 0;
        for (Index e = first_entry(block, k); e < block.ends[k]; e++) sum += block.values[e] * vector[block.indices[e]];
        inner[k] = sum;
    }
    return inner;
}

double improve_block(const PlaneBlock &block, const StepRules &rules, std::span<double> alpha,
                     std::span<double> weights, std::span<double> lag, double lag_factor) {
    auto slopes = block_inner(block, weights);
    for (Index k = 0; k < block.size(); k++) slopes[k] = block.offsets[k] - slopes[k];
    const std::vector<double> before(alpha.begin(), alpha.end());
    const double highest = *std::max_element(slopes.begin(), slopes.end());
    double gap = 0, largest = 0;
    for (Index k = 0; k < block.size(); k++) {
        gap += alpha[k] * (highest - slopes[k]);
        largest = std::max(largest, std::abs(block.offsets[k]));
    }
    double least = rules.rounding * (1 + largest);
    for (Index i = 0; i < rules.steps; i++) {
        const Index up = std::max_element(slopes.begin(), slopes.end()) - slopes.begin();
        const Index down = lowest_in_use(slopes, alpha);
        if (down < 0 || slopes[up] - slopes[down] <= least) break;
        least = std::max(least, rules.enough * (slopes[up] - slopes[down]));  // from the first one, the largest, on
        move(block, slopes, alpha, up, down);
    }
    for (Index k = 0; k < block.size(); k++) {
        const double change = alpha[k] - before[k];
        if (change == 0) continue;
        for (Index e = first_entry(block, k); e < block.ends[k]; e++) {
            const double entry = block.values[e] * change;
            weights[block.indices[e]] += entry;
            if (!lag.empty()) lag[block.indices[e]] += lag_factor * entry;
        }
    }
    return gap;
}

}  // namespace tallytree
