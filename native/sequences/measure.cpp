#include "sequences/measure.h"

#include <algorithm>
#include <cmath>

namespace tallytree::sequences {
namespace {

constexpr int kTangents = 6;

}  // namespace

Measure Measure::geometric(Index orders, Index length, double factor) {
    Measure made;
    made.tallies_ = orders;
    made.factor_ = factor;
    for (Index n = 0; n < orders; n++) {
        auto &row = made.roots_.emplace_back();
        const Index most = std::max<Index>(length - n, 0);
        for (Index m = 0; m <= most; m++)
            row.push_back(most ? std::pow(static_cast<double>(m) / most, 1.0 / orders) : 0.0);
    }
    return made;
}

Measure Measure::linear(std::vector<double> weights, double constant) {
    Measure made;
    made.tallies_ = static_cast<Index>(weights.size());
    made.factor_ = constant;
    made.weights_ = std::move(weights);
    return made;
}

double Measure::operator()(const Tallies &tallies) const {
    double value = factor_;
    if (roots_.empty()) {
        for (Index n = 0; n < tallies_; n++) value += weights_[n] * tallies[n];
        return std::min(1.0, value);
    }
    for (Index n = 0; n < tallies_; n++) value *= roots_[n][tallies[n]];
    return value;
}

Prices Measure::slope(const Tallies &tallies) const {
    Prices slope{};
    if (roots_.empty()) {
        std::copy(weights_.begin(), weights_.end(), slope.begin());
        return slope;
    }
    Tallies near = tallies;
    for (Index n = 0; n < tallies_; n++)
        near[n] = std::clamp(tallies[n], 1, std::max(1, static_cast<std::int32_t>(roots_[n].size()) - 1));
    bool any = true;
    for (Index n = 0; n < tallies_; n++) any &= roots_[n].size() > 1;
    const double value = any ? (*this)(near) : 0;
    for (Index n = 0; n < tallies_; n++) slope[n] = value / (static_cast<double>(tallies_) * near[n]);
    return slope;
}

bool tighten(Box &box, Index tallies, bool chain) {
    for (Index n = tallies - 2; chain && n >= 0; n--) box.low[n] = std::max(box.low[n], box.low[n + 1]);
    for (Index n = 1; chain && n < tallies; n++) box.high[n] = std::min(box.high[n], box.high[n - 1]);
    for (Index n = 0; n < tallies; n++)
        if (box.low[n] > box.high[n]) return false;
    return true;
}

void Need::corners(const Box &box, bool chain, Index n, Tallies &m, const Prices &prices) const {
    if (n < 0) {
        double paid = 0;
        for (Index i = 0; i < measure_.tallies(); i++)
            if (m[i]) paid += prices[i] * m[i];
        corners_.push_back({measure_(m), paid, m});
        return;
    }
    // Equal neighbours lie at the largest lower end or at the smallest upper end of their group.
    const std::int32_t least = chain && n + 1 < measure_.tallies() ? m[n + 1] : box.low[n];
    std::int32_t tried[kMostTallies + 2] = {};
    Index count = 0;
    const auto attempt = [&](std::int32_t x) {
        if (x < box.low[n] || x > box.high[n] || x < least) return;
        for (Index i = 0; i < count; i++)
            if (tried[i] == x) return;
        tried[count++] = x;
        m[n] = x;
        corners(box, chain, n - 1, m, prices);
    };
    attempt(box.low[n]);
    attempt(box.high[n]);
    attempt(least);
    for (Index k = 0; chain && k < n; k++) attempt(box.low[k]);
}

// The least of value / (1 - q) - prices·m for a linear measure q. For each q, the tallies with the highest price per
// weight go first: along them the sum is convex, and its slope is 0 where 1 - q is the root of value·weight/price.
double Need::linear(double value, const Prices &prices, const Box &box, Tallies *at) const {
    const Index tallies = measure_.tallies();
    const std::vector<double> &weights = measure_.weights();
    std::array<Index, kMostTallies> order{};
    for (Index n = 0; n < tallies; n++) {
        Index k = n;  // by prices / weights, without dividing
        for (; k > 0 && prices[n] * weights[order[k - 1]] > prices[order[k - 1]] * weights[n]; k--)
            order[k] = order[k - 1];
        order[k] = n;
    }
    Tallies m = box.low;
    double paid = 0, q = measure_(m);
    for (Index n = 0; n < tallies; n++) paid += prices[n] * m[n];
    const auto worth = [&](Index n, double steps) {
        return value / std::max(1 - q - steps * measure_.weights()[n], 1e-6) - paid - steps * prices[n];
    };
    double least = worth(0, 0);
    for (Index k = 0; k < tallies; k++) {
        const Index n = order[k];
        const double room = box.high[n] - m[n];
        double steps = room;
        if (weights[n] > 0)
            steps = prices[n] > 0 ? (1 - std::sqrt(value * weights[n] / prices[n]) - q) / weights[n] : 0;
        steps = std::clamp(steps, 0.0, room);
        const bool last = steps < room;
        if (tallies == 1) {  // the best whole number is next to it
            const double below = std::floor(steps), above = std::min(below + 1, room);
            steps = worth(n, above) < worth(n, below) ? above : below;
        }
        least = std::min(least, worth(n, steps));
        m[n] += static_cast<std::int32_t>(std::lround(steps));
        if (last) break;
        q += room * weights[n];
        paid += room * prices[n];
    }
    if (at) *at = m;
    return least - objective_.margin + objective_.truth;
}

double Need::least(double value, const Prices &prices, Box box, bool chain, Tallies *at) const {
    if (!tighten(box, measure_.tallies(), chain)) return std::numeric_limits<double>::infinity();
    const bool slack = objective_.scaling == Scaling::Slack;
    if (slack && !measure_.geometric()) return linear(std::max(value, 0.0), prices, box, at);
    corners_.clear();
    Tallies m{};
    corners(box, chain, measure_.tallies() - 1, m, prices);
    double best = kNegativeInfinity;
    const auto with_line = [&](double a, double b) {
        const Corner *lowest = nullptr;
        double least = std::numeric_limits<double>::infinity();
        for (const Corner &corner : corners_)
            if (const double x = a + b * corner.measure - corner.paid; !lowest || x < least) {
                least = x;
                lowest = &corner;
            }
        if (least > best) {
            best = least;
            if (at) *at = lowest->tallies;
        }
        return lowest->measure;
    };
    if (!slack) {
        with_line(value - objective_.margin, objective_.margin);
        return best;
    }
    value = std::max(value, 0.0);
    double low = 1, high = 0;
    for (const Corner &corner : corners_) {
        low = std::min(low, corner.measure);
        high = std::max(high, corner.measure);
    }
    // value / (1 - q) is convex in q for values from 0 on: it lies above each of its tangents. What a tangent bounds is
    // least at some corner, and one that touches nearer to the measure of that corner bounds more, unless another
    // corner is then the least: the best one is found by halving.
    double q = (low + high) / 2;
    for (int i = 0; i < kTangents; i++) {
        q = std::min(q, 1 - 1e-6);
        const double slope = value / ((1 - q) * (1 - q));
        const double there = with_line(value / (1 - q) - slope * q - objective_.margin + objective_.truth, slope);
        if (there == q) break;
        (there > q ? low : high) = q;
        q = there > low && there < high ? there : (low + high) / 2;
    }
    return best;
}

double Need::at(double value, const Tallies &tallies) const {
    const double loss = std::max(0.0, 1 - measure_(tallies));
    if (objective_.scaling == Scaling::Margin) return value - objective_.margin * loss;
    return std::max(value, 0.0) / std::max(loss, 1e-6) - objective_.margin + objective_.truth;
}

Prices Need::level(double value, const Tallies &tallies) const {
    Prices prices = measure_.slope(tallies);
    double factor = objective_.margin;
    if (objective_.scaling == Scaling::Slack) {
        const double loss = std::max(1 - measure_(tallies), 1e-3);
        factor = value / (loss * loss);
    }
    for (Index n = 0; n < measure_.tallies(); n++) prices[n] *= factor;
    return prices;
}

}  // namespace tallytree::sequences
