// Sums over all binary trees of many sentences, and the best of them. Every constituent has one of some labels, and
// each span has a score for each label: no grammar, no tallies, no plans.
//
// With own(span) the log-sum-exp (or the maximum) of the scores of a span,
//     inner(span) = own(span) + log sum over splits of exp(inner(left) + inner(right)).
// On the way down, each span hands its probability to the two parts of each split, in proportion to their terms. Every
// term is relative to the largest one of its span, so the range of the scores does not matter.
#pragma once

#include "bulk/thread_pool.h"
#include "kernels/maxplus.h"

namespace tallytree {

inline constexpr double kLargestScore = 1e290;  // in magnitude, unless -inf; the same as Python's

struct SpanScores {
    const double *scores;                   // [sentence][first word][last word][label], last < first is ignored
    std::span<const std::int64_t> lengths;  // of the sentences, at least 1
    Index words, labels;

    Index size() const { return static_cast<Index>(lengths.size()); }
    Index sentence() const { return words * words * labels; }  // the number of scores of each
};

struct TreeSums {
    std::span<double> log_sums;        // of each sentence
    std::span<double> marginals;       // of each score; zeros before
    std::span<std::uint8_t> left_out;  // whether a score is not valid: the sentence counts nowhere
};

// Results do not depend on the number of threads.
void sum_trees(const SpanScores &spans, const TreeSums &sums, Index threads, const MaxPlusKernels *kernels,
               const Poll &poll, const Inside &inside);

struct BestTrees {
    std::span<std::int64_t> trees;  // of each score: 1 where the tree has it; zeros before
    std::span<std::uint8_t>
        left_out;  // whether a score is not valid, there is no tree, or it does not have the score found
};

// Among equals, the tree with the shortest first parts, and with the first labels: that of a forest.
void find_best_trees(const SpanScores &spans, const BestTrees &best, Index threads, const MaxPlusKernels *kernels,
                     const Poll &poll, const Inside &inside);

struct TreeDraws {
    std::span<const double> uniforms;  // [draw][sentence][3 * words]: from 0 to 1
    std::span<std::int64_t> trees;     // [draw], and of each score: 1 where the tree has it; zeros before
    Index draws;
    std::span<std::uint8_t> left_out;  // whether a score is not valid, or there is no tree
};

// Trees drawn with probability proportional to the exponential of their score.
void draw_trees(const SpanScores &spans, const TreeDraws &draws, Index threads, const MaxPlusKernels *kernels,
                const Poll &poll, const Inside &inside);

}  // namespace tallytree
