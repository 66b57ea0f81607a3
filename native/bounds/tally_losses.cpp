// Losses: the best labelling where nothing violates the margin, and the best of each of several tallies.
#include "bounds/tally_search.h"

namespace tallytree::bounds {

namespace {

constexpr double kFirstBand = 0.25;  // of a score
constexpr double kWider = 2;
constexpr double kFirstShare = 0.25;  // of all work: if it takes more to meet enough tallies, there are too many cells

}  // namespace

// ---- nothing violates the margin -----------------------------------------------------------------------------------

// The only tally without loss, if it is at a corner of the box.
std::optional<Few<Index>> TallySearch::lossless() const {
    std::optional<Few<Index>> found;
    Index many = 0;
    Few<Index> at = box_.low.first();
    for (at[0] = box_.low[0]; at[0] <= box_.high[0]; at[0]++)
        for (at[1] = box_.low[1]; at[1] <= box_.high[1]; at[1]++)
            for (at[2] = box_.low[2]; at[2] <= box_.high[2]; at[2]++)
                if (asked_.loss(at) == 0 && many++ == 0) found = at;
    if (many != 1) return {};
    for (Index p = 0; p <= last_; p++)
        if ((*found)[p] != box_.low[p] && (*found)[p] != box_.high[p]) return {};
    return found;
}

// Under slack scaling, a tally without loss has the value 0 whatever it scores, and all others have less. The best
// labelling with it is the best at prices that lead to it.
bool TallySearch::settle_lossless() {
    const auto wanted = lossless();
    if (!wanted) return false;
    double price = 8 * scale_;
    for (int tries = 0; tries < 4; tries++, price *= 8) {
        Few<double> prices{};
        for (Index p = 0; p <= last_; p++)
            if (box_.low[p] != box_.high[p]) prices[p] = (*wanted)[p] == box_.high[p] ? price : -price;
        const Pass at = messages_->pass(prices, *meter_);
        if (at.most == kNegativeInfinity) return false;
        if (at.tally.first() != *wanted) continue;
        const double slack = 4 * tolerance(at);
        off_ = std::max(off_, slack);
        messages_->set_near(2 * slack);
        if (!band(4 * slack, most_work_ - work_)) return false;
        const auto cells = messages_->tallies();
        for (std::size_t i = 0; i < cells.size(); i++)
            if (cells[i].key == 0)
                candidates_.push_back({*wanted, at.most - paid(prices, *wanted), static_cast<Index>(i)});
        return true;
    }
    return false;
}

// ---- several tallies -----------------------------------------------------------------------------------------------

// The tallies of the largest values that were met stand in a list, in order. What has to be reached is the last of
// them, once there are as many as are wanted.

bool TallySearch::begin_several() {
    decoded_.clear();
    off_ = 0;
    if (!asked_.slack) return true;
    const auto without = lossless();  // the truth has its tally, and the value 0
    if (without) several_.push_back({0, *without});
    return without.has_value();
}

void TallySearch::meet_one_of_several(double value, const Few<Index> &tally) {
    std::erase_if(several_, [&](const Met &one) { return one.tally == tally && one.value <= value; });
    if (std::ranges::any_of(several_, [&](const Met &one) { return one.tally == tally; })) return;
    const auto after = [&](double left, const Met &right) { return left > right.value; };
    several_.insert(std::upper_bound(several_.begin(), several_.end(), value, after), {value, tally});
    value_tally_ = several_.front().tally;
    const auto count = static_cast<std::size_t>(asked_.count);
    if (several_.size() > count) several_.pop_back();
    if (several_.size() < count || !(several_.back().value > value_)) return;
    value_ = several_.back().value;
    stale_ = true;
}

// How much more the best scores than what its tally needs: no budget is less.
double TallySearch::apart() const {
    const double values = several_.front().value - several_.back().value;
    const double loss = asked_.slack ? asked_.loss(several_.front().tally) : 1;
    return loss > 0 ? values / loss : 0;
}

// Bands of the first pass, until there are enough tallies.
bool TallySearch::meet_several() {
    if (asked_.count == 1) return false;
    const Pass at = passes_[0];
    const double most = kFirstShare * most_work_;
    for (double budget = kFirstBand * scale_; !met(); budget *= kWider) {
        messages_->set_near(2 * slack_of(at, budget));
        if (work_ > most || !band(budget, most - work_)) return false;
        each_cell(at, [&](const Few<Index> &tally, double score, Index) { meet(score, tally, 4 * tolerance(at)); });
    }
    cut(0);
    return !several_tied(at);
}

// Whether one of those that were met has as good a labelling besides: the table will have to choose.
bool TallySearch::several_tied(const Pass &at) const {
    bool tied = false;
    each_cell(at, [&](const Few<Index> &tally, double, Index number) {
        if (messages_->tied(number))
            tied |= std::ranges::any_of(several_, [&](const Met &m) { return m.tally == tally; });
    });
    return tied;
}

// The best of the band, in order; false where rounding may change that, or another labelling is as good as one of them.
bool TallySearch::keep_several(const Pass &at) {
    struct Found {
        double least, most;  // its value
        Candidate one;
    };
    const double slack = off_ = 4 * tolerance(at);
    const auto count = static_cast<std::size_t>(asked_.count);
    std::vector<Found> all;
    const auto add = [&](const Candidate &one) {
        all.push_back({asked_.value(one.tally, one.score - slack), asked_.value(one.tally, one.score + slack), one});
    };
    bool inside = spreads_[best_].budget > kNegativeInfinity;
    each_cell(at, [&](const Few<Index> &tally, double score, Index number) {
        inside &= box_.holds(tally);
        if (inside && !(asked_.slack && !(asked_.loss(tally) > 0))) add({tally, score, number});
    });
    if (asked_.slack) all.push_back({0, 0, {*lossless(), 0, -1}});
    if (!inside || all.size() < count) return false;
    std::ranges::sort(all, [](const Found &a, const Found &b) { return a.most > b.most; });
    for (std::size_t i = 0; i < count; i++)
        if ((i + 1 < all.size() && all[i + 1].most >= all[i].least) ||
            (all[i].one.number >= 0 && messages_->tied(all[i].one.number)))
            return false;
    if (all[count - 1].least < value_) return false;  // the band may lack others
    decoded_.resize(count * static_cast<std::size_t>(measures_.variables));
    for (std::size_t i = 0; i < count; i++) {
        candidates_.push_back(all[i].one);
        if (all[i].one.number >= 0) messages_->decode(all[i].one.number, decoded(i));
    }
    for (std::size_t i = 0; i < count; i++)
        if (candidates_[i].number < 0 && !decode_lossless(i)) return false;
    return true;
}

bool TallySearch::decode_lossless(std::size_t place) {
    if (!settle_lossless()) return false;
    const Candidate one = candidates_.back();
    candidates_.pop_back();
    if (messages_->tied(one.number)) return false;
    candidates_[place] = one;
    messages_->decode(one.number, decoded(place));
    return true;
}

}  // namespace tallytree::bounds
