// The blocks of a structural SVM's dual: pairwise steps among the planes of one example.
#pragma once

#include "common.h"

namespace tallytree {

// The planes of one example: slopes, sparse and one after the other, their offsets and inner products.
struct PlaneBlock {
    std::span<const std::int64_t> indices;
    std::span<const double> values;
    std::span<const std::int64_t> ends;  // of each plane's entries
    std::span<const double> offsets;
    std::span<const double> gram;  // [plane][plane]
    Index size() const { return static_cast<Index>(offsets.size()); }
};

struct StepRules {
    Index steps;      // at most
    double enough;    // the part of the first slope that may be left
    double rounding;  // slopes below this, compared with the offsets, are none
};

// The inner product of each slope with a vector.
std::vector<double> block_inner(const PlaneBlock &block, std::span<const double> vector);

// Moves weight between planes, each time from the lowest that has any to the highest, as far as the dual rises; `alpha`
// and `weights` are changed, and `lag` too if there is one: by what the weights are, times `lag_factor`. Returns how
// far the block was from its best before.
double improve_block(const PlaneBlock &block, const StepRules &rules, std::span<double> alpha,
                     std::span<double> weights, std::span<double> lag, double lag_factor);

}  // namespace tallytree
