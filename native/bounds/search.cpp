#include "bounds/search.h"

namespace tallytree::bounds {

namespace {

constexpr double kCompared = 15;  // units of work for a tally of a band whose value is compared

}  // namespace

Search::Search(Messages &messages, const Subject &subject, const Need &need, const Stops &stops, const Poll &poll)
    : messages_(messages),
      subject_(subject),
      need_(need),
      stops_(stops),
      work_(stops.begun),
      meter_(poll),
      statistics_(subject.statistics()) {
    const auto variables = static_cast<double>(std::max<Index>(subject.variables(), 1));
    for (Index p = 0; p < statistics_; p++) span_ = std::max(span_, static_cast<double>(subject.range().extent(p)));
    scale_ = std::max(0.3 * subject.magnitude() / variables, 1e-300);  // entries are about as large as the largest / 3
    wide_ = span_ / scale_;
    bend_ = 0.1 * wide_;
    good_ = subject.small_budget(span_) * scale_;
}

void Search::offer(const std::vector<std::int64_t> &labelling) {
    offer(labelling, subject_.evaluate(labelling.data()));
}

void Search::offer(const std::vector<std::int64_t> &labelling, const Evaluated &found) {
    const double value = found.score == kNegativeInfinity ? found.score : need_.value(found.score, found.tally);
    if (value == kNegativeInfinity) return;
    if (value > value_) {
        value_ = value;
        value_tally_ = found.tally;
    }
    auto &kept = outcome_.candidates;
    if (kept.size() > most_kept_) {  // those that are worse by far have gone soon
        std::erase_if(kept, [&](const auto &one) { return one.second.score < need_.at(value_, one.first) - scale_; });
        most_kept_ = std::max<std::size_t>(64, 2 * kept.size());
    }
    if (value < value_ && found.score < need_.at(value_, found.tally) - scale_) return;
    Candidate &one = kept[found.tally];
    if (found.score > one.score) one = {found.score, labelling};
}

Outcome Search::run(std::optional<Prices> start) {
    const Prices zero(statistics_);
    if (value_ == kNegativeInfinity && passes_.empty() && !spent()) pass(start.value_or(zero));
    if (value_ != kNegativeInfinity && need_.scaling != Scaling::None) fixed_point(start.value_or(zero));
    if (passes_.empty()) pass(start.value_or(zero));
    std::vector<Part> parts{{need_.box}};
    bool finished = passes_.front().most != kNegativeInfinity;
    while (finished && !parts.empty()) {
        if (closed()) {
            finished = false;
            break;
        }
        std::pop_heap(parts.begin(), parts.end());
        Part part = parts.back();
        parts.pop_back();
        const State state = settle(part);
        if (state == State::Split) split(part, parts);
        if (state != State::Spent) continue;
        parts.push_back(part);
        finished = false;
    }
    if (finished && value_ == kNegativeInfinity) {  // tallies without loss need nothing under slack scaling
        const bool all_need = need_.scaling != Scaling::Slack || need_.lossless() == 0;
        outcome_.impossible = all_need || unreachable(need_.box);
    }
    outcome_.finished = finished && settle_lossless() && value_ != kNegativeInfinity;
    conclude(parts);
    return std::move(outcome_);
}

Outcome Search::relax(const Report &report) {
    constexpr double kFewCells = 65536;
    report_ = report;
    outcome_.prices = Prices(statistics_);
    const double all = static_cast<double>(stops_.passes) * messages_.pass_work();
    stops_.work = std::min(stops_.work, stops_.begun + all + subject_.cell() * kFewCells);
    if (pass(Prices(statistics_)).most != kNegativeInfinity) {
        tighten();
        if (!closed() && stops_.bands && subject_.keyed() && !unreachable(need_.box)) return run({});
        outcome_.impossible = unreachable(need_.box);
    }
    std::vector<Part> all_parts{{need_.box}};
    conclude(all_parts);
    return std::move(outcome_);
}

// What a pass says about all scores.
void Search::note_bound(const Pass &pass) {
    const double slack = tolerance(pass), bound = need_.ceiling(pass.most + slack, pass.prices, need_.box);
    if (bound < bound_) {
        bound_ = bound;
        outcome_.slack = std::min(slack, most_slack());
        outcome_.prices = pass.prices;
    }
    const auto found = outcome_.candidates.find(value_tally_);
    const bool any = value_ != kNegativeInfinity && found != outcome_.candidates.end();
    report_({passes_.size(), bound_, outcome_.slack, outcome_.prices, any ? &found->second : nullptr});
}

// All tallies within a budget have been examined: what is better than the value by more than rounding has a larger
// regret.
void Search::note_band(const Pass &pass, double budget, double slack) {
    const double bound = std::max(value_ + slack, need_.ceiling(pass.most - budget + slack, pass.prices, need_.box));
    if (!(bound < bound_)) return;
    bound_ = bound;
    outcome_.slack = std::min(std::max(outcome_.slack, slack), most_slack());
}

// What counts as rounding. At prices that are large beside the scores, more than this is lost.
double Search::most_slack() const {
    constexpr double kUsual = 64;  // times as much as without prices
    return kUsual * tolerance(passes_.front());
}

// Looks at every tally of a part of the box that can win, or says that it is too large.
Search::State Search::settle(Part &part) {
    if (value_ == kNegativeInfinity) {
        const State state = first_value(part);
        if (state != State::Split) return state;
    }
    shrunk_ = 0;
    if (!shrink(part.box)) return State::Done;
    double d;
    std::size_t at = best_pass(part.box, d);
    if (d > good_) {
        if (!bracket(part.box)) return State::Done;
        best_pass(part.box, d);
        if (d > 2 * good_ && !descend(part.box)) return State::Done;
        best_pass(part.box, d);
        if (d > 2 * good_ && !bracket(part.box)) return State::Done;
        at = best_pass(part.box, d);
    }
    if (d > 4 * good_) {  // the value is far below the bound: a small band may hold a better one
        const double before = value_;
        bool within = false;
        const double some = subject_.cell() * (subject_.operations() + 65536);
        if (look(passes_[at], good_, some, within) == State::Spent) return State::Spent;
        if (value_ > before && !shrink(part.box)) return State::Done;
        at = best_pass(part.box, d);
    }
    const double fair = subject_.cell() * (subject_.operations() * (d <= good_ ? 64 : 16) + 65536);
    const double most = part.box.single() ? kInfinity : std::ldexp(fair, std::min(2 * part.depth, 60));
    double tried = d;
    for (int round = 0; round < 6; round++) {
        bool within = false;
        const double before = value_;
        if (look(passes_[at], tried, most, within) == State::Spent) return State::Spent;
        if (!within) {
            if (tried < d / 100) break;
            tried /= 4;
            continue;
        }
        if (tried >= d) {
            prove(part.box, d);
            return State::Done;
        }
        if (!(value_ > before)) break;  // a stronger value is not to be had this way
        if (!shrink(part.box)) return State::Done;
        at = best_pass(part.box, d);
        tried = d;
    }
    best_pass(part.box, part.budget);
    return State::Split;
}

// Nothing allowed has been met: the best prices, then a budget that grows until something appears, or until it holds
// every labelling with a tally of the box. Split: something has.
Search::State Search::first_value(Part &part) {
    if (!descend(part.box)) return State::Done;
    double d;
    const std::size_t at = best_pass(part.box, d);
    if (!spent()) go_back(passes_[at].prices);
    const double least = std::max(std::min(16.0 / span_, 0.1) * scale_, tolerance(passes_[last_]));
    grown_work_ = 0;
    for (double tried = least; value_ == kNegativeInfinity;) {
        bool within = false;
        const Pass found = passes_[last_];
        const double all = highest_score(found, part.box) + subject_.magnitude() + 2 * tolerance(found);
        outcome_.ended |= spent();
        if (spent()) return State::Spent;
        if (look(found, std::min(tried, all), kInfinity, within) == State::Spent) return State::Spent;
        if (value_ == kNegativeInfinity && tried >= all) {
            prove(part.box, all);
            return State::Done;
        }
        // The band may have been large enough for all that reach the value that was found.
        if (value_ != kNegativeInfinity && budget(found, part.box) <= tried) {
            prove(part.box, tried);
            return State::Done;
        }
        tried = larger_budget(tried);
    }
    return State::Split;
}

// The budget of the next band, after one that was too small: two or four times as large, or less if the band would then
// take more than three times the work and a part of a pass. The logarithm of the work grows about linearly with the
// root of the budget, as that of the number of ways to make up a number of small ones does.
double Search::larger_budget(double budget) {
    const double most = (last_cells_ < 8 * subject_.choices() ? 4 : 2) * budget, work = messages_.work();
    const double root = std::sqrt(budget), steps = std::log(work / grown_work_);
    const double slope = steps / (root - std::sqrt(grown_budget_));
    const bool known = grown_work_ > 0 && steps > 0 && budget > grown_budget_;
    grown_budget_ = budget;
    grown_work_ = work;
    if (!known) return most;
    const double wanted = std::max(3 * work, 0.25 * messages_.pass_work());
    const double next = root + std::log(wanted / work) / slope;
    return std::clamp(next * next, 1.1 * budget, most);
}

// The band of a budget at a pass: the best that it holds is offered, and what may be as good is kept.
Search::State Search::look(Pass from, double budget, double most_work, bool &within) {
    outcome_.ended |= spent();
    if (spent()) return State::Spent;
    go_back(from.prices);
    const Pass at = passes_[last_];
    const double slack = 2 * tolerance(at) + kUnit * std::abs(budget) * subject_.operations();
    work_ += need_.take_work();
    const double left = stops_.work - work_;
    outcome_.ended |= left < 0;
    if (left < 0) return State::Spent;
    within = messages_.band(std::max(budget, 0.0) + 2 * slack, std::min(most_work, left), meter_);
    work_ += messages_.work();
    outcome_.bands++;
    last_cells_ = messages_.cells();
    outcome_.cells += last_cells_;
    const bool room = work_ + static_cast<double>(last_cells_) <= stops_.work;  // decoding looks through the cells
    const bool over = !room || (!within && (left <= most_work || messages_.full()));
    within = within && room;
    if (within) keep_candidates(at);
    if (within && report_) note_band(at, budget, 2 * slack);
    outcome_.ended |= over || spent();
    return over || spent() ? State::Spent : State::Done;
}

void Search::prove(const Box &box, double budget) {
    outcome_.proven.push_back({passes_[last_], box, budget, last_cells_});
}

void Search::keep_candidates(const Pass &pass) {
    const Packing packing(statistics_);
    const auto cells = messages_.tallies();
    const auto tally_of = [&](const Cell &cell) {
        Tally tally(statistics_);
        packing.unpack(cell.key, tally);
        each_statistic(tally.more(), [&](Index p) { tally[p] += pass.tally[p]; });
        return tally;
    };
    const auto score_of = [&](const Cell &cell, const Tally &tally) {
        return (pass.most - cell.regret) - paid(pass.prices, tally);
    };
    std::vector<std::int64_t> labelling(subject_.length());
    const auto decode = [&](std::size_t i) {
        work_ += messages_.decode(static_cast<Index>(i), labelling.data()) + subject_.labelling_work();
        meter_.spend(static_cast<double>(subject_.choices()));
        offer(labelling);
    };
    work_ += 2 * kCompared * static_cast<double>(cells.size());
    double best = kNegativeInfinity;
    std::size_t first = cells.size();
    for (std::size_t i = 0; i < cells.size(); i++) {
        const Tally tally = tally_of(cells[i]);
        const double value = need_.value(score_of(cells[i], tally), tally);
        if (value > best) {
            best = value;
            first = i;
        }
    }
    if (first == cells.size()) return;
    decode(first);
    const double slack = 2 * tolerance(pass);
    for (std::size_t i = 0; i < cells.size() && !spent(); i++) {
        const Tally tally = tally_of(cells[i]);
        if (i != first && score_of(cells[i], tally) >= need_.at(value_, tally) - slack) decode(i);
    }
}

// Under slack scaling a tally without loss has the value 0 whatever it scores: it matters where nothing is better.
bool Search::settle_lossless() {
    if (need_.scaling != Scaling::Slack || need_.lossless() == 0 || value_ > 0) return true;
    if (need_.lossless() > 1 || value_ < 0 || spent()) return false;
    Need only;
    only.box.low = only.box.high = need_.corner();
    if (!only.prepare()) return false;
    const Poll poll = [this] { meter_.spend(kInfinity); };
    Search inside(messages_, subject_, only, {.work = stops_.work - work_}, poll);
    for (const auto &[tally, one] : outcome_.candidates)
        if (tally.first() == need_.corner()) inside.offer(one.labelling);
    const Outcome found = inside.run({});
    work_ += found.work;
    outcome_.ended |= found.ended;
    if (!found.finished) return false;
    for (const auto &[tally, one] : found.candidates) offer(one.labelling);
    outcome_.proven.insert(outcome_.proven.end(), found.proven.begin(), found.proven.end());
    return true;
}

void Search::split(const Part &part, std::vector<Part> &parts) const {
    Index widest = 0;
    for (Index p = 1; p < statistics_; p++)
        if (part.box.extent(p) > part.box.extent(widest)) widest = p;
    const Index middle = part.box.low[widest] + (part.box.extent(widest) - 1) / 2;
    for (const bool above : {false, true}) {
        Part half{part.box, 0, part.depth + 1};
        (above ? half.box.low[widest] : half.box.high[widest]) = above ? middle + 1 : middle;
        best_pass(half.box, half.budget);
        parts.push_back(half);
        std::push_heap(parts.begin(), parts.end());
    }
}

// What is known in the end.
void Search::conclude(std::vector<Part> &left) {
    work_ += need_.take_work();
    outcome_.value = value_;
    outcome_.work = work_;
    outcome_.passes = passes_;
    outcome_.bound = outcome_.finished ? value_ : kNegativeInfinity;
    for (const Part &part : left) {
        double bound = kInfinity;
        for (const Pass &one : passes_)
            bound = std::min(bound, need_.ceiling(one.most + tolerance(one), one.prices, part.box));
        outcome_.bound = std::max(outcome_.bound, bound);
    }
    if (!outcome_.finished && !outcome_.impossible && left.empty()) outcome_.bound = kInfinity;
    outcome_.bound = std::max(std::min(outcome_.bound, bound_), value_);
    double slack = 0;
    for (const Pass &one : passes_) slack = std::max(slack, 2 * tolerance(one));
    std::erase_if(outcome_.candidates,
                  [&](const auto &one) { return !(one.second.score >= need_.at(value_, one.first) - slack); });
}

}  // namespace tallytree::bounds
