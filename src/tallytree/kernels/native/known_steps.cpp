#include "known_steps.h"

#include <algorithm>

namespace tallytree {
namespace {

std::size_t hash(std::span<const Index> sequence) {
    std::uint64_t h = sequence.size();
    for (const Index word : sequence) h = (h ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
    return static_cast<std::size_t>(h ^ (h >> 29));
}

}  // namespace

std::span<const Index> SequenceSet::at(std::int32_t number) const {
    return {data_.data() + begin_[number], data_.data() + begin_[number + 1]};
}

std::pair<std::int32_t, bool> SequenceSet::insert(std::span<const Index> sequence) {
    if (2 * begin_.size() > slots_.size()) grow();
    std::size_t slot = hash(sequence) & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
        if (std::ranges::equal(at(slots_[slot]), sequence)) return {slots_[slot], false};
    slots_[slot] = static_cast<std::int32_t>(begin_.size()) - 1;
    data_.insert(data_.end(), sequence.begin(), sequence.end());
    begin_.push_back(static_cast<Index>(data_.size()));
    return {slots_[slot], true};
}

void SequenceSet::grow() {
    slots_.assign(slots_.size() * 2, -1);
    for (std::int32_t number = 0; number + 1 < static_cast<std::int32_t>(begin_.size()); number++) {
        std::size_t slot = hash(at(number)) & (slots_.size() - 1);
        while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = number;
    }
}

}  // namespace tallytree
