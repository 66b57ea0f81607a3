#include "bounds/link_counts.h"

#include <algorithm>

namespace tallytree::bounds {

void LinkCounts::group(std::vector<Met> met) {
    std::ranges::stable_sort(met, {}, &Met::counts);
    entry_.assign(keys_.size(), -1);
    forward_.reserve(met.size());
    backward_.reserve(met.size());
    for (const Met &one : met) {
        if (groups_.empty() || groups_.back().counts != one.counts) groups_.push_back({one.counts, 0});
        entry_[one.backward] = static_cast<std::int32_t>(entries());
        forward_.push_back(static_cast<std::int32_t>(one.forward));
        backward_.push_back(static_cast<std::int32_t>(one.backward));
        groups_.back().end = entries();
    }
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
