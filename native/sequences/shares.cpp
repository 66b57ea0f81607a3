// Shares that follow the sentences which escape their charges.
//
// The most at some prices is a convex function of the shares, with slope -price wherever the best sentence has a unit.
// Steps along it move charges to where a unit is used, away from where it is not; what a cap allows is shared out by
// moving to the nearest shares that add up to it.
#include <algorithm>

#include "sequences/alignment.h"
#include "sequences/search.h"

namespace tallytree::sequences {
namespace {

constexpr int kSteps = 120, kFirstSteps = 15, kStalled = 20, kSearches = 4;
constexpr std::size_t kUnknown = ~std::size_t{0};

// Take the same off all shares of a unit until they add up to the cap, within 0 to 1.
void fit(Split &split, std::int32_t unit, double cap) {
    const auto all = [&](auto visit) {
        for (std::size_t i = unit; i < split.share.size(); i += split.units) visit(split.share[i]);
    };
    const auto total = [&](double off) {
        double sum = 0;
        all([&](double share) { sum += std::clamp(share - off, 0.0, 1.0); });
        return sum;
    };
    double low = 0, high = 0;
    if (total(0) > cap) {
        all([&](double share) { high = std::max(high, share); });
        for (int i = 0; i < 30; i++) (total((low + high) / 2) > cap ? low : high) = (low + high) / 2;
    }
    all([&](double &share) { share = std::clamp(share - high, 0.0, 1.0); });
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
            if (unit.cap == kUncapped || !(prices[unit.tally] > 0) || split.row(t)[u] >= 1) continue;
            used.emplace_back(t, u);
            square += prices[unit.tally] * prices[unit.tally];
        }
    });
    std::vector<std::int32_t> touched;
    for (const auto &[t, u] : used) {
        split.row(t)[u] += gap * prices[histories_.units()[u].tally] / square;
        touched.push_back(u);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (std::int32_t u : touched) fit(split, u, static_cast<double>(histories_.units()[u].cap));
}

// A pass that is not kept.
double LengthSearch::tried(const Prices &prices, const Split &split, std::vector<std::int64_t> &labelling) {
    meter_.spend(messages_.operations());
    messages_at_ = kUnknown;
    const double most = messages_.run(prices, split);
    labelling = messages_.best();
    offer(labelling);
    return most;
}

// Steps along the slope. Returns the most at the best shares.
double LengthSearch::gram_shares(const Pass &center, const Box &box, Split &best) {
    Split split = best;
    std::vector<std::int64_t> labelling;
    double least = center.most, pace = 1.0;
    const double budget = this->budget(center, box);
    int since = 0;
    for (int i = 0; i < kSteps; i++) {
        const double most = tried(center.prices, split, labelling);
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
    return least;
}

// Sentences and alignments answer each other in turn: a sentence to the mean of all alignments so far, an alignment to
// the mean of late sentences. Returns the most at the best shares.
double LengthSearch::row_shares(const Pass &center, const Box &box, Split &best) {
    Split split = best;
    std::vector<std::int64_t> labelling;
    double least = center.most;
    const double enough = 2e-3 * budget(center, box);
    agreed_.resize(split.share.size(), 0.0);
    for (int since = 0, i = 0; since < kStalled && i < kFirstSteps << share_searches_; i++, row_steps_++) {
        const double most = tried(center.prices, split, labelling);
        since = most < least - enough ? 0 : since + 1;
        if (most < least) {
            least = most;
            best = split;
        }
        if (!(most - need_.least(best_.value, center.prices, box, chain_) > tolerance(center))) break;
        const double late = 1 / (row_steps_ / 4.0 + 2), part = 2 / (row_steps_ + 3.0);
        for (double &x : agreed_) x *= 1 - late;
        histories_.follow(words_of(sentences_, labelling), [&](Index t, auto units) {
            for (std::int32_t u : units) agreed_[t * split.units + u] += late;
        });
        for (double &x : split.share) x *= 1 - part;
        Index first = 0;  // the unit of the first word of the reference
        for (const auto &reference : problem_.references) {
            const Index size = static_cast<Index>(reference.size());
            for (const auto &[t, j] : heaviest({agreed_.data() + first, sentences_.length, size, split.units}))
                split.row(t)[first + j] = std::min(1.0, split.row(t)[first + j] + part);
            first += size;
        }
    }
    return least;
}

// Look for better shares, at the best prices for a box or where the loss is level; true where there are some.
bool LengthSearch::better_shares(const Box &box) {
    const bool rows = problem_.kind == Kind::RougeL;
    if ((!rows && !problem_.clip) || share_searches_++ >= kSearches) return false;
    double budget = 0;
    Pass center = passes_[best_pass(box, budget)];
    Split best = split(center.split ? center.split : splits() - 1);
    if (rows) {
        Tallies near{};
        for (Index n = 0; n < measure_.tallies(); n++) near[n] = std::clamp(best_tallies_[n], box.low[n], box.high[n]);
        center = pass(need_.level(std::max(best_.value, 0.0), near), splits() - 1);
        best = split(splits() - 1);
    }
    (rows ? row_shares(center, box, best) : gram_shares(center, box, best));
    add(std::move(best));
    pass(center.prices, splits() - 1);
    double now = 0;
    best_pass(box, now);
    return now < 0.98 * budget;
}

}  // namespace tallytree::sequences
