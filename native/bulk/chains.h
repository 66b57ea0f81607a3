// Loss-augmented inference for many chains over one set of labels, from a few long arrays.
//
// A loss sees a position by its kind: what of the truth is there. A kind says which label each state of the position
// stands for, and what the statistics count in it; two neighbouring kinds say which states may follow each other, and
// what is counted then. The tables of all kinds are made once, those of a chain by the thread that needs them.
#pragma once

#include "bulk/loss_table.h"

namespace tallytree {

struct ChainKinds {
    Index kinds = 0, states = 0, statistics = 0;
    Index links = 0;                   // tables of neighbours; 0: states are labels, and all may follow each other
    std::vector<std::int32_t> labels;  // [kind][state]; -1 for a state that no labelling takes
    std::vector<std::int64_t> given;   // [statistic][kind][state]
    std::vector<std::int32_t> pairs;   // [kind][kind]: the table of two neighbours; -1 where they never are
    std::vector<std::uint8_t> fits;    // [table][state][state]
    std::vector<std::int64_t> moved;   // [statistic][table][state][state]

    std::int32_t pair(Index before, Index after) const { return pairs[before * kinds + after]; }
};

struct LabelChain {
    std::shared_ptr<const Skeleton> skeleton;
    std::span<const double> emissions;  // [position][label]
    std::span<const std::int64_t> kinds, truth;
    std::shared_ptr<const LossTable> losses;
    std::span<const double> fold;  // what each statistic adds to the score, which is then all that counts; or nothing
    Index size() const { return static_cast<Index>(kinds.size()); }
};

struct ChainAnswer {
    double loss = 0, score = 0;
    std::vector<std::int64_t> labels;
};

struct ChainTask {
    const ChainKinds &kinds;
    Index labels;
    std::span<const double> links;  // [label][label]
    Index count;                    // of the best tallies, how many are decoded
    double memory_limit;
};

// The labelling that most violates the margin, and those of the next best tallies, for each chain; all of them are
// checked against the definitions of score and statistics.
std::vector<std::vector<ChainAnswer>> augmented_chains(const ChainTask &task, std::span<const LabelChain> chains,
                                                       Index threads, const MaxPlusKernels *kernels, const Poll &poll);

}  // namespace tallytree
