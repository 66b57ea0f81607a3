// Expected losses that are quotients of counts, errors(y) / (c + k(y)), with their derivatives, without tallies.
//
// Errors add up over the positions of a labelling, and so does k, the number of its nodes or chunks. Numbers x and w
// with sum of w x^k = 1 / (c + k) for each k that is possible turn the mean of the loss into sums over plain chains,
// a column for each x: the sum of w p(y) errors(y) x^k(y). Everything is positive, so nothing cancels.
//
// Plain products are safe where scores lie within kWidestOfRisks. All columns have the scales of the chain itself
// (x = 1). Sums of an x that is small may vanish: such labellings have their weight in the columns of larger ones.
#pragma once

#include "crf/spans.h"

namespace tallytree {

inline constexpr double kWidestOfRisks = 300;  // two labels in a row may both be the least likely ones: exp(-600)

// What a loss counts: errors and nodes by true label and label; or chunks, if the scheme has types.
struct QuotientCounts {
    std::span<const double> errors;         // [true label][label]
    std::span<const std::uint8_t> counted;  // the same for k, 0 or 1
    ChunkScheme scheme;
    double missed;  // the error of a true chunk that is missed; that of a wrong one is 1
    Index labels;

    bool chunks() const { return !scheme.types.empty(); }
    bool inside(Index label) const { return scheme.types[label] >= 0; }
    // Whether the second label continues a chunk of the first.
    bool continues(Index i, Index j) const { return inside(i) && !scheme.boundaries[i * labels + j]; }
};

struct QuotientRules {
    std::span<const double> rows;         // the number of x, all x, all w
    Index width;                          // of a row
    std::span<const std::int64_t> which;  // the row of each chain

    const double *row(Index chain) const { return rows.data() + which[chain] * width; }
};

// Chains that need more memory than there is are left out, as are those whose scores lie too far apart. Where nothing
// is allowed, the value is -inf. Results do not depend on the number of threads.
void sum_risks(const ChainBatch &chains, const QuotientCounts &counts, const QuotientRules &rules,
               const ChainSums &risks, double memory_limit, Index threads, const MaxPlusKernels *kernels,
               const Poll &poll, const Inside &inside);

}  // namespace tallytree
