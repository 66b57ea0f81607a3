// The scopes of a problem, which are all that its orders and programs depend on, and what these have in common.
#pragma once

#include <mutex>

#include "plan/adjacency.h"
#include "plan/incidence.h"

namespace tallytree {

// `scales[k]` is about how far one scope of statistic k moves its tally. `statistic_of[i]` says which statistic block i
// of `shifts` belongs to.
struct PlanShape {
    PlanShape(std::span<const std::int32_t> cardinalities, std::span<const ScopeBlock> scores,
              std::span<const ScopeBlock> shifts, std::span<const std::int32_t> statistic_of,
              std::span<const Index> caps, std::span<const Index> scales);

    const std::vector<std::int32_t> cardinalities;
    const OwnedScopes score_scopes, shift_scopes;
    const std::vector<std::int32_t> statistic_of;
    const std::vector<Index> caps, scales;
    const Incidence scores, shifts;

    // Variables that a scope mentions together are connected; natural orders do not need this.
    const Adjacency &graph() const;
    // Whether they are connected without cycles.
    bool is_forest() const;
    // How many sets of variables are not connected.
    Index parts() const;

  private:
    struct Links {
        Index count = 0;     // that connect two parts
        bool again = false;  // whether a scope connects what is connected: a cycle, or the same edge
    };
    Links links() const;

    mutable std::once_flag connected_;
    mutable Adjacency graph_;
};

}  // namespace tallytree
