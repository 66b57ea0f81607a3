#include "bounds/need.h"

namespace tallytree::bounds {

namespace {

constexpr double kFewTallies = 16;

template <class Use>
void each_tally(const FewBox &box, Use use) {
    Few<Index> at = box.low;
    for (at[0] = box.low[0]; at[0] <= box.high[0]; at[0]++)
        for (at[1] = box.low[1]; at[1] <= box.high[1]; at[1]++)
            for (at[2] = box.low[2]; at[2] <= box.high[2]; at[2]++) use(at);
}

}  // namespace

double Linear::least(const FewBox &box) const {
    double sum = constant;
    for (Index p = 0; p < kMostStatistics; p++)
        sum += slope[p] * static_cast<double>(slope[p] > 0 ? box.low[p] : box.high[p]);
    return sum;
}

// ---- quotients -----------------------------------------------------------------------------------------------------

namespace {

struct Quotient {
    double scale;
    const Linear &n, &d;
    const Few<double> &prices;

    double at(const Few<Index> &l) const { return scale * n.at(l) / d.at(l) + paid(prices, l); }

    // Along statistic p it bends by the sign of -scale * d_p * (n_p * d(l) - d_p * n(l)), in which l_p cancels out:
    // linear in the others. Whether it bends down on a whole box.
    bool concave(Index p, const FewBox &box) const {
        Linear bend;
        const double factor = scale * d.slope[p];
        bend.constant = factor * (n.slope[p] * d.constant - d.slope[p] * n.constant);
        for (Index q = 0; q < kMostStatistics; q++)
            if (q != p) bend.slope[q] = factor * (n.slope[p] * d.slope[q] - d.slope[p] * n.slope[q]);
        return bend.least(box) >= 0;
    }

    // Along the only statistic that is left: at an end, or where the slope is 0.
    void along(Index p, const FewBox &box, FewLeast &best, bool whole) const {
        Few<Index> l = box.low;
        for (const Index end : {box.low[p], box.high[p]}) {
            l[p] = end;
            best.offer(at(l), l);
        }
        l[p] = 0;
        const double gradient = scale * (n.slope[p] * d.at(l) - d.slope[p] * n.at(l));
        // slope: gradient / d(l)^2 + price = 0
        const double square = -gradient / prices[p];
        if (!(square > 0) || d.slope[p] == 0) return;
        const double middle = (std::sqrt(square) - d.at(l)) / d.slope[p];
        if (!(middle > static_cast<double>(box.low[p]) && middle < static_cast<double>(box.high[p]))) return;
        for (const double x : {std::floor(middle), std::ceil(middle)}) {
            l[p] = static_cast<Index>(x);
            if (box.holds(l)) best.offer(at(l), l);
        }
        if (whole) return;
        l[p] = 0;  // between two tallies it may be less; a lower bound has to say so
        const double most = d.at(l) + d.slope[p] * middle;
        const double value = scale * (n.at(l) + n.slope[p] * middle) / most + paid(prices, l) + prices[p] * middle;
        l[p] = std::clamp(static_cast<Index>(std::llround(middle)), box.low[p], box.high[p]);
        best.offer(value, l);
    }

    // Where it bends down along a statistic, the least is at one of the two ends of it. Where it does so along none,
    // it has no least inside a box of two statistics or more (its second derivative has both signs), but then the
    // least on the edges is one of numbers between tallies, too.
    void search(const FewBox &box, FewLeast &best, bool whole) const {
        Index free = 0, last = 0, down = -1;
        for (Index p = 0; p < kMostStatistics; p++)
            if (box.low[p] < box.high[p]) {
                free++;
                last = p;
                if (down < 0 && concave(p, box)) down = p;
            }
        if (free == 0) return best.offer(at(box.low), box.low);
        if (free == 1) return along(last, box, best, whole);
        if (down < 0 && whole && box.tallies() <= kFewTallies)
            return each_tally(box, [&](const Few<Index> &l) { best.offer(at(l), l); });
        for (Index p = 0; p < kMostStatistics; p++) {
            if (box.low[p] == box.high[p] || (down >= 0 && p != down)) continue;
            for (const Index end : {box.low[p], box.high[p]}) {
                FewBox side = box;
                side.low[p] = side.high[p] = end;
                search(side, best, whole && down >= 0);
            }
        }
    }
};

}  // namespace

FewLeast least_quotient(double scale, const Linear &n, const Linear &d, const Few<double> &prices, const FewBox &box) {
    FewLeast best;
    Quotient{scale, n, d, prices}.search(box, best, true);
    return best;
}

// ---- need ----------------------------------------------------------------------------------------------------------

Index Need::place(const Few<Index> &tally) const {
    Index place = 0;
    for (Index p = 0; p < kMostStatistics; p++) place = place * box.extent(p) + tally[p] - box.low[p];
    return place;
}

double Need::loss(const Few<Index> &tally) const {
    if (!losses.empty()) return losses[place(tally)];
    return std::max(numerator.at(tally) / denominator.at(tally), 0.0);
}

bool Need::prepare() {
    lossless_ = 0;
    if (box.empty()) return false;
    if (plain()) return true;
    if (box.low.more() > 0) return false;
    if (!losses.empty()) {
        if (static_cast<double>(losses.size()) != box.tallies()) return false;
        bool fine = true;
        each_tally(FewBox(box), [&](const Few<Index> &tally) {
            const double x = losses[place(tally)];
            if (std::isnan(x)) return;
            largest_loss_ = std::max(largest_loss_, std::abs(x));
            if (x <= 0 && lossless_++ == 0) corner_ = tally;
            fine &= x >= 0 || scaling != Scaling::Slack;
        });
        lossless_ = std::min<Index>(lossless_, 2);
        return fine && !std::isinf(largest_loss_);
    }
    const FewBox all(box);
    if (!(denominator.least(all) > 0)) return false;
    Linear less{-numerator.constant, {}};
    bool unique = true;
    for (Index p = 0; p < kMostStatistics; p++) {
        less.slope[p] = -numerator.slope[p];
        corner_[p] = numerator.slope[p] > 0 ? box.low[p] : box.high[p];
        unique &= numerator.slope[p] != 0 || box.low[p] == box.high[p];
    }
    const double smallest = numerator.least(all), most = -less.least(all);
    if (smallest < 0) return false;
    largest_loss_ = most / denominator.least(all);
    lossless_ = smallest > 0 ? 0 : unique ? 1 : 2;
    return true;
}

double Need::value(double score, const Tally &tally) const {
    if (!box.holds(tally)) return kNegativeInfinity;
    if (scaling == Scaling::None)
        return losses.empty() || !std::isnan(losses[place(tally.first())]) ? std::min(score, top) : kNegativeInfinity;
    const double x = loss(tally.first());
    if (std::isnan(x)) return kNegativeInfinity;
    return std::min(top, scaling == Scaling::Slack ? x * (margin + (score - truth)) : margin * x + (score - truth));
}

double Need::at(double value, const Tally &tally) const {
    if (!box.holds(tally)) return kInfinity;
    const double x = scaling == Scaling::None && losses.empty() ? 0 : loss(tally.first());
    if (std::isnan(x)) return kInfinity;
    if (scaling == Scaling::None) return value;
    if (scaling == Scaling::Margin) return value - margin * x + truth;
    if (x <= 0) return value > 0 ? kInfinity : kNegativeInfinity;
    return value / x - margin + truth;
}

std::vector<FewBox> Need::with_loss(const FewBox &part) const {
    if (lossless_ == 0 || !losses.empty()) return {part};
    for (Index p = 0; p < kMostStatistics; p++)
        if (numerator.slope[p] != 0 && (corner_[p] < part.low[p] || corner_[p] > part.high[p])) return {part};
    std::vector<FewBox> pieces;
    FewBox rest = part;
    for (Index p = 0; p < kMostStatistics; p++) {
        if (numerator.slope[p] == 0) continue;
        FewBox piece = rest;
        if (corner_[p] == rest.low[p]) piece.low[p]++;
        else piece.high[p]--;
        if (piece.tallies() > 0) pieces.push_back(piece);
        rest.low[p] = rest.high[p] = corner_[p];
    }
    return pieces;
}

FewLeast Need::least_table(double value, const Few<double> &prices, const FewBox &part) const {
    constexpr double kTally = 2, kDivided = 10;
    work_ += (scaling == Scaling::Slack ? kDivided : kTally) * static_cast<double>(part.tallies());
    FewLeast best;
    Few<Index> l = part.low;
    for (l[0] = part.low[0]; l[0] <= part.high[0]; l[0]++)
        for (l[1] = part.low[1]; l[1] <= part.high[1]; l[1]++) {
            l[2] = part.low[2];
            const double *row = losses.data() + place(l) - part.low[2];
            const double base = prices[0] * static_cast<double>(l[0]) + prices[1] * static_cast<double>(l[1]);
            for (l[2] = part.low[2]; l[2] <= part.high[2]; l[2]++) {
                const double x = row[l[2]];
                if (std::isnan(x) || (scaling == Scaling::Slack && x <= 0)) continue;
                const double need = scaling == Scaling::None     ? value
                                    : scaling == Scaling::Margin ? value - margin * x + truth
                                                                 : value / x - margin + truth;
                best.offer(need + base + prices[2] * static_cast<double>(l[2]), l);
            }
        }
    return best;
}

Least Need::least(double value, const Prices &prices, const Box &part) const {
    if (!plain()) {
        const FewLeast found = least_of_few(value, prices.first(), FewBox(part));
        return {found.value, found.tally};
    }
    constexpr double kPlain = 12;
    work_ += kPlain;
    Least best{0, part.high};
    Tally &l = best.tally;
    each_statistic(std::min(prices.more(), l.more()), [&](Index p) { l[p] = prices[p] > 0 ? part.low[p] : l[p]; });
    best.value = value + paid(prices, l);
    return best;
}

FewLeast Need::least_of_few(double value, const Few<double> &prices, const FewBox &part) const {
    constexpr double kQuotient = 60;
    if (!losses.empty()) return least_table(value, prices, part);
    work_ += kQuotient;
    FewLeast best;
    if (scaling == Scaling::Margin) {
        best = least_quotient(-margin, numerator, denominator, prices, part);
        best.value += value + truth;
    } else {
        for (const FewBox &piece : with_loss(part)) {
            const FewLeast one = least_quotient(value, denominator, numerator, prices, piece);
            best.offer(one.value, one.tally);
        }
        best.value += truth - margin;
    }
    return best;
}

// Under slack scaling: what a score of `most` - λ·l would be worth, and a little more than rounding may take from it.
double Need::highest_value(double most, const Few<double> &prices, const FewBox &part) const {
    constexpr double kTally = 2, kRounded = 16 * kUnit;
    work_ += kTally * static_cast<double>(part.tallies());
    double best = kNegativeInfinity;
    each_tally(part, [&](const Few<Index> &l) {
        const double x = losses[place(l)];
        if (std::isnan(x) || x <= 0) return;
        double size = std::abs(most) + std::abs(margin) + std::abs(truth);
        for (Index p = 0; p < kMostStatistics; p++) size += std::abs(prices[p] * static_cast<double>(l[p]));
        best = std::max(best, x * (most - paid(prices, l) + margin - truth + kRounded * size));
    });
    return best;
}

double Need::ceiling(double most, const Prices &prices, const Box &part) const {
    const double none = scaling == Scaling::Slack && lossless_ ? 0.0 : kNegativeInfinity;
    if (scaling != Scaling::Slack) {
        const Least one = least(0.0, prices, part);
        return one.value == kInfinity ? none : std::min(most - one.value, top);
    }
    if (!losses.empty()) return std::min(std::max(highest_value(most, prices.first(), FewBox(part)), none), top);
    double low = -1, high = 1;  // need rises with the value, so that the largest one is found by halving
    const auto reached = [&](double value) { return most >= least(value, prices, part).value; };
    while (high < 1e300 && reached(high)) high *= 4;
    while (low > -1e300 && !reached(low)) low *= 4;
    for (int i = 0; i < 60; i++) {
        const double middle = low + (high - low) / 2;
        (reached(middle) ? low : high) = middle;
    }
    return std::min(std::max(high, none), top);
}

std::optional<Few<double>> Need::slope(double value, const Tally &tally) const {
    Few<double> found{};
    if (scaling == Scaling::None || !box.holds(tally)) return {};
    if (losses.empty()) {
        const double n = numerator.at(tally.first()), d = denominator.at(tally.first());
        for (Index p = 0; p < kMostStatistics; p++) {
            const double bend = numerator.slope[p] * d - denominator.slope[p] * n;
            // of margin * n / d, or of value * d / n
            found[p] = scaling == Scaling::Margin ? margin * bend / (d * d) : value * bend / std::max(n * n, 1e-300);
        }
        if (scaling == Scaling::Slack && !(n > 0)) return {};
        return found;
    }
    for (Index p = 0; p < kMostStatistics; p++) {
        Tally below = tally, above = tally;
        if (tally[p] > box.low[p]) below[p]--;
        if (tally[p] < box.high[p]) above[p]++;
        const double low = at(value, below), high = at(value, above);
        if (below == above) continue;
        if (!std::isfinite(low) || !std::isfinite(high)) return {};
        found[p] = -(high - low) / static_cast<double>(above[p] - below[p]);
    }
    return found;
}

}  // namespace tallytree::bounds
