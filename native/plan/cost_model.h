// The cost of the steps of a program, before tallies are known: a table that covers n scopes of a statistic is assumed
// to have n * scale + 1 tallies. In add-max operations, as measured on rows in cache.
#pragma once

#include <algorithm>

#include "common.h"

namespace tallytree {

class CostModel {
  public:
    CostModel(std::span<const Index> caps, std::span<const Index> scales)
        : caps_(caps.begin(), caps.end()), scales_(scales.begin(), scales.end()) {}

    double tallies(std::int32_t table) const {
        double r = 1;
        const Index *covered = covered_.data() + table * count();
        for (Index k = 0; k < count(); k++) r *= static_cast<double>(std::min(covered[k] * scales_[k], caps_[k])) + 1;
        return r;
    }

    // Of each table with so many states.
    std::vector<double> cells(std::vector<double> states) const {
        for (std::size_t t = 0; t < states.size(); t++) states[t] *= tallies(static_cast<std::int32_t>(t));
        return states;
    }

    double join(std::int32_t a, std::int32_t b, double states) const {
        return kStepPrice + states * std::min(tallies(a) * row_price(b), tallies(b) * row_price(a));
    }
    // `states` of the input with everything that the step brings in, `kept` of its output.
    double eliminate(std::int32_t a, double states, double kept) const {
        return kStepPrice + states * row_price(a) + (count() ? kept * kShortRow : 0);
    }

    // The next table covers the scopes that its inputs do.
    void add_table(std::span<const std::int32_t> inputs) {
        const auto at = static_cast<Index>(covered_.size());
        covered_.resize(at + count(), 0);
        for (auto input : inputs)
            for (Index k = 0; k < count(); k++) covered_[at + k] += covered_[input * count() + k];
    }
    // The last table covers one more scope of a statistic.
    void add_scope(std::int32_t statistic) { covered_[static_cast<Index>(covered_.size()) - count() + statistic]++; }

  private:
    static constexpr double kShortRow = 16;
    static constexpr double kStepPrice = 400;

    Index count() const { return static_cast<Index>(caps_.size()); }
    // The cost of visiting a row of tallies: short rows cost as much as a few vectors.
    double row_price(std::int32_t table) const { return count() == 0 ? 1 : std::max(tallies(table), kShortRow); }

    std::vector<Index> caps_, scales_;
    std::vector<Index> covered_;  // per table and statistic: scopes
};

}  // namespace tallytree
