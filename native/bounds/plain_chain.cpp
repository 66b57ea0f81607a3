#include "bounds/plain_chain.h"

namespace tallytree::bounds {

std::optional<PlainChain> PlainChain::of(const Skeleton &skeleton, std::span<const TableBlock<double>> scores,
                                         std::span<const TableBlock<std::int64_t>> counts) {
    const auto length = static_cast<Index>(skeleton.cardinalities.size());
    const auto statistics = static_cast<std::size_t>(skeleton.statistics);
    if (length < 2 || scores.size() != 2 || statistics > kMostStatistics || counts.size() != statistics) return {};
    const std::int32_t states = skeleton.cardinalities[0];
    if (states < 2 || states > 512) return {};
    for (const auto n : skeleton.cardinalities)
        if (n != states) return {};
    const auto &scopes = skeleton.score_scopes.blocks;
    if (!is_chain_block(scopes[0], length, 1) || !is_chain_block(scopes[1], length, 2)) return {};
    PlainChain chain{length, states, skeleton.statistics, scores[0], scores[1], {}};
    for (std::size_t b = 0; b < counts.size(); b++) {
        if (!is_chain_block(skeleton.shift_scopes.blocks[b], length, 1)) return {};
        chain.counts[skeleton.statistic_of[b]] = counts[b];
    }
    for (std::size_t p = 0; p < statistics; p++)
        if (!chain.counts[p].data) return {};
    return chain;
}

double PlainChain::operations() const {
    const auto n = static_cast<double>(states);
    return static_cast<double>(length - 1) * n * n + 2 * n;
}

std::int32_t RowNumbers::number(std::uint64_t sum) {
    Slot *slot = &find(sum);
    if (slot->number >= 0) return slot->number;
    if (2 * static_cast<std::size_t>(size_) >= slots_.size()) {
        const auto before = std::exchange(slots_, std::vector<Slot>(4 * slots_.size()));
        for (const Slot &one : before)
            if (one.number >= 0) find(one.sum) = one;
        slot = &find(sum);
    }
    *slot = {sum, size_++};
    return slot->number;
}

RowNumbers::Slot &RowNumbers::find(std::uint64_t sum) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>((sum * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (slots_[at].number >= 0 && slots_[at].sum != sum) at = (at + 1) & mask;
    return slots_[at];
}

}  // namespace tallytree::bounds
