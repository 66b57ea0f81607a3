// Prices and shares that make budgets small.
#include <algorithm>
#include <cmath>

#include "sequences/search.h"

namespace tallytree::sequences {

// Run a pass unless it is known, and offer what it finds. A price above all scores forbids, and a larger one forbids no
// more.
const Pass &LengthSearch::pass(Prices prices, std::size_t split) {
    for (double &price : prices)
        if (price != -kNegativeInfinity) price = std::min(price, most_price_);
    for (std::size_t i = 0; i < passes_.size(); i++)
        if (passes_[i].prices == prices && (passes_[i].split == split || prices == Prices{})) {
            if (messages_at_ != i) messages_.run(prices, this->split(split));
            messages_at_ = i;
            return passes_[i];
        }
    meter_.spend(messages_.operations());
    Pass made;
    made.prices = prices;
    made.split = split;
    made.most = messages_.run(prices, this->split(split));
    if (made.most != kNegativeInfinity) made.labelling = messages_.best();
    messages_at_ = passes_.size();
    passes_.push_back(std::move(made));
    const Pass &found = passes_.back();
    charged_.push_back(found.labelling.empty() ? Prices{} : charged(found, split));
    if (!found.labelling.empty()) offer(found.labelling);
    outcome_.passes.push_back({sentences_.length, first_split_ + split, prices, found.most, {}, 0, 0});
    return found;
}

// How often the labelling of a pass is charged, by tallies: the slope of the most in the prices.
Prices LengthSearch::charged(const Pass &pass, std::size_t split) const {
    Prices sum{};
    histories_.follow(words_of(sentences_, pass.labelling), [&](Index t, auto units) {
        for (std::int32_t u : units) sum[histories_.units()[u].tally] += this->split(split).at(t, u);
    });
    return sum;
}

// The largest regret, at a pass's prices, of a sentence that beats the value with tallies in a box.
double LengthSearch::budget(const Pass &pass, const Box &box, Tallies *at) const {
    return pass.most - need_.least(best_.value, pass.prices, box, chain_, at);
}

// What rounding can do to a budget: charges are sums like scores.
double LengthSearch::tolerance(const Pass &pass) const {
    double paid = 0;
    for (Index n = 0; n < measure_.tallies(); n++)
        if (pass.prices[n] != -kNegativeInfinity) paid += pass.prices[n] * static_cast<double>(whole_.high[n]);
    return unit_ * (sizes_ + paid);
}

bool LengthSearch::dead(const Box &box) const {
    for (const Pass &pass : passes_)
        if (budget(pass, box) < -tolerance(pass)) return true;
    return false;
}

// Cut off the outer slices that a pass rules out; false where nothing is left.
bool LengthSearch::shrink(Box &box) const {
    if (!tighten(box, measure_.tallies(), chain_) || dead(box)) return false;
    for (bool changed = true; changed;) {
        changed = false;
        for (Index n = 0; n < measure_.tallies(); n++)
            for (const bool upper : {false, true}) {
                std::int32_t step = std::max(1, (box.high[n] - box.low[n]) / 2);
                while (step > 0 && box.low[n] < box.high[n]) {
                    Box slice = box;
                    (upper ? slice.low[n] : slice.high[n]) = upper ? box.high[n] - step + 1 : box.low[n] + step - 1;
                    const bool cut = dead(slice);
                    if (cut) (upper ? box.high[n] : box.low[n]) += upper ? -step : step;
                    changed |= cut;
                    step = cut ? std::min(step, (box.high[n] - box.low[n] + 1) / 2) : step / 2;
                }
            }
    }
    return tighten(box, measure_.tallies(), chain_);
}

std::size_t LengthSearch::best_pass(const Box &box, double &least) const {
    std::size_t best = 0;
    least = -kNegativeInfinity;
    for (std::size_t i = 0; i < passes_.size(); i++)
        if (const double x = budget(passes_[i], box); x < least) {
            least = x;
            best = i;
        }
    return best;
}

// Prices at which the loss is level around the best sentence, as long as that finds a better one.
void LengthSearch::fixed_point() {
    for (int i = 0; i < 6; i++) {
        const double before = best_value_;
        pass(need_.level(std::max(best_.value, 0.0), best_tallies_), splits() - 1);
        if (!(best_value_ > before)) return;
    }
}

// The prices that minimise the budget's linear bounds, with a penalty for being far from the center.
Prices LengthSearch::proximal(const Box &box, const Pass &center, double step) {
    const Index tallies = measure_.tallies();
    bundle_.begin(tallies);
    bool any = false;
    for (std::size_t i = 0; i < passes_.size(); i++) {
        const Pass &one = passes_[i];
        const bool free = one.prices == Prices{};  // whatever the shares are
        if ((one.split + 1 != splits() && !free) || one.most == kNegativeInfinity) continue;
        const Prices paid = free ? charged(one, splits() - 1) : charged_[i];
        Tallies least{};
        need_.least(best_.value, one.prices, box, chain_, &least);
        for (const Tallies &at : {least, box.low, box.high}) {
            double value = one.most - need_.at(best_.value, at);
            Prices slope{};
            for (Index n = 0; n < tallies; n++) {
                slope[n] = at[n] - paid[n];
                value += slope[n] * center.prices[n] + paid[n] * one.prices[n];
            }
            if (!std::isfinite(value)) continue;
            bundle_.add(value, slope);
            any = true;
        }
    }
    if (!any) return center.prices;
    for (Index n = 0; n < tallies; n++) bundle_.limit(n, -1, center.prices[n]);
    const std::span<const double> moved = bundle_.step(step);
    Prices prices{};
    for (Index n = 0; n < tallies; n++) prices[n] = std::max(0.0, center.prices[n] + moved[n]);
    return prices;
}

// Bundle steps from the best pass for a box.
std::size_t LengthSearch::improve(const Box &box, double &least, int passes) {
    const std::size_t split = splits() - 1;
    std::size_t best = best_pass(box, least);
    double scale = 1e-9;
    for (Index n = 0; n < measure_.tallies(); n++) scale += std::pow(passes_[best].prices[n], 2);
    double step = std::max(0.02, std::sqrt(scale) / (1 + std::sqrt(static_cast<double>(sentences_.length))));
    int failed = 0;
    for (int i = 0; i < passes && failed < 4 && least > tolerance(passes_[best]); i++) {
        const Prices prices = proximal(box, passes_[best], step);
        const double before = least;
        const std::size_t known = passes_.size();
        pass(prices, split);
        best = best_pass(box, least);
        const bool fresh = passes_.size() > known;
        step *= least < 0.95 * before ? 1.5 : 0.5;
        failed = least < 0.97 * before ? 0 : failed + 1;
        if (!fresh) break;
    }
    return best;
}

}  // namespace tallytree::sequences
