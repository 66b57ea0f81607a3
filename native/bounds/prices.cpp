// Prices and boxes: how the budget is made small by plain passes.
#include "bounds/bundle.h"
#include "bounds/search.h"

namespace tallytree::bounds {

namespace {

double distance(const Tally &x, const Tally &y) {
    double sum = 0;
    each_statistic(x.more(), [&](Index p) { sum += std::pow(static_cast<double>(x[p] - y[p]), 2); });
    return std::sqrt(sum);
}

}  // namespace

// The same prices, or smaller ones: what is paid stays finite, however large scores are.
Prices Search::payable(Prices prices) const {
    constexpr double kMostPaid = 1e290;  // as large as a score may be
    for (Index p = 0; p < statistics_; p++) {
        const auto largest = std::max({-subject_.range().low[p], subject_.range().high[p], Index{1}});
        const double most = kMostPaid / static_cast<double>(largest);
        prices[p] = std::isnan(prices[p]) ? 0.0 : std::clamp(prices[p], -most, most);
    }
    return prices;
}

const Pass &Search::pass(const Prices &prices) {
    passes_.push_back(messages_.pass(payable(prices), meter_));
    work_ += messages_.pass_work() + need_.take_work();
    last_ = passes_.size() - 1;
    offer_best(passes_.back());
    if (report_) note_bound(passes_.back());
    return passes_.back();
}

// The best labelling of a pass, if it can be as good as what was met.
void Search::offer_best(const Pass &pass) {
    if (pass.most == kNegativeInfinity) return;
    const double score = pass.most - paid(pass.prices, pass.tally);
    if (!(score + 4 * tolerance(pass) >= need_.at(value_, pass.tally))) return;
    work_ += subject_.labelling_work();
    std::vector<std::int64_t> labelling(subject_.length());
    const double exact = messages_.best(labelling.data());
    offer(labelling, {exact, pass.tally});
}

// Makes the messages of an earlier pass those of the last one.
void Search::go_back(Prices prices) {
    if (passes_[last_].prices == prices) return;
    if (!messages_.recall(prices)) {
        messages_.pass(prices, meter_);
        work_ += messages_.pass_work();
    }
    while (passes_[last_].prices != prices) last_ = (last_ + 1) % passes_.size();
}

double Search::tolerance(const Pass &pass) const {
    const double lost = need_.plain() ? 0 : std::abs(need_.truth) + need_.margin * (1 + need_.largest_loss());
    return pass.tolerance + 16 * kUnit * (std::abs(aim()) + lost);
}

// Once the work is spent, nothing is ruled out any more.
double Search::budget(const Pass &pass, const Box &box) const {
    if (spent()) return kInfinity;
    return pass.most - need_.least(aim(), pass.prices, box).value;
}

std::size_t Search::best_pass(const Box &box, double &budget) const {
    std::size_t best = 0;
    budget = kInfinity;
    for (std::size_t i = 0; i < passes_.size(); i++) {
        const double d = this->budget(passes_[i], box);
        if (d < budget) {
            budget = d;
            best = i;
        }
    }
    return best;
}

// ---- the fixed point -----------------------------------------------------------------------------------------------

// At the best prices, minus the slope of need at the tally that they lead to is the prices themselves: Broyden's
// method on plain passes.
void Search::fixed_point(const Prices &start) {
    Pass at = passes_.empty() ? pass(start) : passes_.back();
    auto target = need_.slope(value_, value_tally_);
    if (!target) return;
    Few<double> residual = plus(*target, at.prices.first(), -1);
    Few<Few<double>> inverse{};  // of the Jacobian, minus the identity at first
    for (Index p = 0; p < kMostStatistics; p++) inverse[p][p] = -1;
    const auto times = [&](const Few<double> &x) {
        Few<double> y;
        for (Index p = 0; p < kMostStatistics; p++) y[p] = inner(inverse[p], x);
        return y;
    };
    for (int round = 0, failed = 0; round < 12 && failed < 2 && may_pass(); round++) {
        Few<double> move = plus({}, times(residual), -1);
        const double most = 2 * norm(residual);
        if (norm(move) > most) move = plus({}, move, most / norm(move));
        const double length = norm(move);
        if (!(length > 0) || bend_ * length * length < 0.25 * good_) return;
        const double before = value_;
        const Pass next = pass(plus(at.prices.first(), move));
        const double moved = distance(next.tally, at.tally);
        if (moved > 0) bend_ = std::clamp(moved / length, 0.02 * wide_, 0.5 * wide_);
        target = need_.slope(value_, next.tally);
        if (!target || moved == 0) return;
        const Few<double> after = plus(*target, next.prices.first(), -1), change = plus(after, residual, -1);
        const Few<double> guess = times(change);
        Few<double> left{};
        for (Index p = 0; p < kMostStatistics; p++)
            for (Index q = 0; q < kMostStatistics; q++) left[q] += move[p] * inverse[p][q];
        const double scale = inner(left, change);
        if (std::abs(scale) > 1e-9 * length * length)
            for (Index p = 0; p < kMostStatistics; p++)
                inverse[p] = plus(inverse[p], left, (move[p] - guess[p]) / scale);
        at = next;
        residual = after;
        failed += !(value_ > before);
    }
}

// ---- boxes ---------------------------------------------------------------------------------------------------------

// Whether a pass surely does not prove that: the tally of the box that is nearest to its own may reach the value. That
// is most often so, and quick to see.
bool Search::surely_alive(const Pass &pass, const Box &box) const {
    if (need_.plain() || pass.most == kNegativeInfinity) return false;
    Tally near = pass.tally;
    for (Index p = 0; p < statistics_; p++) near[p] = std::clamp(near[p], box.low[p], box.high[p]);
    const double need = need_.at(aim(), near);
    return std::isfinite(need) && pass.most - (need + paid(pass.prices, near)) >= -2 * tolerance(pass);
}

// Whether one of the passes, from a given one on, proves that no tally of a box reaches the value.
bool Search::dead(const Box &box, std::size_t from) const {
    for (std::size_t i = passes_.size(); i-- > from;)
        if (!surely_alive(passes_[i], box) && budget(passes_[i], box) < -2 * tolerance(passes_[i])) return true;
    return false;
}

// No labelling with a tally of the box scores more.
double Search::highest_score(const Pass &pass, const Box &box) const {
    double least = 0;
    for (Index p = 0; p < statistics_; p++) {
        const auto low = static_cast<double>(box.low[p]), high = static_cast<double>(box.high[p]);
        least += std::min(pass.prices[p] * low, pass.prices[p] * high);
    }
    return pass.most - least;
}

// Whether one of the passes proves that no labelling has a tally of the box: it would score less than any can.
bool Search::unreachable(const Box &box) const {
    return std::ranges::any_of(
        passes_, [&](const Pass &one) { return highest_score(one, box) < -subject_.magnitude() - 2 * tolerance(one); });
}

// From the tally of the box that the prices charge least to another: 0 for statistics that are in the box throughout.
Prices Search::outside(const Box &box, const Prices &prices, const Tally &tally) const {
    Prices gap(statistics_);
    for (Index p = 0; p < statistics_; p++) {
        const auto within = [&](const Pass &one) { return box.low[p] <= one.tally[p] && one.tally[p] <= box.high[p]; };
        if (!std::ranges::all_of(passes_, within))
            gap[p] = static_cast<double>(tally[p] - (prices[p] > 0 ? box.low[p] : box.high[p]));
    }
    return gap;
}

// If nothing allowed has been met yet, looks for prices so large that scores hardly matter, along the shortest way from
// the tallies that were met to the box. They lead to tallies that are nearer, or prove that none is in the box.
bool Search::separate(const Box &box) {
    const double size = subject_.magnitude() + scale_ + 8 * tolerance(passes_.front());
    for (int round = 0; round < 24 && value_ == kNegativeInfinity && may_pass(); round++) {
        if (unreachable(box)) return false;
        bundle_.begin(statistics_);
        for (const Pass &one : passes_) bundle_.add(0, outside(box, one.prices, one.tally));
        const auto way = bundle_.step(1);
        const double length = std::inner_product(way.begin(), way.end(), way.begin(), 0.0);
        if (!(length > 1e-9)) return true;
        Prices prices(statistics_);
        for (Index p = 0; p < statistics_; p++) prices[p] = std::ldexp(size, 2 + round) / length * way[p];
        pass(prices);
    }
    return !(value_ == kNegativeInfinity && unreachable(box));
}

// Cuts off slices that are dead; false where nothing is left.
bool Search::shrink(Box &box) {
    if (value_ == kNegativeInfinity) return true;
    std::size_t from = value_ == shrunk_value_ ? shrunk_ : 0;
    shrunk_ = passes_.size();
    shrunk_value_ = value_;
    if (dead(box, from)) return false;
    for (bool changed = true; changed; from = 0) {  // on a box that is much smaller, earlier passes prove more
        changed = false;
        for (Index p = 0; p < statistics_; p++)
            for (const bool above : {false, true})
                for (Index step = box.extent(p) / 2; step > 0 && !spent();) {
                    Box slice = box;
                    if (above) slice.low[p] = box.high[p] - step + 1;
                    else slice.high[p] = box.low[p] + step - 1;
                    if (!dead(slice, from)) {
                        step /= 2;
                        continue;
                    }
                    (above ? box.high[p] : box.low[p]) += above ? -step : step;
                    if (box.low[p] > box.high[p]) return false;
                    changed |= 4 * step >= box.extent(p);
                    step = std::min(step, box.extent(p) / 2);
                }
    }
    return true;
}

// Prices a little to each side give bounds that cut the box where it reaches far beyond the tally; on a smaller box
// need is more nearly linear, and the budget smaller. False where nothing is left.
bool Search::bracket(Box &box) {
    double d, before = kInfinity;
    std::vector<std::array<double, 2>> bend(statistics_, {bend_, bend_});
    std::size_t at = best_pass(box, d);
    messages_.hold(passes_[at].prices);
    for (int round = 0; round < 6 && d > good_ && d < 0.7 * before && may_pass(); round++) {
        before = d;
        for (Index p = 0; p < statistics_; p++)
            for (int side = 0; side < 2 && d > good_ && may_pass(); side++) {
                const Pass from = passes_[at];
                double &b = bend[p][side];
                const double far = static_cast<double>(side ? box.high[p] - from.tally[p] : from.tally[p] - box.low[p]);
                const double reach = std::sqrt(2 * d) * std::sqrt(b), move = std::sqrt(2 * d) / std::sqrt(b);
                if (far <= 1.3 * reach + 1) continue;
                Prices prices = from.prices;
                prices[p] += side ? move : -move;
                const Pass next = pass(prices);
                const double moved = static_cast<double>(std::abs(next.tally[p] - from.tally[p])) / move;
                b = std::clamp(std::max(moved, b / 4), 0.002 * wide_, wide_);
                if (!shrink(box)) return false;
                at = best_pass(box, d);
                messages_.hold(passes_[at].prices);
            }
    }
    return !(d < -2 * tolerance(passes_[at]));
}

}  // namespace tallytree::bounds
