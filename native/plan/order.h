// Elimination orders by greedy heuristics on the interaction graph.
#pragma once

#include "plan/plan_shape.h"

namespace tallytree {

enum class OrderMethod : int {
    MinFill = 0,
    MinDegree = 1,
    MinWeight = 2,
    Natural = 3,
    Sweep = 4,
    MinTally = 5,
    MinOpen = 6
};

// `seed` 0 breaks ties by the variable's number; any other seed breaks them at random.
std::vector<std::int32_t> elimination_order(const PlanShape &shape, OrderMethod method, std::uint64_t seed,
                                            const Poll &poll);

}  // namespace tallytree
