#include "plan/buckets.h"

#include <algorithm>

namespace tallytree {

Buckets::Buckets(std::span<const ScopeBlock> blocks, std::span<const std::int32_t> position,
                 std::vector<FactorRef> &constants)
    : blocks_(blocks) {
    std::vector<std::int32_t> first;  // a counting sort by it
    std::vector<FactorRef> refs;
    std::vector<Index> count(position.size() + 1, 0);
    std::size_t all = 0;
    for (const ScopeBlock &block : blocks) all += static_cast<std::size_t>(block.count);
    first.reserve(all);
    refs.reserve(all);
    for (std::int32_t block = 0; block < static_cast<std::int32_t>(blocks.size()); block++)
        for (std::int32_t k = 0; k < blocks[block].count; k++) {
            if (blocks[block].arity == 0) {
                constants.push_back({block, k});
                continue;
            }
            const auto scope = blocks[block].row(k);
            std::int32_t at = position[scope[0]];
            for (auto v : scope.subspan(1)) at = std::min(at, position[v]);
            first.push_back(at);
            refs.push_back({block, k});
            count[at + 1]++;
        }
    for (std::size_t i = 1; i < count.size(); i++) count[i] += count[i - 1];
    refs_.begin.assign(count.begin(), count.end());
    refs_.data.resize(refs.size());
    for (std::size_t i = 0; i < refs.size(); i++) refs_.data[count[first[i]]++] = refs[i];
    taken_.assign(refs.size(), false);
}

void Buckets::left(Index bucket, std::vector<FactorRef> &refs) const {
    refs.clear();
    for (Index i = refs_.begin[bucket]; i < refs_.begin[bucket + 1]; i++)
        if (!taken_[i]) refs.push_back(refs_.data[i]);
}

std::optional<FactorRef> Buckets::take_unary(Index bucket) {
    for (Index i = refs_.begin[bucket]; i < refs_.begin[bucket + 1]; i++) {
        if (taken_[i] || blocks_[refs_.data[i].block].arity != 1) continue;
        taken_[i] = true;
        return refs_.data[i];
    }
    return std::nullopt;
}

}  // namespace tallytree
