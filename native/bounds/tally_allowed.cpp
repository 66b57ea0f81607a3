// The best score of the tallies that a constraint allows.
#include "bounds/tally_search.h"

namespace tallytree::bounds {

namespace {

constexpr double kNear = 0.02;       // of a score: a bound that is so near to the least one is as good
constexpr double kBend = 6;          // prices of so many scores lead from one end of a statistic to the other, about
constexpr double kFarthest = 1e4;    // how much farther than a usual step one goes where there seems to be no end
constexpr double kFar = 4;           // tallies: between prices that lead to them, there are others
constexpr double kFirstBand = 0.25;  // of a score
constexpr double kWider = 3;
constexpr double kMuch = 0.5;  // of a score: a budget beyond which it pays to look at single tallies

}  // namespace

// The prices at which the bound on all that is allowed is least; whether something allowed was met on the way or not,
// a band there shows the best.
bool TallySearch::settle_allowed() {
    while (living_ > 0 && !spent()) {
        spread_all();
        prices_ = passes_[best_].prices.first();
        messages_->hold(prices_);
        if (met() && spreads_[best_].budget <= kNear * scale_) break;
        auto next = towards_allowed();
        if (!next && met() && living_ > 1 && spreads_[best_].budget > kMuch * scale_) next = bracket();
        if (!next) break;
        pass(*next);
        if (!std::isfinite(passes_.back().most)) return false;
    }
    return living_ > 0 && widen();
}

// The next prices; none where the bound would hardly be less anywhere.
std::optional<Few<double>> TallySearch::towards_allowed() {
    double span = 1;
    for (Index p = 0; p <= last_; p++) span = std::max(span, static_cast<double>(measures_.range.extent(p)));
    const double usual = kBend * scale_ / span, most = kFarthest * usual;
    if (passes_.size() == 1) {
        tau_ = usual;
    } else {  // longer steps as long as they lead to less
        const bool best = best_ + 1 == passes_.size();
        tau_ *= !best ? 0.5 : spreads_[best_].budget <= expected_ ? 2 : 1;
    }
    const Few<double> centre = passes_[best_].prices.first();
    bundle_.begin(asked_.statistics);
    for (std::size_t i = 0; i < passes_.size(); i++) {
        const Few<double> gap = gap_of(i);
        double value = spreads_[i].budget;
        for (Index p = 0; p <= last_; p++) value += gap[p] * (centre[p] - passes_[i].prices[p]);
        bundle_.add(value, gap);
    }
    const auto between = last_ == 0 ? interpolated() : std::nullopt;
    if (between) tau_ = most;  // the end of the step is where two bounds meet
    for (;; tau_ *= 8) {
        const auto step = bundle_.step(tau_);
        const double gain = spreads_[best_].budget - bundle_.model();
        if (gain > kNear * scale_) {
            if (between && between->second) return Few<double>{between->first};
            expected_ = spreads_[best_].budget - 0.5 * gain;
            Few<double> move{};
            std::copy(step.begin(), step.end(), move.begin());
            return plus(centre, move);
        }
        if (tau_ >= most) return {};
    }
}

// How far the tally of a pass is from the allowed one that its bound is about.
Few<double> TallySearch::gap_of(std::size_t pass) const {
    Few<double> gap{};
    for (Index p = 0; p <= last_; p++) gap[p] = static_cast<double>(passes_[pass].tally[p] - spreads_[pass].tally[p]);
    return gap;
}

// Between two prices of one statistic that lead too far to either side: a price in proportion, and whether their
// tallies are so far apart that it is better than the one where their bounds meet. The bound is about a parabola, and
// its tangents meet half way. An end that stays while the other one moves counts half each time.
std::optional<std::pair<double, bool>> TallySearch::interpolated() const {
    double below = kNegativeInfinity, above = kInfinity, short_of = 0, beyond = 0, half_below = 1, half_above = 1;
    for (std::size_t i = 0; i < passes_.size(); i++) {
        const double price = passes_[i].prices[0], gap = gap_of(i)[0];
        if (gap < 0 && price > below) below = price, short_of = -gap, half_below = 1, half_above *= 0.5;
        if (gap > 0 && price < above) above = price, beyond = gap, half_above = 1, half_below *= 0.5;
    }
    if (!(below < above) || short_of == 0 || beyond == 0) return {};
    const bool far = short_of + beyond > kFar;
    short_of *= std::min(1.0, 2 * half_below);
    beyond *= std::min(1.0, 2 * half_above);
    return std::pair{below + (above - below) * short_of / (short_of + beyond), far};
}

// A band at the prices of the least bound that grows until it holds all that may be as good as the best in it.
bool TallySearch::widen() {
    spread_all();
    const Pass at = passes_[best_];
    recall(at);
    double budget = kFirstBand * scale_;
    const double every = std::abs(at.most) + measures_.magnitude + measures_.range.reach(at.prices);  // labelling
    for (; work_ <= most_work_ && (met() || budget <= kWider * every); budget *= kWider) {
        if (met()) budget = std::clamp(spreads_[best_].budget, 0.0, budget);
        const bool all_equal = budget <= 8 * tolerance(at) && !equals_;
        const double slack = slack_of(at, budget), before = value_;
        messages_->set_near(2 * slack);
        if (!band(budget + 4 * slack, all_equal ? measures_.few : most_work_ - work_)) return false;
        each_cell(at, [&](const Few<Index> &tally, double score, Index) { meet(score, tally, 4 * tolerance(at)); });
        if (!met()) continue;
        if (value_ > before) {
            find_needs();
            spreads_[best_] = spread(best_);
        }
        if (spreads_[best_].budget <= budget) return keep_candidates(at);
    }
    return false;
}

}  // namespace tallytree::bounds
