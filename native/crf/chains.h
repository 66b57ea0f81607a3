// Sums over all labellings of many chains over one set of labels: no tallies, no plans, plain products.
//
// Sums are scaled separately at every position. With all scores finite, two labels at one position differ in
// their sums by no more than the scores there and those of neighbours do: if these lie within kWidest, nothing
// underflows, and every sum is correct up to rounding. If some are -inf, two labels may differ by more: a chain whose
// smallest sum comes close to underflow is left out.
#pragma once

#include "bulk/spread.h"
#include "bulk/thread_pool.h"
#include "kernels/maxplus.h"

namespace tallytree {

struct ChainBatch {
    const double *emissions;               // [position][label]
    const double *links;                   // [label][label], or such a table for each two neighbours
    std::span<const std::int64_t> starts;  // of the chains: their first positions
    std::span<const std::int64_t> lengths;
    Index labels;
    bool own_links = false;  // whether each two neighbours have a table; those of chain i begin at starts[i] - i

    Index size() const { return static_cast<Index>(starts.size()); }
    // The scores of positions m - 1 and m of a chain.
    const double *link(Index chain, Index m) const { return links + link_offset(chain, m); }
    Index link_offset(Index chain, Index m) const {
        return own_links ? (starts[chain] - chain + m - 1) * labels * labels : 0;
    }
};

// Whether nothing can underflow: all scores are finite and close enough together.
bool are_level(const ChainBatch &chains);

struct ChainSums {
    std::span<double> log_sums;            // of each chain: log Σ exp F; less the score of its truth, if there are some
    std::span<double> marginals;           // of each position and label, times the importance of its chain; less truths
    std::span<double> pairs;               // of neighbouring labels, likewise; added up where they share their scores
    std::span<const double> importance;    // of each chain
    std::span<std::uint8_t> left_out;      // whether a chain's scores lie too far apart: it counts nowhere
    std::span<const std::int64_t> truths;  // none, or the label of each position
};

// Results do not depend on the number of threads. Marginals and pairs are zeros before.
void sum_chains(const ChainBatch &chains, const ChainSums &sums, Index threads, const MaxPlusKernels *kernels,
                const Poll &poll, const Inside &inside);

struct ChainBends {
    const double *emissions, *links;     // how scores move, laid out as they are
    std::span<const double> importance;  // of each chain
    std::span<double> means;             // of each chain: how its log sum moves
    std::span<double> marginals, pairs;  // how these move, times the importance; pairs added up where scores are shared
    std::span<std::uint8_t> left_out;    // whether a chain's scores lie too far apart: it counts nowhere
};

// The change of log sums, marginals and pairs if scores change: second derivatives times a direction.
void bend_chains(const ChainBatch &chains, const ChainBends &bends, Index threads, const MaxPlusKernels *kernels,
                 const Poll &poll, const Inside &inside);

struct ChainDraws {
    std::span<const double> uniforms;  // [draw][position], from 0 to 1
    std::span<std::int64_t> labels;    // [draw][position]; what is no position of a chain stays as it is
    Index draws, positions;
    std::span<std::uint8_t> left_out;  // whether a chain's scores lie too far apart, or all labellings are forbidden
};

// Labellings drawn with probability proportional to exp F.
void draw_chains(const ChainBatch &chains, const ChainDraws &draws, Index threads, const MaxPlusKernels *kernels,
                 const Poll &poll, const Inside &inside);

}  // namespace tallytree
