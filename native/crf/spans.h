// The labelling with the smallest expected loss, for losses of chunks: which of them the truth has, and how many it has
// in total.
//
// Chunks are runs of positions: between two labels there is a boundary or none. For a labelling of k chunks and a truth
// of s, the loss is base[k][s] - gain[k][s] * (chunks that both have). So its expectation is a number for each k, minus
// a gain for each chunk, and the best labelling of k chunks is a best set of k runs that do not overlap.
#pragma once

#include "crf/chains.h"

namespace tallytree {

struct ChunkScheme {
    std::span<const std::int32_t> types;       // of labels; -1 outside of chunks
    std::span<const std::uint8_t> boundaries;  // [label][label]: whether there is one between them
    Index type_count;
};

struct ExpectedLosses {
    const double *base, *gain;  // [chunks of the labelling][chunks of the truth], up to the longest chain
    Index width;                // of a row
};

struct ChosenChunk {
    std::int64_t chain, first, last, type;
    double probability;  // that the truth has it
};

struct ChosenChunks {
    std::vector<double> losses;       // expected, of each chain
    std::vector<ChosenChunk> chunks;  // of all chains, in order
};

// The chains are level. Results do not depend on the number of threads.
ChosenChunks choose_chunks(const ChainBatch &chains, const ChunkScheme &scheme, const ExpectedLosses &losses,
                           Index threads, const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside);

// All chunks that are more likely than `least`, in order of chains and first positions.
std::vector<ChosenChunk> likely_chunks(const ChainBatch &chains, const ChunkScheme &scheme, double least, Index threads,
                                       const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside);

struct ChunkNumbers {
    std::vector<double> means, variances;  // of each chain's number of chunks
};

ChunkNumbers chunk_numbers(const ChainBatch &chains, const ChunkScheme &scheme, Index threads,
                           const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside);

}  // namespace tallytree
