// Given labellings: the derivatives of the sum of their scores. One warp per sentence.
#include "tables.cuh"
#include "words.cuh"

struct Added {  // where the derivatives of labellings are added
    SCORE *slopes;
    double *table;  // of the warp, or of the first step of the sentence

    __device__ void add(const Chain &chain, const int64 *labels, double share, int lane) const {
        for (int t = lane; t < chain.length; t += kWarp) slopes[t * C + labels[t]] += SCORE(share);
        int shared = chain.all->shared;
        for (int t = shared ? 1 + lane * chain.length : 1 + lane; t < chain.length; t += shared ? 1 : kWarp)  // shared: one lane
            (shared ? table : table + int64(t - 1) * C * C)[labels[t - 1] * C + labels[t]] += share;
        __syncwarp();
    }
};

struct Labelled {  // the input of the kernel
    Padded given;
    const int64 *labels, *others;  // weighted by shares and, if given, by their negatives
    const double *shares;
    const SCORE *gains;  // factors of shares, or null
    SCORE *slopes;
    double *edges;  // as for `likelihood`
    const int *words;  // of findings that make all derivatives 0; or null
    // If `by_weights` is given, nothing is left to `gather`: the last block adds up all tables, counted by `counter`.
    SCORE *by_weights;
    const SCORE *gain;  // for all
    double rate;        // as for `gather`
    int *counter;
};

// The sum of the tables of all blocks, in the last one.
__device__ void add_tables(const Labelled &asked) {
    if (!is_last(asked.counter)) return;
    int count = kSmall ? gridDim.x : gridDim.x * (blockDim.x / kWarp);
    const volatile double *tables = asked.edges;
    for (int i = threadIdx.x; i < C * C; i += blockDim.x) {
        double sum = 0;
        for (int table = 0; table < count; table++) sum += tables[int64(table) * kTable + i];
        asked.by_weights[i] = SCORE(sum);
    }
}

// What all derivatives are multiplied by.
__device__ double factor_of(const Labelled &asked) {
    if (!asked.by_weights) return 1;
    if (is_wrong(asked.words)) return 0;
    return (asked.rate ? asked.rate : one_per_position(asked.given)) * double(*asked.gain);
}

extern "C" __global__ void labelled(const __grid_constant__ Labelled asked) {
    BLOCK_MEMORY;
    if (is_wrong(asked.words) && !asked.by_weights) return;  // `gather` writes zeros
    const Padded &given = asked.given;
    double factor = factor_of(asked);
    double *tables = reinterpret_cast<double *>(memory);
    int lane = threadIdx.x % kWarp, positions = given.positions;
    double *own = given.shared ? table_of_warp(tables, asked.edges, lane) : nullptr;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        Added sums{asked.slopes + chain.first() * C, given.shared ? own : asked.edges + b * (positions - 1) * C * C};
        for (int i = lane; i < positions * C; i += kWarp) sums.slopes[i] = 0;
        __syncwarp();
        if (factor == 0) return;
        double share = factor * asked.shares[b] * (asked.gains ? double(asked.gains[b]) : 1);
        sums.add(chain, asked.labels + chain.first(), share, lane);
        if (asked.others) sums.add(chain, asked.others + chain.first(), -share, lane);
    });
    if (given.shared) leave_tables(tables, asked.edges);
    if (asked.by_weights) add_tables(asked);
}
