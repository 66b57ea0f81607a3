#include "plan/incidence.h"

#include <limits>

namespace tallytree {

// The factors of up to so many variables, by variable.
static Ragged<FactorRef> listed(Index variables, std::span<const ScopeBlock> blocks, Index most) {
    Ragged<FactorRef> refs;
    auto &begin = refs.begin;  // where the lists end, while they are filled
    begin.assign(variables + 2, 0);
    for (const ScopeBlock &block : blocks)
        for (Index i = 0; i < (block.arity <= most ? block.count * block.arity : 0); i++) begin[block.data[i] + 2]++;
    for (std::size_t v = 2; v < begin.size(); v++) begin[v] += begin[v - 1];
    refs.data.resize(begin.back());
    for (std::int32_t block = 0; block < static_cast<std::int32_t>(blocks.size()); block++)
        for (std::int32_t k = 0; k < (blocks[block].arity <= most ? blocks[block].count : 0); k++)
            for (auto v : blocks[block].row(k)) refs.data[begin[v + 1]++] = {block, k};
    begin.pop_back();
    return refs;
}

Incidence::Incidence(Index variables, std::span<const ScopeBlock> blocks)
    : blocks_(blocks),
      refs_(listed(variables, blocks, std::numeric_limits<Index>::max())),
      single_(listed(variables, blocks, 1)),
      first_(1, 0) {
    for (std::int32_t block = 0; block < static_cast<std::int32_t>(blocks.size()); block++) {
        first_.push_back(first_.back() + blocks[block].count);
        for (std::int32_t k = 0; k < (blocks[block].arity == 0 ? blocks[block].count : 0); k++)
            constants_.push_back({block, k});
    }
}

}  // namespace tallytree
