// Shares that follow the sentences which escape their charges.
//
// The most at some prices is a convex function of the shares, with slope -price wherever the best sentence has a unit.
// Steps along it move charges to where a unit is used, away from where it is not; what a cap allows is shared out by
// moving to the nearest shares that add up to it.
#include <algorithm>

#include "sequences/search.h"

namespace tallytree::sequences {
namespace {

constexpr int kSteps = 120, kSearches = 4;
constexpr std::size_t kUnknown = ~std::size_t{0};

// Take the same off all shares until they add up to the cap, within 0 to 1.
void fit(Split &split, std::int32_t unit, double cap) {
    const auto total = [&](double off) {
        double sum = 0;
        for (const auto &row : split.share) sum += std::clamp(row[unit] - off, 0.0, 1.0);
        return sum;
    };
    double low = 0, high = 0;
    if (total(0) > cap) {
        for (const auto &row : split.share) high = std::max(high, row[unit]);
        for (int i = 0; i < 30; i++) (total((low + high) / 2) > cap ? low : high) = (low + high) / 2;
    }
    for (auto &row : split.share) row[unit] = std::clamp(row[unit] - high, 0.0, 1.0);
}

}  // namespace

// One step towards the charges that a labelling should have had to pay; as long as would close the gap.
void LengthSearch::charge_more(Split &split, const std::vector<std::int64_t> &labelling, const Prices &prices,
                               double gap) const {
    double square = 0;
    std::vector<std::pair<Index, std::int32_t>> used;
    histories_.follow(words_of(sentences_, labelling), [&](Index t, auto units) {
        for (std::int32_t u : units) {
            const Unit &unit = histories_.units()[u];
            if (unit.cap == kUncapped || !(prices[unit.tally] > 0) || split.share[t][u] >= 1) continue;
            used.emplace_back(t, u);
            square += prices[unit.tally] * prices[unit.tally];
        }
    });
    std::vector<std::int32_t> touched;
    for (const auto &[t, u] : used) {
        split.share[t][u] += gap * prices[histories_.units()[u].tally] / square;
        touched.push_back(u);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (std::int32_t u : touched) fit(split, u, static_cast<double>(histories_.units()[u].cap));
}

// Look for better shares at the best prices for a box; true where there are some.
bool LengthSearch::better_shares(const Box &box) {
    if (problem_.kind == Kind::RougeL || !problem_.clip || share_searches_++ >= kSearches) return false;
    double budget = 0;
    const Pass center = passes_[best_pass(box, budget)];
    const std::size_t from = center.split ? center.split : splits_.size() - 1;
    Split split = splits_[from], best = split;
    double least = center.most, pace = 1.0;
    const double before = least;
    int since = 0;
    for (int i = 0; i < kSteps; i++) {
        meter_.spend(messages_.operations());
        const double most = messages_.run(center.prices, split);
        const std::vector<std::int64_t> labelling = messages_.best();
        offer(labelling);
        since = most < least - 1e-3 * budget ? 0 : since + 1;
        if (most < least) {
            least = most;
            best = split;
        }
        if (since > 10) {  // the steps are too long
            pace *= 0.5;
            since = 0;
            split = best;
        }
        const double gap = most - need_.least(best_.value, center.prices, box, chain_);
        if (!(gap > tolerance(center)) || pace < 0.05) break;
        charge_more(split, labelling, center.prices, 0.7 * pace * gap);
    }
    messages_at_ = kUnknown;
    if (!(before - least > 0.02 * budget)) return false;
    add(std::move(best));
    pass(center.prices, splits_.size() - 1);
    return true;
}

}  // namespace tallytree::sequences
