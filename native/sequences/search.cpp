#include "sequences/search.h"

#include <algorithm>
#include <cmath>

#include "sequences/units.h"

namespace tallytree::sequences {
namespace {

constexpr Index kBeam = 40;
constexpr Index kFirst = 32, kMore = 8;  // a box is first looked through for few cells, then for more
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::unique_ptr<Counter> counter_of(const Problem &problem, const Sentences &sentences, const Counted &counted) {
    const References &references = problem.references;
    if (problem.kind == Kind::RougeL) return std::make_unique<RowCounter>(sentences, counted.histories, references);
    return std::make_unique<GramCounter>(sentences, counted.histories, tallies_of(problem), references, counted.ends);
}

}  // namespace

Counted::Counted(const Problem &problem) : histories(problem.chain->words, units_of(problem, ends)) {}

LengthSearch::LengthSearch(const Problem &problem, const Counted &counted, Index length, Incumbent &best,
                           Outcome &outcome, const Limits &limits, Meter &meter)
    : problem_(problem),
      histories_(counted.histories),
      sentences_(*problem.chain, length),
      measure_(measure_of(problem, length)),
      counter_(counter_of(problem, sentences_, counted)),
      messages_(sentences_, histories_, *problem.kernels),
      best_(best),
      outcome_(outcome),
      limits_(limits),
      meter_(meter),
      need_(measure_, problem.objective),
      band_(sentences_, histories_, messages_, *counter_, measure_, problem.objective, meter),
      chain_(problem.kind == Kind::Bleu && problem.clip),
      first_split_(outcome.splits.size()) {
    sizes_ = sentences_.magnitude(*problem.kernels) + problem.objective.margin + std::abs(problem.objective.truth);
    unit_ = 64 * static_cast<double>(length + 8) * std::numeric_limits<double>::epsilon();
    most_price_ = 4 * sizes_;
    whole_ = whole();
}

void LengthSearch::offer(const std::vector<std::int64_t> &labelling) {
    const Tallies tallies = counter_->count(labelling);
    const double score = sentences_.score(labelling), value = problem_.objective(score, measure_(tallies));
    if (value > best_value_) {
        best_value_ = value;
        best_tallies_ = tallies;
    }
    if (!(value > best_.value)) return;
    best_.value = value;
    best_.score = score;
    best_.reached = tallies;
    best_.labelling.assign(labelling.begin(), labelling.begin() + sentences_.length);
    for (Index t = sentences_.length; t < problem_.chain->size(); t++)
        best_.labelling.push_back(problem_.chain->end[t]);
}

// What each tally can be.
Box LengthSearch::whole() const {
    Box box;
    Prices sum{}, units{};
    for (const Unit &unit : histories_.units()) {
        sum[unit.tally] += unit.cap == kUncapped ? kInfinity : static_cast<double>(unit.cap);
        units[unit.tally]++;
    }
    for (Index n = 0; n < measure_.tallies(); n++) {
        const double reference = problem_.kind == Kind::RougeL ? units[n] : kInfinity;
        const Index order = problem_.kind == Kind::RougeN ? problem_.order - 1 : measure_.geometric() ? n : 0;
        const double places = static_cast<double>(std::max<Index>(sentences_.length - order, 0));
        const double each = problem_.kind == Kind::RougeN ? static_cast<double>(problem_.references.size()) : 1.0;
        box.high[n] = static_cast<std::int32_t>(std::min({sum[n], reference, places * each}));
        if (units[n] == 0) box.high[n] = 0;
    }
    if (measure_.geometric()) box.low[measure_.tallies() - 1] = 1;
    return box;
}

void LengthSearch::add(Split split) { outcome_.splits.push_back(std::move(split)); }

double LengthSearch::first() {
    if (problem_.kind == Kind::RougeL) {  // equal places are a good guess
        add(counter_->split({}));
        return pass(need_.level(std::max(best_.value, 0.0), best_tallies_), 0).most;
    }
    add(Split(sentences_.length, histories_.units().size(), 1.0));
    return pass({}, 0).most;
}

void LengthSearch::record(const Pass &pass, const Box &box, double budget, Index cells) {
    outcome_.parts.push_back(
        {sentences_.length, first_split_ + pass.split, pass.prices, pass.most, box, budget, cells});
}

// Sentences without an n-gram of the longest kind: all others are forbidden, and no tally matters. True where only
// such sentences are possible.
bool LengthSearch::without_longest() {
    Prices prices{};
    const Index longest = measure_.tallies() - 1;
    prices[longest] = kInfinity;
    const Pass &found = pass(prices, 0);
    Box box = whole_;
    box.low[longest] = box.high[longest] = 0;
    record(found, box, found.most == kNegativeInfinity ? kNegativeInfinity : budget(found, box), 0);
    return whole_.high[longest] == 0;
}

BandResult LengthSearch::look(const Pass &chosen, const Box &box, const BandLimits &limits) {
    const Pass at = pass(chosen.prices, chosen.split);
    BandResult found = band_.run({at, split(at.split), box, best_.value, tolerance(at), chain_}, limits);
    outcome_.cells += found.cells;
    outcome_.bytes = std::max(outcome_.bytes, found.bytes);
    if (!found.labelling.empty()) offer(found.labelling);
    return found;
}

// Cut a box where the worse half has the smallest budget; false where that does not help.
bool LengthSearch::halve(const Todo &todo, const Pass &pass, double whole, std::vector<Todo> &left) const {
    double least = kInfinity;
    Box low, high;
    for (Index n = 0; n < measure_.tallies(); n++) {
        const std::int32_t a = todo.box.low[n], b = todo.box.high[n];
        if (a == b) continue;
        for (const std::int32_t middle : {(a + b) / 2, static_cast<std::int32_t>(std::sqrt(1.0 * a * b))}) {
            if (middle < a || middle >= b) continue;
            Box below = todo.box, above = todo.box;
            below.high[n] = middle;
            above.low[n] = middle + 1;
            const double x = budget(pass, below), y = budget(pass, above),
                         worse = std::max(x, y) + 0.2 * std::min(x, y);
            if (worse >= least) continue;
            least = worse;
            low = below;
            high = above;
        }
    }
    if (least == kInfinity) return false;
    const Index limit = std::max(budget(pass, low), budget(pass, high)) > 0.9 * whole ? 2 * todo.limit : todo.limit;
    left.push_back({low, limit, budget(pass, low)});
    left.push_back({high, limit, budget(pass, high)});
    return true;
}

// Prove a box, or put it or its halves back on the list; false where the limits are reached.
bool LengthSearch::settle(Todo todo, std::vector<Todo> &left) {
    if (!shrink(todo.box)) return true;
    improve(todo.box, todo.budget, 16);
    if (!shrink(todo.box)) return true;
    const std::size_t at = best_pass(todo.box, todo.budget);
    if (todo.budget <= unit_ / 64 * sizes_) {  // at the rounding of sums
        record(passes_[at], todo.box, todo.budget, 0);
        return true;
    }
    const double left_cells = limits_.cells - static_cast<double>(outcome_.cells);
    const Index most = static_cast<Index>(std::min<double>(static_cast<double>(todo.limit), left_cells));
    const BandResult found = look(passes_[at], todo.box, {most, limits_.bytes, 0});
    if (found.complete) {
        record(passes_[at], todo.box, todo.budget, found.cells);
        return true;
    }
    if (most < todo.limit || static_cast<double>(outcome_.cells) >= limits_.cells) {
        left.push_back(todo);
        return false;
    }
    const bool better = better_shares(todo.box);
    const std::size_t now = best_pass(todo.box, todo.budget);
    if (todo.budget < 0.7 * todo.met) {
        look(passes_[now], todo.box, {8 * limits_.few, limits_.bytes, kBeam});
        todo.met = todo.budget;
    }
    if (!better && todo.limit >= limits_.few && halve(todo, passes_[at], todo.budget, left)) return true;
    if (!better) todo.limit *= kMore;
    left.push_back(todo);
    return found.bytes < limits_.bytes;
}

// The most that a sentence with tallies in a box can be worth, by a pass: the value that nothing needs less for.
double LengthSearch::value_of(const Pass &pass, const Box &box) const {
    double low = best_.value, high = low + 1;
    const auto reached = [&](double value) {
        return pass.most - need_.least(value, pass.prices, box, chain_) >= -tolerance(pass);
    };
    while (reached(high) && high < 1e300) high = low + 2 * (high - low);
    for (int i = 0; i < 200 && high - low > 1e-12 * std::abs(high); i++)
        (reached((low + high) / 2) ? low : high) = (low + high) / 2;
    return high;
}

bool LengthSearch::run() {
    if (passes_.empty()) first();
    if (passes_[0].most == kNegativeInfinity) return true;
    if (measure_.geometric() && without_longest()) return true;
    if (Split likely = counter_->split(passes_[0].labelling); likely.share != split(0).share) add(std::move(likely));
    fixed_point();
    // Passes of BLEU take as long as hundreds of cells, so that shares are not looked for before a whole band.
    const Index first = measure_.geometric() ? limits_.few : std::max<Index>(limits_.few / kFirst, 1);
    std::vector<Todo> left{{whole_, first, kInfinity}};
    bool going = true;
    while (going && !left.empty()) {
        std::stable_sort(left.begin(), left.end(), [](const Todo &a, const Todo &b) { return a.budget < b.budget; });
        const Todo todo = left.back();
        left.pop_back();
        going = settle(todo, left);
    }
    bound_ = best_.value;
    for (Todo &todo : left) {
        if (!shrink(todo.box)) continue;
        double budget = 0;
        bound_ = std::max(bound_, value_of(passes_[best_pass(todo.box, budget)], todo.box));
    }
    return left.empty();
}

}  // namespace tallytree::sequences
