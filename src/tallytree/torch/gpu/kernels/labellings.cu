// Given labellings: the derivatives of the sum of their scores. One warp per sentence.
#include "tables.cuh"

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

// `labels` are weighted by `shares`, and `others`, if given, by their negatives. `edges`: as for `likelihood`.
extern "C" __global__ void labelled(const __grid_constant__ Padded given, const int64 *labels, const int64 *others, const double *shares,
                                    SCORE *slopes, double *edges) {
    BLOCK_MEMORY;
    double *tables = reinterpret_cast<double *>(memory);
    int lane = threadIdx.x % kWarp, positions = given.positions;
    double *own = given.shared ? table_of_warp(tables, edges, lane) : nullptr;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        Added sums{slopes + chain.first() * C, given.shared ? own : edges + b * (positions - 1) * C * C};
        for (int i = lane; i < positions * C; i += kWarp) sums.slopes[i] = 0;
        __syncwarp();
        sums.add(chain, labels + chain.first(), shares[b], lane);
        if (others) sums.add(chain, others + chain.first(), -shares[b], lane);
    });
    if (given.shared) leave_tables(tables, edges);
}
