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
    const Sentences empty(*problem.chain, 0);
    bool same = false;
    for (const auto &reference : problem.references) same |= reference.empty();
    const double measure = problem.kind == Kind::Bleu ? same : measure_of(problem, 0)({});
    const double value = problem.objective(empty.tail[0], measure);
    if (empty.tail[0] == kNegativeInfinity || !(value > best.value)) return;
    best.value = value;
    best.score = empty.tail[0];
    best.reached = {};
    best.labelling.assign(problem.chain->end.begin(), problem.chain->end.end());
}

// How many words a labelling has, or 0 where its end labels are not all at its end.
Index length_of(const Chain &chain, const std::vector<std::int64_t> &labelling) {
    Index length = 0;
    while (length < chain.size() && labelling[length] != chain.end[length]) length++;
    for (Index t = length; t < chain.size(); t++)
        if (labelling[t] != chain.end[t]) return 0;
    return length;
}

// With slack scaling a larger loss is worse where the value is negative: no bound here is made for that. What is below
// 0 by rounding is 0.
bool askable(const Objective &objective, double value) {
    const double rounding = 1e-13 * (1 + objective.margin + std::abs(objective.truth));
    return objective.scaling == Scaling::Margin || value >= -rounding;
}

}  // namespace

Outcome search(const Problem &problem, const Limits &limits, const Poll &poll) {
    Outcome outcome, unused;
    Incumbent best;
    Meter meter(poll);
    const Counted counted(problem);
    outcome.tallies = tallies_of(problem);
    outcome.units = counted.histories.units();
    const std::vector<Index> lengths = lengths_of(*problem.chain);
    // All begin with a pass; only a single one is kept.
    Outcome &begun = lengths.size() > 1 ? unused : outcome;
    std::unique_ptr<LengthSearch> one;
    std::vector<std::pair<double, Index>> order;
    const auto begin = [&](Index length, Outcome &into) {
        one = std::make_unique<LengthSearch>(problem, counted, length, best, into, limits, meter);
    };
    for (Index length : lengths) {
        if (length == 0) {
            offer_empty(problem, best);
            continue;
        }
        unused = {};
        begin(length, begun);
        for (const auto &start : problem.starts)
            if (length_of(*problem.chain, start) == length) one->offer(start);
        const double most = one->first();
        if (most != kNegativeInfinity) order.emplace_back(most, length);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    outcome.finished = askable(problem.objective, best.value);
    double bound = outcome.finished ? kNegativeInfinity : -kNegativeInfinity;
    for (const auto &[most, length] : order) {
        if (!askable(problem.objective, best.value)) break;
        if (lengths.size() > 1) begin(length, outcome);
        outcome.finished &= one->run();
        bound = std::max(bound, one->bound());
    }
    outcome.value = best.value;
    outcome.score = best.score;
    outcome.reached = best.reached;
    outcome.bound = outcome.finished ? best.value : std::max(bound, best.value);
    outcome.labelling = std::move(best.labelling);
    return outcome;
}

}  // namespace tallytree::sequences
