#include "bounds/tally_search.h"

namespace tallytree::bounds {

namespace {

constexpr double kCell = 64;  // a cell of a band takes as long as so many operations of a whole table
constexpr std::size_t kMostPasses = 16;
constexpr std::size_t kMostCandidates = 64;
// How many times the states of all positions a band may look at before more passes are made: these cost more where
// neighbours count, too.
constexpr double kFew = 4, kFewOfNeighbours = 8;
constexpr double kTry = 0.5;  // a budget of about so much of a score is worth a try

template <class T>
void grow(std::vector<T> &list, std::size_t size) {
    if (list.size() < size) list.resize(size);
}

}  // namespace

const double &TallySearch::loss_at(const Tally &tally) const {
    Index place = 0;
    for (Index p = 0; p <= last_; p++) place = place * asked_.extent[p] + tally[p] - asked_.low[p];
    return asked_.losses[place];
}

bool TallySearch::begin(const LossBox &asked) {
    asked_ = asked;
    last_ = asked.statistics - 1;
    box_ = messages_.rows().range;
    for (Index p = 0; p <= last_; p++) {
        box_.low[p] = std::max(box_.low[p], asked.low[p]);
        box_.high[p] = std::min(box_.high[p], asked.low[p] + asked.extent[p] - 1);
    }
    if (box_.empty() || box_.tallies() > 1e8) return false;
    passes_.clear();
    candidates_.clear();
    value_tally_.reset();
    followed_.reset();
    bracketed_.reset();
    before_ = kInfinity;
    stalled_ = 0;
    value_ = asked.slack ? 0 : kNegativeInfinity;
    work_ = largest_loss_ = 0;
    double largest = 0;
    for (const auto &share : messages_.rows().shares) largest += share.largest;
    scale_ = std::max(0.3 * largest / static_cast<double>(messages_.rows().length), 1e-300);
    return fill();
}

// All tallies live at first; those without loss have no say under slack scaling (see `settle_lossless`). False where a
// loss is not what there is a search for.
bool TallySearch::fill() {
    const auto size = static_cast<std::size_t>(box_.tallies());
    for (auto *list : {&loss_, &bound_, &need_, &paid_}) grow(*list, size);
    grow(left_, size);
    for (Index p = 0; p <= last_; p++) grow(count_[p], size);
    std::fill_n(bound_.begin(), size, kInfinity);
    living_ = 0;
    bool fine = true;
    Tally at = box_.low, end = box_.high;
    end[last_] = box_.low[last_];
    for (at[0] = box_.low[0]; at[0] <= end[0]; at[0]++)
        for (at[1] = box_.low[1]; at[1] <= end[1]; at[1]++)
            for (at[2] = box_.low[2]; at[2] <= end[2]; at[2]++) fine &= fill_line(at);
    stale_ = true;
    return fine && largest_loss_ < kInfinity;
}

// The tallies from one on along the last statistic.
bool TallySearch::fill_line(const Tally &from) {
    const Index extent = box_.extent(last_);
    const double *losses = &loss_at(from);
    double *loss = loss_.data() + living_, *counted = count_[last_].data() + living_;
    const auto first = static_cast<double>(from[last_]);
    for (Index i = 0; i < extent; i++) loss[i] = losses[i];
    for (Index i = 0; i < extent; i++) counted[i] = first + static_cast<double>(static_cast<std::int32_t>(i));
    for (Index p = 0; p < last_; p++)
        std::fill_n(count_[p].begin() + static_cast<Index>(living_), extent, static_cast<double>(from[p]));
    // Two at a time, which the compiler makes one of; differences are 0 where all are numbers.
    double largest[2] = {largest_loss_, 0}, lowest[2] = {kInfinity, kInfinity}, differences[2] = {0, 0};
    const auto take = [&](Index i, Index lane) {
        const double x = losses[i], size = std::abs(x);
        largest[lane] = size > largest[lane] ? size : largest[lane];
        lowest[lane] = x < lowest[lane] ? x : lowest[lane];
        differences[lane] += x - x;
    };
    for (Index i = 0; i + 1 < extent; i += 2) {
        take(i, 0);
        take(i + 1, 1);
    }
    if (extent % 2) take(extent - 1, 0);
    largest_loss_ = std::max(largest[0], largest[1]);
    const double least = std::min(lowest[0], lowest[1]);
    const bool numbers = differences[0] + differences[1] == 0;
    if (!asked_.slack || least > 0) {
        living_ += static_cast<std::size_t>(extent);
        return numbers;
    }
    for (Index i = 0; i < extent; i++) {  // all of them have the same counts but the last
        loss_[living_] = losses[i];
        count_[last_][living_] = first + static_cast<double>(i);
        living_ += losses[i] > 0 ? 1 : 0;
    }
    return numbers && least >= 0;
}

// ---- tallies -------------------------------------------------------------------------------------------------------

double TallySearch::tolerance(const Pass &pass) const {
    const double met = value_ == kNegativeInfinity ? 0 : std::abs(value_);
    const double known = met + std::abs(asked_.truth) + asked_.margin * (1 + largest_loss_);
    return 2 * pass.tolerance + 16 * kUnit * known;
}

// A labelling was met. Its score is known up to rounding, and its value is taken for less by that.
void TallySearch::meet(double score, const Tally &tally, double slack) {
    if (!box_.holds(tally)) return;
    const double value = asked_.value(loss_at(tally), score - slack);
    if (!(value > value_)) return;
    value_ = value;
    value_tally_ = tally;
    stale_ = true;
}

// Lowers the bounds of all tallies, and buries those that are left behind: without a branch for each, which could not
// be foreseen.
void TallySearch::cut(const Pass &pass) {
    const double most = pass.most + tolerance(pass);
    const std::size_t size = living_;
    if (stale_) find_needs();
    double *bound = bound_.data(), *paid = paid_.data();
    const double *need = need_.data();
    for (Index p = 0; p <= last_; p++) {
        const double price = pass.prices[p], *counts = count_[p].data();
        if (p == 0)
            for (std::size_t i = 0; i < size; i++) paid[i] = price * counts[i];
        else
            for (std::size_t i = 0; i < size; i++) paid[i] += price * counts[i];
    }
    for (std::size_t i = 0; i < size; i++) {
        const double here = most - paid[i];
        bound[i] = here < bound[i] ? here : bound[i];
    }
    std::int32_t *left = left_.data();
    std::size_t many = 0;
    for (std::size_t i = 0; i < size; i++) {
        left[many] = static_cast<std::int32_t>(i);
        many += bound[i] >= need[i] ? 1 : 0;
    }
    living_ = many;
    if (many == size) return;
    const auto gather = [&](std::vector<double> &list) {
        double *x = list.data();
        for (std::size_t i = 0; i < many; i++) x[i] = x[left[i]];
    };
    for (auto *list : {&loss_, &bound_, &need_}) gather(*list);
    for (Index p = 0; p <= last_; p++) gather(count_[p]);
}

void TallySearch::find_needs() {
    stale_ = false;
    double *need = need_.data();
    const double *loss = loss_.data(), value = value_, margin = asked_.margin, truth = asked_.truth;
    if (asked_.slack)  // all of them have a loss
        for (std::size_t i = 0; i < living_; i++) need[i] = value / loss[i] - margin + truth;
    else
        for (std::size_t i = 0; i < living_; i++) need[i] = value - margin * loss[i] + truth;
}

// Among tallies that need as much the one that is nearest to the best labelling: at prices 0 there are many.
TallySearch::Spread TallySearch::spread(const Pass &pass) const {
    Spread found;
    std::size_t at = 0;
    const auto distance = [&](std::size_t i) {
        double sum = 0;
        for (Index p = 0; p <= last_; p++) sum += std::abs(count_[p][i] - static_cast<double>(pass.tally[p]));
        return sum;
    };
    for (std::size_t i = 0; i < living_; i++) {
        double left = pass.most - need_[i];
        for (Index p = 0; p <= last_; p++) left -= pass.prices[p] * count_[p][i];
        if (left < found.budget || (left == found.budget && distance(i) >= distance(at))) continue;
        found.budget = left;
        at = i;
    }
    for (Index p = 0; p <= last_ && living_ > 0; p++) found.tally[p] = static_cast<Index>(count_[p][at]);
    return found;
}

void TallySearch::spread_all() {
    spreads_.clear();
    best_ = 0;
    for (const Pass &one : passes_) {
        spreads_.push_back(spread(one));
        if (spreads_.back().budget < spreads_[best_].budget) best_ = spreads_.size() - 1;
    }
}

// ---- the search ----------------------------------------------------------------------------------------------------

void TallySearch::pass(const Prices &prices) {
    const auto &rows = messages_.rows();
    const Pass &found = passes_.emplace_back(messages_.pass(prices, *meter_));
    work_ += static_cast<double>(rows.length * rows.states * rows.width) * (rows.neighbours_count() ? 3 : 1);
    if (found.most == kNegativeInfinity) return;
    meet(found.most - paid(prices, found.tally), found.tally, 2 * tolerance(found));
    cut(found);
}

bool TallySearch::run(const LossBox &asked, std::optional<Prices> start, Limits limits, Meter &meter) {
    meter_ = &meter;
    most_work_ = limits.work;
    most_band_ = limits.band;
    equals_ = limits.equals;
    prices_ = start.value_or(Prices{});
    if (!begin(asked)) return false;
    cold_ = !start;
    pass(prices_);
    if (passes_[0].most == kNegativeInfinity || !std::isfinite(value_)) return false;
    const auto &rows = messages_.rows();
    const double few =
        (rows.neighbours_count() ? kFewOfNeighbours : kFew) * static_cast<double>(rows.length * rows.states);
    double tried = kInfinity;
    while (true) {
        spread_all();
        prices_ = passes_[best_].prices;
        messages_.hold(prices_);
        const bool last = passes_.size() >= kMostPasses || work_ > most_work_;
        const double budget = spreads_[best_].budget;
        const double nothing = 8 * tolerance(passes_[best_]);  // a budget that no prices make smaller
        if (last || (budget <= std::max(kTry * scale_, nothing) && budget <= 0.5 * tried)) {
            tried = budget;
            if (!last && look(few)) return keep_candidates(passes_[best_]);
            if (budget <= nothing && !equals_) return false;
            if (last || budget <= nothing) return look((most_work_ - work_) / kCell) && keep_candidates(passes_[best_]);
            if (peek(0.25 * budget, few)) continue;
        }
        const auto next = next_prices();
        if (!next) return look((most_work_ - work_) / kCell) && keep_candidates(passes_[best_]);
        pass(*next);
    }
}

// A better value from a band that is too small to prove anything.
bool TallySearch::peek(double budget, double most_work) {
    const Pass at = passes_[best_];
    const double before = value_;
    if (!messages_.recall(at.prices)) return false;
    const bool within = messages_.band(budget, std::min(most_work, most_band_), *meter_);
    work_ += messages_.work() * kCell;
    if (!within) return false;
    each_cell(at, [&](const Tally &tally, double score, Index) { meet(score, tally, 4 * tolerance(at)); });
    if (!(value_ > before)) return false;
    cut(at);
    return true;
}

// Calls use(tally, score, number) for the tallies of the last band, which is of some pass.
template <class Use>
void TallySearch::each_cell(const Pass &at, Use use) const {
    const Packing packing(asked_.statistics);
    const auto cells = messages_.tallies();
    for (std::size_t i = 0; i < cells.size(); i++) {
        Tally tally = packing.unpack(cells[i].key);
        for (Index p = 0; p <= last_; p++) tally[p] += at.tally[p];
        use(tally, (at.most - cells[i].regret) - paid(at.prices, tally), static_cast<Index>(i));
    }
}

// The band of the best pass.
bool TallySearch::look(double most_work) {
    const Pass at = passes_[best_];
    if (!(most_work > 0)) return false;
    if (spreads_[best_].budget == kNegativeInfinity) return true;  // nothing lives
    if (!messages_.recall(at.prices)) messages_.pass(at.prices, *meter_);
    const auto &rows = messages_.rows();
    const double budget = std::max(spreads_[best_].budget, 0.0);
    const double slack = 2 * tolerance(at) + kUnit * budget * static_cast<double>(rows.length * rows.states);
    messages_.set_near(2 * slack);
    const bool within = messages_.band(budget + 4 * slack, std::min(most_work, most_band_), *meter_);
    work_ += messages_.work() * kCell;
    return within;
}

bool TallySearch::keep_candidates(const Pass &at) {
    const double slack = off_ = 4 * tolerance(at);
    double best = asked_.slack ? 0 : kNegativeInfinity;
    bool inside = true;
    for (const bool choose : {false, true}) {
        if (spreads_[best_].budget == kNegativeInfinity) break;  // no band was needed: nothing lives
        each_cell(at, [&](const Tally &tally, double score, Index number) {
            inside &= box_.holds(tally);
            const double loss = inside ? loss_at(tally) : 0;
            if (!inside || (asked_.slack && !(loss > 0))) return;
            if (!choose) best = std::max(best, asked_.value(loss, score));
            else if (asked_.value(loss, score + slack) >= best) candidates_.push_back({tally, score, number});
        });
    }
    if (!inside || candidates_.size() > kMostCandidates) return false;
    if (!candidates_.empty()) return best > (asked_.slack ? 4 * slack * largest_loss_ : kNegativeInfinity);
    return asked_.slack && settle_lossless();
}

bool TallySearch::unique() const { return candidates_.size() == 1 && !messages_.tied(candidates_[0].number); }

// ---- nothing violates the margin -----------------------------------------------------------------------------------

// The only tally without loss, if it is at a corner of the box.
std::optional<Tally> TallySearch::lossless() const {
    std::optional<Tally> found;
    Index many = 0;
    Tally at = box_.low;
    for (at[0] = box_.low[0]; at[0] <= box_.high[0]; at[0]++)
        for (at[1] = box_.low[1]; at[1] <= box_.high[1]; at[1]++)
            for (at[2] = box_.low[2]; at[2] <= box_.high[2]; at[2]++)
                if (loss_at(at) == 0 && many++ == 0) found = at;
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
        Prices prices{};
        for (Index p = 0; p <= last_; p++)
            if (box_.low[p] != box_.high[p]) prices[p] = (*wanted)[p] == box_.high[p] ? price : -price;
        const Pass at = messages_.pass(prices, *meter_);
        if (at.most == kNegativeInfinity) return false;
        if (at.tally != *wanted) continue;
        const double slack = off_ = 4 * tolerance(at);
        messages_.set_near(2 * slack);
        if (!messages_.band(4 * slack, std::min((most_work_ - work_) / kCell, most_band_), *meter_)) return false;
        const auto cells = messages_.tallies();
        for (std::size_t i = 0; i < cells.size(); i++)
            if (cells[i].key == 0)
                candidates_.push_back({*wanted, at.most - paid(prices, *wanted), static_cast<Index>(i)});
        return true;
    }
    return false;
}

}  // namespace tallytree::bounds
