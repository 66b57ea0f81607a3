#include "bounds/tally_search.h"

namespace tallytree::bounds {

namespace {

constexpr std::size_t kMostPasses = 16;
constexpr std::size_t kMostPassesPlain = 48;  // where a constraint is far from the best labelling
constexpr double kMostMagnitude = 1e250;      // of scores: prices of this size are paid many times
constexpr double kReached = 1.5;              // times the least budget there can be: passes hardly make it smaller
// Units of work: of a search and of each pass besides those of the messages, of a tally that is listed, and of looking
// at one.
constexpr double kBegun = 1200, kPassed = 600, kListed = 2, kSwept = 2;
constexpr double kTry = 0.5;  // a budget of about so much of a score is worth a try

template <class List>
void grow(List &list, Index size) {
    if (static_cast<Index>(list.size()) < size) list.resize(size);
}

}  // namespace

double TallySearch::least_work(double tallies) { return kBegun + kListed * tallies; }

bool TallySearch::begin(const TallyGoal &asked) {
    asked_ = asked;
    last_ = asked.statistics - 1;
    box_ = measures_.range;
    for (Index p = 0; p <= last_; p++) {
        box_.low[p] = std::max(box_.low[p], asked.box.low[p]);
        box_.high[p] = std::min(box_.high[p], asked.box.high[p]);
    }
    if (asked.plain() && !(measures_.magnitude < kMostMagnitude)) return false;
    if (!asked.regular || box_.empty() || box_.tallies() > 1e8) return false;
    passes_.clear();
    tops_.clear();
    candidates_.clear();
    value_tally_.reset();
    followed_.reset();
    bracketed_.reset();
    before_ = kInfinity;
    stalled_ = 0;
    value_ = asked.slack && asked.count == 1 ? 0 : kNegativeInfinity;
    several_.clear();
    work_ = measures_.load + least_work(box_.tallies());
    most_passes_ = asked.plain() ? kMostPassesPlain : kMostPasses;
    scale_ = std::max(0.3 * measures_.magnitude / measures_.variables, 1e-300);
    return asked.count == 1 || begin_several();
}

double TallySearch::kept() const {
    double bytes = static_cast<double>(4 * numbers_.capacity());
    for (const auto *list : {&weight_, &bound_, &need_, &over_}) bytes += static_cast<double>(8 * list->size());
    for (const auto &list : count_) bytes += static_cast<double>(8 * list.size());
    return bytes;
}

// The tallies that live after the first pass; those without loss have no say under slack scaling (see
// `settle_lossless`).
void TallySearch::fill(const Pass &pass, double bound) {
    const Index size = round_up(static_cast<Index>(box_.tallies()));
    for (auto *list : {&weight_, &bound_, &need_, &over_}) grow(*list, size);
    for (Index p = 0; p <= last_; p++) grow(count_[p], size);
    grow(numbers_, size + kLanes);
    listed_ = 0;
    Few<Index> at = box_.low.first(), end = box_.high.first();
    end[last_] = box_.low[last_];
    const double most = bound + 2 * tolerance(pass);
    for (at[0] = box_.low[0]; at[0] <= end[0]; at[0]++)
        for (at[1] = box_.low[1]; at[1] <= end[1]; at[1]++)
            for (at[2] = box_.low[2]; at[2] <= end[2]; at[2]++) {
                const double first = most - paid(pass.prices.first(), at);
                asked_.plain() ? fill_allowed(at, first, pass.prices[last_]) : fill_line(at, first, pass.prices[last_]);
            }
    living_ = listed_;
    find_needs();
}

// The tallies from one on along the last statistic that may reach the value, by a test that does not divide. The first
// of them scores `most` at most, and each further one pays the price.
void TallySearch::fill_line(const Few<Index> &from, double most, double price) {
    const double *losses = &asked_.loss(from);
    const Index many = kernels_.reach(
        {box_.extent(last_), losses, most - asked_.truth, price, asked_.margin, value_, asked_.slack}, numbers_.data());
    const std::int32_t *numbers = numbers_.data();
    const double *weights = asked_.slack ? asked_.inverses + (losses - asked_.losses) : losses;
    double *weight = weight_.data() + listed_, *bound = bound_.data() + listed_,
           *counted = count_[last_].data() + listed_;
    const auto first = static_cast<double>(from[last_]);
    for (Index i = 0; i < many; i++) weight[i] = weights[numbers[i]];
    for (Index i = 0; i < many; i++) {
        counted[i] = first + numbers[i];
        bound[i] = most - price * numbers[i];
    }
    for (Index p = 0; p < last_; p++) std::fill_n(count_[p].begin() + listed_, many, static_cast<double>(from[p]));
    listed_ += many;
}

// The same where the value is the score: those that are allowed.
void TallySearch::fill_allowed(const Few<Index> &from, double most, double price) {
    Few<Index> at = from;
    for (; at[last_] <= box_.high[last_]; at[last_]++) {
        const double bound = most - price * static_cast<double>(at[last_] - from[last_]);
        if (!(bound >= value_) || !asked_.allows(at)) continue;
        weight_[listed_] = 0;
        bound_[listed_] = bound;
        for (Index p = 0; p <= last_; p++) count_[p][listed_] = static_cast<double>(at[p]);
        listed_++;
    }
}

// ---- tallies -------------------------------------------------------------------------------------------------------

double TallySearch::tolerance(const Pass &pass) const {
    const double met = value_ == kNegativeInfinity ? 0 : std::abs(value_);
    const double known = met + std::abs(asked_.truth) + asked_.margin * (1 + asked_.largest);
    return 2 * pass.tolerance + 16 * kUnit * known;
}

// A labelling was met. Its score is known up to rounding, and its value is taken for less by that.
void TallySearch::meet(double score, const Few<Index> &tally, double slack) {
    const double value = asked_.value(tally, score - slack);
    if (!(value > value_)) return;
    if (asked_.count > 1) return meet_one_of_several(value, tally);
    value_ = value;
    value_tally_ = tally;
    stale_ = true;
}

TallyLists TallySearch::lists(const Pass &pass, double most) {
    return {listed_, asked_.statistics, pass.prices.first().data(),
            most,    need_.data(),      {count_[0].data(), count_[1].data(), count_[2].data()}};
}

// Whether the best labelling of a pass is not as good as what is known: no labelling with its tally is as good then.
bool TallySearch::beaten(const Pass &pass) const {
    const Few<Index> &tally = pass.tally.first();
    if (asked_.plain() || !box_.holds(tally)) return false;
    if (asked_.slack && !(asked_.loss(tally) > 0)) return true;
    const double most = pass.most - paid(pass.prices.first(), tally) + 2 * tolerance(pass);
    return met() && asked_.value(tally, most) < value_;
}

// The second best labelling of a pass, which bounds all others; the best one where there is no other, or none is known.
TallySearch::Top TallySearch::second(const Pass &pass) {
    const auto other = messages_->second(pass);
    if (!other) return {pass.most, pass.tally.first()};
    work_ += measures_.second;
    const Top found{pass.most - other->regret, other->tally};
    meet(found.most - paid(pass.prices.first(), found.tally), found.tally, 2 * tolerance(pass));
    return found;
}

// Lowers the bounds of all tallies.
void TallySearch::cut(std::size_t number) {
    const Pass &pass = passes_[number];
    if (stale_) find_needs();
    living_ = kernels_.cut(lists(pass, tops_[number].most + tolerance(pass)), bound_.data());
    if (4 * living_ < listed_) bury();
}

// Takes the dead out of the lists.
void TallySearch::bury() {
    Index many = 0;
    for (Index i = 0; i < listed_; i++) {  // without a branch for each, which could not be foreseen
        numbers_[many] = static_cast<std::int32_t>(i);
        many += need_[i] < kInfinity ? 1 : 0;
    }
    const auto gather = [&](LinedUp &list) {
        for (Index i = 0; i < many; i++) list[i] = list[numbers_[i]];
    };
    for (auto *list : {&weight_, &bound_, &need_}) gather(*list);
    for (Index p = 0; p <= last_; p++) gather(count_[p]);
    listed_ = many;
    renewed_ = true;
}

// The dead need more than what they score at most whatever the value, which only grows: `cut` tells. Before anything
// is met, the least score that will do is taken for 0, so that a budget is a bound on scores.
void TallySearch::find_needs() {
    stale_ = false;
    renewed_ = true;
    double *need = need_.data();
    const double *weight = weight_.data(), value = met() ? value_ : 0, margin = asked_.margin, truth = asked_.truth;
    if (asked_.slack)  // all of them have a loss
        for (Index i = 0; i < listed_; i++) need[i] = value * weight[i] - margin + truth;
    else
        for (Index i = 0; i < listed_; i++) need[i] = value - margin * weight[i] + truth;
}

// Among tallies that need as much the one that is nearest to the best labelling: at prices 0 there are many.
TallySearch::Spread TallySearch::spread(std::size_t number) {
    if (living_ == 0) return {};
    const Top &top = tops_[number];
    const Index many = kernels_.farthest(lists(passes_[number], top.most), over_.data(), numbers_.data());
    Index at = 0;
    double nearest = kInfinity;
    for (Index i = 0; i < many && many > 1; i++) {
        double distance = 0;
        for (Index p = 0; p <= last_; p++)
            distance += std::abs(count_[p][numbers_[i]] - static_cast<double>(top.tally[p]));
        at = distance < nearest ? i : at;
        nearest = std::min(nearest, distance);
    }
    at = numbers_[at];
    Spread found{over_[at], {}, at};
    for (Index p = 0; p <= last_; p++) found.tally[p] = static_cast<Index>(count_[p][at]);
    return found;
}

// A spread stays what it is as long as its tally lives and needs what it did.
void TallySearch::spread_all() {
    const auto known = renewed_ ? 0 : spreads_.size();
    renewed_ = false;
    spreads_.resize(passes_.size());
    best_ = 0;
    for (std::size_t i = 0; i < passes_.size(); i++) {
        const bool holds = i < known && spreads_[i].number >= 0 && need_[spreads_[i].number] < kInfinity;
        if (!holds) spreads_[i] = spread(i);
        if (spreads_[i].budget < spreads_[best_].budget) best_ = i;
    }
}

// ---- the search ----------------------------------------------------------------------------------------------------

double TallySearch::next_pass() const {
    return measures_.pass + kPassed + kSwept * static_cast<double>(passes_.empty() ? 0 : listed_);
}

void TallySearch::pass(const Few<double> &prices) {
    work_ += next_pass();
    const Pass &found = passes_.emplace_back(messages_->pass(prices, *meter_));
    tops_.push_back({found.most, found.tally.first()});
    Top &top = tops_.back();
    if (found.most == kNegativeInfinity) return;
    const bool known = met();
    meet(found.most - paid(prices, top.tally), top.tally, 2 * tolerance(found));
    if (beaten(found)) top = second(found);
    const std::size_t last = passes_.size() - 1;
    if (last == 0) fill(found, top.most);
    else if (known) cut(last);
    else if (met())
        for (std::size_t i = 0; i <= last; i++) cut(i);
}

bool TallySearch::run(TiedMessages &messages, const TallyGoal &asked, std::optional<Few<double>> start, Limits limits,
                      Meter &meter) {
    messages_ = &messages;
    measures_ = messages.measures();
    meter_ = &meter;
    most_work_ = limits.work;
    most_band_ = limits.band;
    room_ = limits.room;
    equals_ = limits.equals;
    prices_ = start.value_or(Few<double>{});
    if (!begin(asked)) return false;
    cold_ = !start;
    if (spent()) return false;
    pass(prices_);
    if (passes_[0].most == kNegativeInfinity) return false;
    if (asked.plain()) return settle_allowed();
    return (met() || meet_several()) && std::isfinite(value_) && settle_losses();
}

bool TallySearch::settle_losses() {
    const double few = measures_.few;
    double tried = kInfinity;
    while (true) {
        spread_all();
        prices_ = passes_[best_].prices.first();
        messages_->hold(prices_);
        const bool last = spent();
        const double budget = reach(best_);
        const double nothing = 8 * tolerance(passes_[best_]);  // a budget that no prices make smaller
        if (asked_.count > 1 && budget <= kReached * apart()) return finish();
        if (last || (budget <= std::max(kTry * scale_, nothing) && budget <= 0.5 * tried)) {
            tried = budget;
            if (!last && look(few)) return keep_candidates(passes_[best_]);
            if (budget <= nothing && !equals_) return false;
            if (last || budget <= nothing) return finish();
            if (peek(0.25 * budget, few)) continue;
        }
        const auto next = next_prices();
        if (!next) return finish();
        pass(*next);
    }
}

}  // namespace tallytree::bounds
