// The cost of the steps of a program, before tallies are known: a table that covers n scopes of a statistic is assumed
// to have n * scale + 1 tallies. In add-max operations, as measured on rows in cache.
#pragma once

#include <algorithm>

#include "plan/plan_shape.h"

namespace tallytree {

class CostModel {
  public:
    // `tables`: about how many there will be.
    void begin(const PlanShape &shape, std::size_t tables) {
        shape_ = &shape;
        count_ = std::ssize(shape.caps);
        covered_.clear();
        covered_.reserve(tables * shape.caps.size());
        tallies_.clear();
        tallies_.reserve(tables);
    }

    double tallies(std::int32_t table) const { return tallies_[table]; }

    bool counts_for(std::int32_t table, Index statistic) const { return covered_[table * count_ + statistic] > 0; }

    // Of each table with so many states.
    void cells(std::span<const double> states, std::vector<double> &cells) const {
        cells.resize(states.size());
        for (std::size_t t = 0; t < states.size(); t++) cells[t] = states[t] * tallies_[t];
    }

    double join(std::int32_t a, std::int32_t b, double states) const {
        return kStepPrice + states * std::min(tallies(a) * row_price(b), tallies(b) * row_price(a));
    }
    // `states` of the input with everything that the step brings in, `kept` of its output.
    double eliminate(std::int32_t a, double states, double kept) const {
        return kStepPrice + states * row_price(a) + (count_ ? kept * kShortRow : 0);
    }

    // The next table covers the scopes that its inputs do, and those of the shifts that it takes.
    void add_table(std::span<const std::int32_t> inputs, std::span<const FactorRef> shifts) {
        const std::size_t at = covered_.size();
        for (Index k = 0; k < count_; k++) {
            Index covered = 0;
            for (auto input : inputs) covered += covered_[input * count_ + k];
            covered_.push_back(covered);
        }
        for (auto ref : shifts) covered_[at + shape_->statistic_of[ref.block]]++;
        double tallies = 1;
        for (Index k = 0; k < count_; k++)
            tallies *= static_cast<double>(std::min(covered_[at + k] * shape_->scales[k], shape_->caps[k])) + 1;
        tallies_.push_back(tallies);
    }

  private:
    static constexpr double kShortRow = 16;
    static constexpr double kStepPrice = 400;

    // The cost of visiting a row of tallies: short rows cost as much as a few vectors.
    double row_price(std::int32_t table) const { return count_ == 0 ? 1 : std::max(tallies(table), kShortRow); }

    const PlanShape *shape_ = nullptr;
    Index count_ = 0;
    std::vector<Index> covered_;   // per table and statistic: scopes
    std::vector<double> tallies_;  // per table
};

}  // namespace tallytree
