// The best labellings of many chains over one set of labels: no tallies, no plans.
#pragma once

#include "crf/chains.h"

namespace tallytree {

struct ChainLabels {
    std::span<std::int64_t> labels;    // of each position; what is no position of a chain stays as it is
    std::span<std::uint8_t> left_out;  // whether a labelling does not have the score that the messages promise
};

// All scores are finite, and all chains share their links. Among equals, the same as that of a plan. Results do not
// depend on the number of threads.
void label_chains(const ChainBatch &chains, const ChainLabels &found, Index threads, const MaxPlusKernels *kernels,
                  const Poll &poll, const Inside &inside);

}  // namespace tallytree
