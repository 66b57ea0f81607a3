// A model that is already laid out as a chain: scores of states and neighbours, and counts of states, one variable
// after the other. Passes read its scores in place and need no program.
#pragma once

#include <optional>
#include <utility>

#include "bounds/local_tables.h"

namespace tallytree::bounds {

struct PlainChain {
    Index length, states, statistics;
    TableBlock<double> unary, pairs;
    std::array<TableBlock<std::int64_t>, kMostStatistics> counts;  // for each statistic

    // None for any other model.
    static std::optional<PlainChain> of(const Skeleton &skeleton, std::span<const TableBlock<double>> scores,
                                        std::span<const TableBlock<std::int64_t>> counts);
    // The number of additions of a pass.
    double operations() const;
};

// Numbers rows of counts in order of appearance, by their hash. Different rows may have the same hash,
// so the caller has to compare them.
class RowNumbers {
  public:
    RowNumbers() : slots_(64) {}
    std::int32_t size() const { return size_; }
    std::int32_t number(std::uint64_t sum);

  private:
    struct Slot {
        std::uint64_t sum = 0;
        std::int32_t number = -1;
    };
    Slot &find(std::uint64_t sum);

    std::vector<Slot> slots_;
    std::int32_t size_ = 0;
};

}  // namespace tallytree::bounds
