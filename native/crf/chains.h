// Sums over all labellings of many chains over one set of labels: no tallies, no plans, plain products.
//
// Sums are kept on a scale of their own at every position. With all scores finite, two labels at one position differ in
// what is summed up to them by no more than the scores there and those of neighbours do: where these lie within
// kWidest, nothing underflows, and every sum is right to rounding.
#pragma once

#include "bulk/thread_pool.h"
#include "kernels/maxplus.h"

namespace tallytree {

inline constexpr double kWidest = 500;  // exp(-500) is a normal number, by far

struct ChainBatch {
    const double *emissions;               // [position][label], one chain after the other
    const double *links;                   // [label][label]
    std::span<const std::int64_t> starts;  // of the chains, and the end of the last one
    Index labels;

    Index size() const { return static_cast<Index>(starts.size()) - 1; }
};

// Whether nothing can underflow: all scores are finite and close enough together.
bool are_level(const ChainBatch &chains);

struct ChainSums {
    std::span<double> log_sums;          // of each chain: log Σ exp F
    std::span<double> marginals;         // of each position and label, times the importance of its chain
    std::span<double> pairs;             // of neighbouring labels, likewise, added up
    std::span<const double> importance;  // of each chain
};

// Results do not depend on the number of threads.
void sum_chains(const ChainBatch &chains, const ChainSums &sums, Index threads, const MaxPlusKernels *kernels,
                const Poll &poll, const Inside &inside);

}  // namespace tallytree
