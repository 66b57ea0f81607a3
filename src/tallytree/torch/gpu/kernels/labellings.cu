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
    const int *words;  // of findings that make all derivatives 0, which `gather` does; or null
};

extern "C" __global__ void labelled(const __grid_constant__ Labelled asked) {
    BLOCK_MEMORY;
    if (is_wrong(asked.words)) return;
    const Padded &given = asked.given;
    double *tables = reinterpret_cast<double *>(memory);
    int lane = threadIdx.x % kWarp, positions = given.positions;
    double *own = given.shared ? table_of_warp(tables, asked.edges, lane) : nullptr;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        Added sums{asked.slopes + chain.first() * C, given.shared ? own : asked.edges + b * (positions - 1) * C * C};
        for (int i = lane; i < positions * C; i += kWarp) sums.slopes[i] = 0;
        __syncwarp();
        double share = asked.shares[b] * (asked.gains ? double(asked.gains[b]) : 1);
        sums.add(chain, asked.labels + chain.first(), share, lane);
        if (asked.others) sums.add(chain, asked.others + chain.first(), -share, lane);
    });
    if (given.shared) leave_tables(tables, asked.edges);
}
