// Given labellings: their scores, and what they add to derivatives. One warp for each sentence.
#include "numbers.cuh"

struct Labelled {
    const SCORE *nodes, *weights;
    const int64 *labels;
    int shared, positions, length;
    int64 sentence;

    // What position t adds to the score, with the step that leads to it.
    __device__ double gained(int t) const {
        double score = nodes[t * C + labels[t]];
        if (t == 0) return score;
        return score + double(step_weights(weights, shared, sentence, t, positions)[labels[t - 1] * C + labels[t]]);
    }
};

extern "C" __global__ void labelling_scores(const SCORE *nodes, const SCORE *weights, const int *lengths, const int64 *labels,
                                            double *scores, int sentences, int positions, int shared) {
    int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int64 b = int64(blockIdx.x) * warps + threadIdx.x / kWarp; b < sentences; b += int64(gridDim.x) * warps) {
        Labelled x{nodes + b * positions * C, weights, labels + b * positions, shared, positions, lengths[b], b};
        double score = 0;
        for (int t = lane; t < x.length; t += kWarp) score += x.gained(t);
        score = sum_of_warp(score);
        if (lane == 0) scores[b] = score;
    }
}

// Add `shares` of each sentence at the entries of its labels. `edges`: one table for each warp, or one for each step.
extern "C" __global__ void add_labellings(const SCORE *, const SCORE *, const int *lengths, const int64 *labels,
                                          const double *shares, double *nodes, double *edges, int sentences, int positions,
                                          int shared) {
    int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    int64 first = int64(blockIdx.x) * warps + threadIdx.x / kWarp;
    for (int64 b = first; b < sentences; b += int64(gridDim.x) * warps) {
        const int64 *its = labels + b * positions;
        for (int t = lane; t < lengths[b]; t += kWarp) nodes[(b * positions + t) * C + its[t]] += shares[b];
        double *table = edges + first * C * C, *steps = edges + b * (positions - 1) * C * C;
        for (int t = shared ? 1 + lane * positions : 1 + lane; t < lengths[b]; t += shared ? 1 : kWarp)  // shared: one lane
            (shared ? table : steps + int64(t - 1) * C * C)[its[t - 1] * C + its[t]] += shares[b];
        __syncwarp();
    }
}
