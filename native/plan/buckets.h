// Factors by the first of their variables to be eliminated; steps take them from here.
#pragma once

#include <optional>

#include "plan/skeleton.h"

namespace tallytree {

class Buckets {
  public:
    Buckets() = default;
    // `position` is when each variable is eliminated; factors without variables are `constants`.
    Buckets(std::span<const ScopeBlock> blocks, std::span<const std::int32_t> position,
            std::vector<FactorRef> &constants);

    // The remaining factors, in the order of blocks and rows.
    void left(Index bucket, std::vector<FactorRef> &refs) const;
    // Takes a factor over one variable alone, if there is one.
    std::optional<FactorRef> take_unary(Index bucket);

  private:
    std::span<const ScopeBlock> blocks_;
    Ragged<FactorRef> refs_;
    std::vector<bool> taken_;  // per entry of refs_
};

}  // namespace tallytree
