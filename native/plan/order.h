// Elimination orders by greedy heuristics on the interaction graph.
#pragma once

#include "common.h"

namespace tallytree {

enum class OrderMethod : int { MinFill = 0, MinDegree = 1, MinWeight = 2, Natural = 3, Sweep = 4, MinTally = 5 };

// `seed` 0 breaks ties by the variable's number; any other seed breaks them at random.
std::vector<std::int32_t> elimination_order(std::span<const std::int32_t> cardinalities,
                                            std::span<const ScopeBlock> scopes, OrderMethod method, std::uint64_t seed,
                                            const Poll &poll);

}  // namespace tallytree
