// The factors that mention each variable; programs take each of them once.
#pragma once

#include <optional>
#include <utility>

#include "plan/skeleton.h"

namespace tallytree {

class Incidence {
  public:
    Incidence(Index variables, std::span<const ScopeBlock> blocks);

    std::span<const ScopeBlock> blocks() const { return blocks_; }
    // In the order of blocks and rows.
    std::span<const FactorRef> operator[](Index variable) const { return refs_[variable]; }
    // Those over it alone: a variable may have many others.
    std::span<const FactorRef> single(Index variable) const { return single_[variable]; }
    // Factors without variables.
    const std::vector<FactorRef> &constants() const { return constants_; }

    Index count() const { return first_.back(); }
    // Counts through the rows of all blocks.
    Index number(FactorRef ref) const { return first_[ref.block] + ref.row; }

  private:
    std::span<const ScopeBlock> blocks_;
    Ragged<FactorRef> refs_, single_;
    std::vector<FactorRef> constants_;
    std::vector<Index> first_;  // the number of each block's first row
};

// The factors that no step of a program has taken yet.
class Untaken {
  public:
    void begin(const Incidence &factors) {
        factors_ = &factors;
        taken_.assign(factors.count(), 0);
    }

    // Takes all that mention a variable.
    void take(Index variable, std::vector<FactorRef> &refs) {
        refs.clear();
        for (const FactorRef ref : (*factors_)[variable])
            if (!std::exchange(taken_[factors_->number(ref)], 1)) refs.push_back(ref);
    }
    // Takes a factor over one variable alone, if there is one.
    std::optional<FactorRef> take_unary(Index variable) {
        for (const FactorRef ref : factors_->single(variable))
            if (!std::exchange(taken_[factors_->number(ref)], 1)) return ref;
        return std::nullopt;
    }

  private:
    const Incidence *factors_ = nullptr;
    std::vector<char> taken_;  // by number
};

}  // namespace tallytree
