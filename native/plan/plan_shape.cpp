#include "plan/plan_shape.h"

#include <numeric>

namespace tallytree {

PlanShape::PlanShape(std::span<const std::int32_t> cardinalities_, std::span<const ScopeBlock> scores_,
                     std::span<const ScopeBlock> shifts_, std::span<const std::int32_t> statistic_of_,
                     std::span<const Index> caps_, std::span<const Index> scales_)
    : cardinalities(cardinalities_.begin(), cardinalities_.end()),
      score_scopes(scores_),
      shift_scopes(shifts_),
      statistic_of(statistic_of_.begin(), statistic_of_.end()),
      caps(caps_.begin(), caps_.end()),
      scales(scales_.begin(), scales_.end()),
      scores(std::ssize(cardinalities), score_scopes.blocks),
      shifts(std::ssize(cardinalities), shift_scopes.blocks) {}

const Adjacency &PlanShape::graph() const {
    std::call_once(connected_, [&] {
        std::vector<ScopeBlock> blocks = score_scopes.blocks;
        blocks.insert(blocks.end(), shift_scopes.blocks.begin(), shift_scopes.blocks.end());
        graph_ = Adjacency(std::ssize(cardinalities), blocks);
    });
    return graph_;
}

PlanShape::Links PlanShape::links() const {
    std::vector<std::int32_t> root(cardinalities.size());  // of each component, by way of others
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](std::int32_t v) {
        while (root[v] != v) v = root[v] = root[root[v]];
        return v;
    };
    Links links;
    for (const auto *scopes : {&score_scopes, &shift_scopes})
        for (const ScopeBlock &block : scopes->blocks)
            for (Index k = 0; k < (block.arity > 1 ? block.count : 0); k++)
                for (auto v : block.row(k).subspan(1)) {
                    const auto a = find(block.row(k)[0]), b = find(v);
                    links.again |= a == b || block.arity > 2;
                    links.count += a != b;
                    root[std::max(a, b)] = std::min(a, b);
                }
    return links;
}

bool PlanShape::is_forest() const {
    const Links found = links();
    return !found.again || graph().edges() == found.count;
}

Index PlanShape::parts() const { return std::ssize(cardinalities) - links().count; }

}  // namespace tallytree
