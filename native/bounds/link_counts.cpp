#include "bounds/link_counts.h"

#include <algorithm>

namespace tallytree::bounds {

void LinkCounts::group() {
    std::ranges::stable_sort(met_, {}, &Met::counts);
    entry_.assign(keys_.size(), -1);
    for (const Met &met : met_) {
        if (groups_.empty() || groups_.back().counts != met.counts) groups_.push_back({met.counts, 0});
        entry_[met.backward] = static_cast<std::int32_t>(entries());
        forward_.push_back(static_cast<std::int32_t>(met.forward));
        backward_.push_back(static_cast<std::int32_t>(met.backward));
        groups_.back().end = entries();
    }
    met_ = {};
}

std::vector<double> LinkCounts::pick(const double *forward) const {
    std::vector<double> scores;
    scores.reserve(forward_.size());
    for (const auto place : forward_) scores.push_back(forward[place]);
    return scores;
}

void LinkCounts::charge(const Prices &prices, const double *scores, double *forward, double *backward) const {
    Index i = 0;
    for (const Group &group : groups_) {
        const double price = paid(prices.first(), group.counts);
        for (; i < group.end; i++) forward[forward_[i]] = backward[backward_[i]] = scores[i] + price;
    }
}

double LinkCounts::bytes() const {
    return static_cast<double>(
        8 * keys_.capacity() +
        4 * (counts_.capacity() + entry_.capacity() + forward_.capacity() + backward_.capacity()) +
        sizeof(Group) * groups_.capacity());
}

}  // namespace tallytree::bounds
