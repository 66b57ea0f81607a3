// An increasing map from positions of a sentence to positions of a reference.
#pragma once

#include "common.h"

namespace tallytree::sequences {

// What a position of a sentence and a place of a reference are worth together.
struct Weights {
    const double *weights;
    Index positions, places;
    Index stride;  // from one position to the next
};
using Pairs = std::vector<std::pair<Index, Index>>;

// Positions and places, both increasing, that are worth the most together.
Pairs heaviest(const Weights &weights);

// For each position of the sentence a place of the reference, or -1: equal places, or those of a longest common
// subsequence with what lies between filled up, whichever agrees more often.
std::vector<Index> aligned(std::span<const std::int32_t> sentence, std::span<const std::int32_t> reference);

}  // namespace tallytree::sequences
