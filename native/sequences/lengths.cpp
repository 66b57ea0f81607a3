// All lengths that a sentence can have, the most promising first.
#include <algorithm>
#include <cmath>

#include "sequences/search.h"
#include "sequences/units.h"

namespace tallytree::sequences {
namespace {

// The lengths at which end labels can fill up the rest.
std::vector<Index> lengths_of(const Chain &chain) {
    std::vector<Index> lengths{chain.size()};
    for (Index t = chain.size() - 1; t >= 0 && chain.end[t] >= 0; t--) lengths.push_back(t);
    return lengths;
}

// The sentence without words: nothing to search.
void offer_empty(const Problem &problem, Incumbent &best) {
    const Sentences empty(problem.chain, 0);
    bool same = false;
    for (const auto &reference : problem.references) same |= reference.empty();
    const double measure = problem.kind == Kind::Bleu ? same : measure_of(problem, 0)({});
    const double value = problem.objective(empty.tail[0], measure);
    if (empty.tail[0] == kNegativeInfinity || !(value > best.value)) return;
    best.value = value;
    best.score = empty.tail[0];
    best.reached = {};
    best.labelling.assign(problem.chain.end.begin(), problem.chain.end.end());
}

void offer_start(const Problem &problem, const std::vector<std::int64_t> &start, Incumbent &best, Outcome &outcome,
                 const Limits &limits, Meter &meter) {
    Index length = 0;
    while (length < problem.chain.size() && start[length] != problem.chain.end[length]) length++;
    for (Index t = length; t < problem.chain.size(); t++)
        if (start[t] != problem.chain.end[t]) return;
    if (length == 0) return;  // met anyway
    LengthSearch(problem, length, best, outcome, limits, meter).offer(start);
}

// With slack scaling a larger loss is worse where the value is negative: no bound here is made for that. What is below
// 0 by rounding is 0.
bool askable(const Objective &objective, double value) {
    const double rounding = 1e-13 * (1 + objective.margin + std::abs(objective.truth));
    return objective.scaling == Scaling::Margin || value >= -rounding;
}

}  // namespace

Outcome search(const Problem &problem, const Limits &limits, const Poll &poll) {
    Outcome outcome;
    Incumbent best;
    Meter meter(poll);
    outcome.tallies = tallies_of(problem);
    GramCounter::Ends unused_ends;
    outcome.units = units_of(problem, unused_ends);
    for (const auto &start : problem.starts) offer_start(problem, start, best, outcome, limits, meter);
    std::vector<std::pair<double, Index>> order;
    for (Index length : lengths_of(problem.chain)) {
        if (length == 0) {
            offer_empty(problem, best);
            continue;
        }
        Outcome unused;
        const double most = LengthSearch(problem, length, best, unused, limits, meter).first();
        if (most != kNegativeInfinity) order.emplace_back(most, length);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    outcome.finished = askable(problem.objective, best.value);
    double bound = outcome.finished ? kNegativeInfinity : -kNegativeInfinity;
    for (const auto &[most, length] : order) {
        if (!askable(problem.objective, best.value)) break;
        LengthSearch one(problem, length, best, outcome, limits, meter);
        outcome.finished &= one.run();
        bound = std::max(bound, one.bound());
    }
    outcome.value = best.value;
    outcome.score = best.score;
    outcome.reached = best.reached;
    outcome.bound = outcome.finished ? best.value : std::max(bound, best.value);
    outcome.labelling = std::move(best.labelling);
    return outcome;
}

}  // namespace tallytree::sequences
