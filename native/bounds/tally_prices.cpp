// Where the next pass is made.
#include "bounds/tally_search.h"

namespace tallytree::bounds {

namespace {

constexpr double kGain = 0.1;  // the least part of a budget that is worth a pass
constexpr double kReach = 2;   // how far beyond the place where a budget would end, were all linear
constexpr int kMostStalls = 2;

}  // namespace

// Minus the slope of need at a tally, from its neighbours.
std::optional<Few<double>> TallySearch::slope(const Few<Index> &tally) const {
    Few<double> found{};
    for (Index p = 0; p <= last_; p++) {
        Few<Index> below = tally, above = tally;
        if (tally[p] > box_.low[p]) below[p]--;
        if (tally[p] < box_.high[p]) above[p]++;
        if (below == above) continue;
        found[p] =
            (need_of(asked_.loss(below)) - need_of(asked_.loss(above))) / static_cast<double>(above[p] - below[p]);
        if (!std::isfinite(found[p])) return {};
    }
    return found;
}

// First the prices at which need is flat around the best that was met; after that, where the bounds so far meet.
std::optional<Few<double>> TallySearch::next_prices() {
    const bool bent = asked_.slack && (!cold_ || (value_tally_ && 2 * asked_.loss(*value_tally_) < asked_.largest));
    if (!bent && value_tally_ && value_tally_ != followed_ && passes_.size() <= 3) {
        followed_ = value_tally_;
        if (const auto wanted = slope(*value_tally_); wanted && *wanted != passes_[best_].prices.first()) return wanted;
    }
    if (const auto next = bundle()) return next;
    return bracket();
}

std::optional<Few<double>> TallySearch::bundle() {
    const Few<double> centre = passes_[best_].prices.first();
    if (!(spreads_[best_].budget > 0)) return {};
    bundle_.begin(asked_.statistics);
    double tau = 0;
    for (std::size_t i = 0; i < passes_.size(); i++) {
        Few<double> gap{};
        double value = spreads_[i].budget;
        for (Index p = 0; p <= last_; p++) {
            gap[p] = static_cast<double>(tops_[i].tally[p] - spreads_[i].tally[p]);
            value += gap[p] * (centre[p] - passes_[i].prices[p]);
        }
        bundle_.add(value, gap);
        if (i == best_) tau = spreads_[i].budget / std::max(inner(gap, gap), 1.0);
    }
    const auto step = bundle_.step(tau);
    Few<double> move{};
    std::copy(step.begin(), step.end(), move.begin());
    if (!(spreads_[best_].budget - bundle_.model() > kGain * spreads_[best_].budget)) return {};
    if (!(norm(move) > 1e-6 * scale_ / measures_.variables)) return {};
    return plus(centre, move);
}

// Prices that favour the tally that needs the budget: either its bound falls, or better prices lie there.
std::optional<Few<double>> TallySearch::bracket() {
    const Pass &at = passes_[best_];
    const Spread &most = spreads_[best_];
    Few<double> gap{};
    for (Index p = 0; p <= last_; p++) gap[p] = static_cast<double>(most.tally[p] - tops_[best_].tally[p]);
    const double square = inner(gap, gap);
    if (!(square > 0) || !(most.budget > 0)) return {};
    reach_ = bracketed_ == most.tally ? 2 * reach_ : kReach;
    bracketed_ = most.tally;
    stalled_ = most.budget > 0.9 * before_ ? stalled_ + 1 : 0;
    before_ = most.budget;
    if (stalled_ > kMostStalls) return {};
    return plus(at.prices.first(), gap, reach_ * most.budget / square);
}

}  // namespace tallytree::bounds
