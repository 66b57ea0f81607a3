// How the sums of a step's factors are laid out, and how each factor is walked along them.
#pragma once

#include <utility>

#include "plan/skeleton.h"

namespace tallytree {

class LocalTable {
  public:
    void begin(std::span<const std::int32_t> cardinalities) {
        cardinalities_ = cardinalities;
        strides_.clear();
        size_ = 1;
    }

    // Makes a variable the outermost one so far.
    void add(std::int32_t variable);

    Index size() const { return size_; }
    // How many entries lie between neighbouring states; 0 where it does not mention the variable.
    Index stride(std::int32_t variable) const;
    // Appends the walk of a factor, neighbouring loops made one where they can be.
    void push_walk(std::span<const std::int32_t> scope, Ragged<FactorLoop> &loops) const;

  private:
    std::span<const std::int32_t> cardinalities_;
    std::vector<std::pair<std::int32_t, Index>> strides_;  // innermost variable first
    Index size_ = 1;
};

// Whether the largest factor between the eliminated variable and a fresh one has the latter first. Plain MAP runs along
// the fresh states, so that there the question does not arise.
bool lies_turned(std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs, std::int32_t variable,
                 std::span<const std::int32_t> fresh);

// Whether one of the factors mentions one of the variables.
bool mentions_any(std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs,
                  std::span<const std::int32_t> variables);

}  // namespace tallytree
