// The least budget, or the least bound, that prices give: one at a time where two tangents meet, or several by a
// bundle.
#include "bounds/bundle.h"
#include "bounds/search.h"

namespace tallytree::bounds {

namespace {

// Where the slope would be 0, as a share of the way. If one side is nearer by far, a little beyond that: the next pass
// is then on the other side, and near as well.
double level(double below, double above) {
    if (above < 0.25 * below) below /= 2;
    else if (below < 0.25 * above) above /= 2;
    return below / (below + above);
}

}  // namespace

// Whether a price above 0 (side = 1), or below it (side = -1), can be of use. It is not where nothing lies beyond that
// end of the box: a price of the other side would only add to the budget.
bool Search::useful(Index p, int side, const Box &box) const {
    if (!need_.plain()) return true;
    const Box &all = subject_.range();
    return side > 0 ? box.low[p] > all.low[p] : box.high[p] < all.high[p];
}

// The budget is convex in the prices; its slope at a pass is the tally there less the one that needs least. At a price
// of 0, all tallies of a range need the same.
Search::Cut Search::cut(const Pass &pass, const Box &box) const {
    const Least least = need_.least(aim(), pass.prices, box);
    Cut cut{pass.most - least.value, Prices(statistics_)};
    for (Index p = 0; p < statistics_; p++) {
        Index end = least.tally[p];
        if (need_.plain() && pass.prices[p] == 0) {
            const bool up = useful(p, 1, box), down = useful(p, -1, box);
            end = up && !down ? box.low[p] : down && !up ? box.high[p] : pass.tally[p];
            end = std::clamp(end, box.low[p], box.high[p]);
        }
        cut.slope[p] = static_cast<double>(pass.tally[p] - end);
    }
    return cut;
}

bool Search::descend(Box &box) {
    if (need_.least(aim(), {}, box).value == kInfinity) return false;  // nothing in it is allowed
    if (passes_.empty()) pass(Prices(statistics_));
    const Aim aim{good_, 0.1 * good_, statistics_ == 1 ? 60 : 40, true};
    return (statistics_ == 1 ? chords(box, aim) : bundle(box, aim)) && separate(box);
}

// The least bound on the scores of all tallies of the box.
void Search::tighten() {
    Box box = need_.box;
    const double exact = 4 * tolerance(passes_.front());
    const Aim aim{kNegativeInfinity, std::max(exact, stops_.gap / 8), std::numeric_limits<int>::max(), false};
    statistics_ == 1 ? chords(box, aim) : bundle(box, aim);
    if (value_ == kNegativeInfinity) separate(box);
}

// How far a pass is from where its slope is 0, on a scale on which prices lead evenly from one end of the statistic to
// the other: the logarithm of the odds. Near its ends, tallies themselves hardly change with the price.
double Search::odds(const Pass &pass, double slope) const {
    const double low = static_cast<double>(subject_.range().low[0]) - 0.5,
                 high = static_cast<double>(subject_.range().high[0]) + 0.5;
    const auto tally = static_cast<double>(pass.tally[0]);
    const auto of = [&](double at) { return std::log((at - low) / (high - at)); };
    return of(tally) - of(std::clamp(tally - slope, low + 0.5, high - 0.5));
}

// Prices between a pass on either side of the least value; none where they are the best. If the last pass has halved
// the least slope, slopes change evenly, and the next price is where the slope would be 0. Otherwise it is where the
// tangents meet: that is the least value if it is at a corner, but in the middle if slopes change evenly.
std::optional<double> Search::crossing(const Box &box, double precision, Bracket &known) const {
    std::optional<Cut> low, high;
    double low_at = kNegativeInfinity, high_at = kInfinity, best = kInfinity, low_odds = 0, high_odds = 0;
    for (const Pass &one : passes_) {
        const Cut at = cut(one, box);
        const double price = one.prices[0], slope = at.slope[0];
        best = std::min(best, at.value);
        if (slope == 0) return {};
        const double ahead = odds(one, slope);
        if (slope < 0 && price >= low_at) low = at, low_at = price, low_odds = -ahead;
        if (slope > 0 && price <= high_at) high = at, high_at = price, high_odds = ahead;
    }
    const double below = low ? -low->slope[0] : kInfinity, above = high ? high->slope[0] : kInfinity;
    const bool even = std::min(below, above) <= 0.5 * known.nearest;
    known.nearest = std::min(below, above);
    if (low && high) {
        const double next = (low->value - high->value + high->slope[0] * high_at - low->slope[0] * low_at) /
                            (high->slope[0] - low->slope[0]);
        const double meet = low->value + low->slope[0] * (next - low_at);
        if (best - meet < precision || !(next > low_at && next < high_at)) return {};
        const double flat = low_at + (high_at - low_at) * level(low_odds, high_odds);
        return even && flat > low_at && flat < high_at ? flat : next;
    }
    const double from = low ? low_at : high_at, left = low ? low_odds : high_odds;
    if ((from == 0 && !useful(0, low ? 1 : -1, box)) || known.step > 1e9 * scale_) return {};
    // a little beyond where the last two passes would lead, if they say more than how far the last step was
    const double gained = known.left - left;
    if (std::isfinite(gained) && gained > 0)
        known.step = std::clamp(1.1 * left / gained * known.step, 0.5 * known.step, 8 * known.step);
    else if (known.left < kInfinity) known.step *= 2;
    known.left = left;
    double next = low ? from + known.step : from - known.step;
    if (from * next < 0 && !useful(0, low ? 1 : -1, box)) next = 0;
    return next;
}

bool Search::chords(Box &box, const Aim &aim) {
    Bracket known{.step = scale_};
    for (int round = 0; round < aim.rounds && may_pass(); round++) {
        const auto next = crossing(box, aim.precision, known);
        if (!next || (value_ == kNegativeInfinity && unreachable(box))) break;
        Prices prices;
        prices[0] = *next;
        pass(prices);
        if (aim.cuts && !shrink(box)) return false;
    }
    return !aim.cuts || shrink(box);
}

// Fills the bundle with what all passes say about prices near those of one of them.
void Search::fill_bundle(const Box &box, const Prices &centre) {
    bundle_.begin(statistics_);
    for (const Pass &one : passes_) {
        Cut c = cut(one, box);
        for (Index p = 0; p < statistics_; p++) c.value += c.slope[p] * (centre[p] - one.prices[p]);
        if (std::isfinite(c.value)) bundle_.add(c.value, c.slope);
    }
    for (Index p = 0; p < statistics_; p++)
        for (const int side : {-1, 1})
            if (!useful(p, side, box) && side * centre[p] <= 0) bundle_.limit(p, side, -side * centre[p]);
}

// Steps to the least of the cuts so far, kept near the best prices.
bool Search::bundle(Box &box, const Aim &aim) {
    double tau = 4.0 * scale_ / span_;
    for (int round = 0; round < aim.rounds && may_pass();) {
        double best;
        const std::size_t at = best_pass(box, best);
        const bool known = value_ != kNegativeInfinity;  // otherwise the budget is that of any value: a bound
        if ((known && best <= aim.good) || (!known && unreachable(box))) break;
        const Prices centre = passes_[at].prices;
        fill_bundle(box, centre);
        Prices there = centre;
        const auto move = bundle_.step(tau);
        for (Index p = 0; p < statistics_; p++) {
            there[p] += move[p];
            if (centre[p] * there[p] <= 0 && !useful(p, there[p] > 0 ? 1 : -1, box)) there[p] = 0;  // not nearly 0
        }
        const double model = bundle_.model();
        const bool met = std::ranges::any_of(passes_, [&](const Pass &one) { return one.prices == there; });
        if (met || best - model < std::max(known && aim.cuts ? 0.02 * best : 0.0, aim.precision)) {
            if (tau > 1e3 * scale_ / span_) break;
            tau *= 4;
            continue;
        }
        round++;
        const Pass next = pass(there);
        if (aim.cuts && !shrink(box)) return false;
        const double now = budget(next, box);
        if (now < best - 0.5 * (best - model)) tau *= 2;
        else if (now > best) tau *= 0.5;
    }
    return !aim.cuts || shrink(box);
}

}  // namespace tallytree::bounds
