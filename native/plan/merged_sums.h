// All sums of two lists of numbers, in order.
#pragma once

#include "common.h"

namespace tallytree {

// A pair of stretches; `key` is the sum of their prefixes as one number, and then the stretch that it goes to.
struct PairSum {
    Index key;
    std::int32_t a, b;
};

// All sums of two lists of keys in order, equal ones by their place in `a`: one sorted list for each entry of the
// shorter list, merged. The keys of `a` must ascend.
void merge_sums(std::span<const Index> a, std::span<const Index> b, std::vector<PairSum> &sums,
                std::vector<PairSum> &scratch);

}  // namespace tallytree
