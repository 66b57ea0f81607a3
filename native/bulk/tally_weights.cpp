#include "bulk/tally_weights.h"

#include <algorithm>
#include <cmath>

namespace tallytree {

bool TallyWeights::softmax_margin(double margin, double &value) {
    double top = kNegativeInfinity, least = -kNegativeInfinity, sum = 0;
    for (std::size_t i = 0; i < likely.size(); i++)
        if (inside[i]) {
            top = std::max(top, margin * costs[i]);
            least = std::min(least, margin * costs[i]);
        }
    if (!(top - least <= kMostLoss)) return false;
    for (std::size_t i = 0; i < likely.size(); i++)
        if (inside[i]) sum += likely[i] * (weights[i] = std::exp(margin * costs[i] - top));
    for (auto &weight : weights) weight /= sum;
    value = top + std::log(sum);
    return true;
}

void TallyWeights::risk(double &value) {
    double sum = 0, mean = 0;
    for (std::size_t i = 0; i < likely.size(); i++) {
        sum += likely[i];
        mean += likely[i] * costs[i];
    }
    value = mean / sum;
    for (std::size_t i = 0; i < likely.size(); i++)
        if (inside[i]) weights[i] = (costs[i] - value) / sum;
}

bool TallyWeights::evidence(const SureSums &sure, double &value) {
    double allowed = 0;
    for (std::size_t i = 0; i < likely.size(); i++)
        if (inside[i] && costs[i] == 0) allowed += likely[i];
    if (!(allowed > 0) || !sure.holds(allowed)) return false;
    value = std::max(-std::log(allowed), 0.0);
    for (std::size_t i = 0; i < likely.size(); i++)
        if (inside[i] && costs[i] == 0) weights[i] = -1 / allowed;
    return true;
}

bool TallyWeights::given(const SureSums &sure) {
    constexpr double kMostGain = 1e40, kLeastGain = 1e-40;  // so that nothing overflows, or vanishes
    double largest = 0;
    for (std::size_t i = 0; i < likely.size(); i++) {
        if (!inside[i] || costs[i] == 0 || (likely[i] == 0 && sure.complete)) continue;
        if (!sure.holds(likely[i]) || !(std::abs(costs[i]) <= kMostGain)) return false;
        weights[i] = costs[i] / likely[i];
        largest = std::max(largest, std::abs(costs[i]));
    }
    return largest == 0 || largest >= kLeastGain;
}

}  // namespace tallytree
