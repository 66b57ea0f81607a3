// What is made of the sums of all tallies of a chain: an objective, with the weight of each tally in its derivatives,
// or the sums themselves.
#include <algorithm>
#include <cmath>

#include "bulk/tallied_chain.h"

namespace tallytree {

// Calls `use(cell, tally)` for all cells of the last box.
template <class Use>
void TalliedChain::each_tally(Use use) const {
    const Box &box = boxes_[length_ - 1];
    for (Index cell = 0; cell < box.cells; cell++) {
        Index tally[kMostTallied] = {}, rest = cell;
        for (Index p = 0; p < statistics_; p++) {
            tally[p] = box.low[p] + rest / box.stride[p];
            rest %= box.stride[p];
        }
        use(cell, tally);
    }
}

SureSums TalliedChain::sure() const {
    constexpr double kEnough = 60;      // exp(-60) is far below rounding
    constexpr double kVanishing = 730;  // exp(-730), divided by a number of labels, is still a number
    const double smallest = forbids_ ? kSmallestAllowedLog : kSmallestLog;
    const bool complete = !dropped_ && width_ + smallest <= kVanishing;
    return {forbids_ ? 0 : std::exp(width_ + kEnough - kSmallestLog), complete};
}

// The sum of each tally, on the scale of all of them.
TalliedChain::Row TalliedChain::likely() {
    const Box &box = boxes_[length_ - 1];
    Row found(box.cells, 0.0);
    for (Index s = 0; s < states_; s++)
        for (Index i = 0; i < box.cells; i++) found[i] += row(length_ - 1, s)[i];
    return found;
}

// The tallies of the last box with their numbers in a table; 0, and not inside, where it has none.
TallyWeights TalliedChain::cost_cells(const TallyGrid &grid, std::span<const double> numbers) {
    const Index cells = boxes_[length_ - 1].cells;
    TallyWeights found{likely(), Row(cells, 0.0), Row(cells, 0.0), std::vector<std::uint8_t>(cells)};
    each_tally([&](Index cell, const Index *tally) {
        found.inside[cell] = grid.has(tally);
        if (found.inside[cell]) found.costs[cell] = numbers[grid.place(tally)];
    });
    return found;
}

// The value, and the weight of each tally in the derivatives; false where it is left to logarithms.
bool TalliedChain::root(double &value) {
    if (question_.objective == Objective::Sums) return put_sums();
    if (question_.objective != Objective::Given) return weigh(value);
    TallyWeights tallies = cost_cells(*question_.grid, question_.gains);
    const bool found = tallies.given(sure());
    weights_ = std::move(tallies.weights);
    return found;
}

bool TalliedChain::weigh(double &value) {
    const Objective objective = question_.objective;
    TallyWeights tallies = cost_cells(*item_->losses, item_->losses->losses);
    for (std::size_t i = 0; i < tallies.likely.size(); i++)
        if (!tallies.inside[i] && tallies.likely[i] != 0 && objective != Objective::Evidence)
            return false;  // which is an error there
    bool found = true;
    if (objective == Objective::SoftmaxMargin) found = tallies.softmax_margin(item_->losses->margin, value);
    else if (objective == Objective::Evidence) found = tallies.evidence(sure(), value);
    else tallies.risk(value);
    if (objective == Objective::SoftmaxMargin) value += log_sum_;
    weights_ = std::move(tallies.weights);
    return found && std::isfinite(value);
}

bool TalliedChain::put_sums() {
    const Row sums = likely();
    const SureSums certain = sure();
    if (!std::all_of(sums.begin(), sums.end(), [&](double sum) { return certain.holds(sum); })) return false;
    each_tally([&](Index cell, const Index *tally) {
        if (sums[cell] > 0) question_.sums[question_.grid->place(tally)] = std::log(sums[cell]) + log_sum_;
    });
    return true;
}

}  // namespace tallytree
