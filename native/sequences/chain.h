// A chain of words: the scores of a labelling, and the word that each label stands for.
#pragma once

#include "common.h"
#include "kernels/chain_pass.h"

namespace tallytree::sequences {

struct Chain {
    std::vector<Index> labels;                        // how many each position has
    std::vector<std::span<const double>> unary;       // of each position
    std::vector<std::span<const double>> pair;        // of a position and the one before it; the first is empty
    std::vector<std::span<const std::int32_t>> word;  // of each label
    std::vector<std::int32_t> end;                    // the label that ends a sentence at a position, or -1
    Index words = 0;

    Index size() const { return static_cast<Index>(labels.size()); }
    double pair_score(Index t, Index before, Index label) const {
        return t == 0 ? 0.0 : pair[t][before * labels[t] + label];
    }
    double step(Index t, Index before, Index label) const {
        return t == 0 ? unary[0][label] : unary[t][label] + pair[t][before * labels[t] + label];
    }
};

// The sentences of one length: the first positions of a chain, and what end labels add after the last of them.
struct Sentences {
    const Chain *chain;
    Index length;
    std::vector<double> tail;  // for each label of the last word

    // The label of a word at a position, or -1.
    const std::int32_t *label_of(Index t) const { return labels.data() + t * chain->words; }
    std::vector<std::int32_t> labels;

    Sentences(const Chain &chain, Index length);
    double score(std::span<const std::int64_t> labelling) const;
    // What no score exceeds in size.
    double magnitude(const ChainKernels &kernels) const;
};

std::vector<std::int32_t> words_of(const Sentences &sentences, const std::vector<std::int64_t> &labelling);

}  // namespace tallytree::sequences
