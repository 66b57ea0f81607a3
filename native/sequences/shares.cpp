// Shares that follow the sentences which escape their charges.
//
// The most at some prices is a convex function of the shares. Its least is a game: a sentence answers the shares by
// what is worth the most to it, and shares answer sentences by what charges them the most. Both answer the mean of what
// the other has played, and the mean of the shares approaches the best (fictitious play).
#include <algorithm>

#include "sequences/search.h"

namespace tallytree::sequences {
namespace {

constexpr int kFirstSteps = 30, kDoubled = 3, kStalled = 20, kSearches = 4;
constexpr double kCells = 5000;  // of bands, for each search: about as much work
constexpr std::size_t kUnknown = ~std::size_t{0};

}  // namespace

// Play on at the prices of a pass, at first for twice as many steps as the last time; returns the best shares.
Split LengthSearch::played(const Pass &center, const Box &box) {
    Split split = this->split(splits() - 1), best = split;
    double least = center.most;
    const double much = 2e-3 * budget(center, box);
    used_.resize(split.share.size(), 0.0);
    messages_at_ = kUnknown;
    const int end = kFirstSteps << std::min(share_searches_, kDoubled);
    for (int since = 0, i = 0; since < kStalled && i < end; i++, steps_played_++) {
        meter_.spend(messages_.operations() + static_cast<double>(split.share.size()));
        const double most = messages_.run(center.prices, split);
        const std::vector<std::int64_t> labelling = messages_.best();
        offer(labelling);
        since = most < least - much ? 0 : since + 1;
        if (most < least) {
            least = most;
            best = split;
        }
        if (!(most - need_.least(best_.value, center.prices, box, chain_) > tolerance(center))) break;
        // Sentences change more than shares do, so the mean of late ones is answered.
        const double late = 1 / (steps_played_ / 4.0 + 2), part = 2 / (steps_played_ + 3.0);
        for (double &x : used_) x *= 1 - late;
        histories_.follow(words_of(sentences_, labelling), [&](Index t, auto units) {
            for (std::int32_t u : units) used_[t * split.units + u] += late;
        });
        for (double &x : split.share) x *= 1 - part;
        counter_->answer(used_, part, split);
    }
    return best;
}

// Look for better shares at prices where the loss is level in a box; true where there are some.
bool LengthSearch::better_shares(const Box &box) {
    if (problem_.kind != Kind::RougeL && !problem_.clip) return false;
    if (share_searches_ >= kSearches && kCells * share_searches_ > static_cast<double>(outcome_.cells)) return false;
    double before = 0, after = 0;
    best_pass(box, before);
    Tallies near{};
    for (Index n = 0; n < measure_.tallies(); n++) near[n] = std::clamp(best_tallies_[n], box.low[n], box.high[n]);
    const Pass center = pass(need_.level(std::max(best_.value, 0.0), near), splits() - 1);
    add(played(center, box));
    share_searches_++;
    pass(center.prices, splits() - 1);
    best_pass(box, after);
    return after < 0.98 * before;
}

}  // namespace tallytree::sequences
