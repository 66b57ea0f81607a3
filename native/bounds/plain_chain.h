// A model that is a chain as it lies: scores of states and of neighbours, and counts of states, one variable after the
// other. Passes read its scores where they are, and no program is looked at.
#pragma once

#include <optional>
#include <utility>

#include "bounds/local_tables.h"

namespace tallytree::bounds {

struct PlainChain {
    Index length, states, statistics;
    TableBlock<double> unary, pairs;
    std::array<TableBlock<std::int64_t>, kMostStatistics> counts;  // for each statistic

    // None where a model is another one.
    static std::optional<PlainChain> of(const Skeleton &skeleton, std::span<const TableBlock<double>> scores,
                                        std::span<const TableBlock<std::int64_t>> counts);
    // How many sums of scores and messages a pass makes.
    double operations() const;
};

// Numbers rows of counts in the order in which they are met, by sums that equal rows share. Other rows may share them,
// too: whoever numbers has to compare.
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
