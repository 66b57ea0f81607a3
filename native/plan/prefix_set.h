// Distinct prefixes of tallies.
#pragma once

#include <algorithm>

#include "common.h"

namespace tallytree {

// Numbers distinct vectors by hashing: there may be 64 statistics, so they are never packed into one
// integer.
class PrefixSet {
  public:
    PrefixSet(Index size, Index expected) : size_(size) {
        Index n = 16;
        while (n < 2 * expected && n < (Index{1} << 20)) n *= 2;
        slots_.assign(n, -1);
        std::uint64_t z = 0;
        for (Index i = 0; i < size; i++) {
            z += 0x9E3779B97F4A7C15ull;
            weights_.push_back((z ^ (z >> 31)) | 1);
        }
    }

    std::int32_t insert(const Index *vector) {
        if (2 * (count_ + 1) > static_cast<Index>(slots_.size())) grow();
        std::size_t at = hash(vector) & (slots_.size() - 1);
        while (slots_[at] >= 0) {
            if (std::equal(vector, vector + size_, (*this)[slots_[at]])) return slots_[at];
            at = (at + 1) & (slots_.size() - 1);
        }
        data_.insert(data_.end(), vector, vector + size_);
        return slots_[at] = static_cast<std::int32_t>(count_++);
    }

    Index count() const { return count_; }
    const Index *operator[](Index i) const { return data_.data() + i * size_; }

  private:
    // A sum of products with odd constants, so that terms are independent.
    std::size_t hash(const Index *vector) const {
        std::uint64_t h = 0;
        for (Index i = 0; i < size_; i++) h += static_cast<std::uint64_t>(vector[i]) * weights_[i];
        return static_cast<std::size_t>((h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull >> 20);
    }

    void grow() {
        slots_.assign(slots_.size() * 2, -1);
        for (Index i = 0; i < count_; i++) {
            std::size_t at = hash((*this)[i]) & (slots_.size() - 1);
            while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = static_cast<std::int32_t>(i);
        }
    }

    Index size_, count_ = 0;
    std::vector<Index> data_;
    std::vector<std::int32_t> slots_;
    std::vector<std::uint64_t> weights_;
};

}  // namespace tallytree
