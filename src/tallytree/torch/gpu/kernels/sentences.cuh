// A padded batch of chains, the input of all kernels, and loops over its sentences by warp.
#pragma once
#include "numbers.cuh"

struct Padded {                                  // addresses of all sentences
    const SCORE *nodes, *weights, *start, *end;  // start, end: added to the scores of first and last states, or null
    int *lengths;
    int sentences, positions, shared;  // shared: one table of weights for all steps
};

struct Chain {  // one sentence
    const Padded *all;
    int64 sentence;
    int length;

    __device__ int64 first() const { return sentence * all->positions; }  // the index of its first position
    __device__ double node(int t, int s) const {
        if (s >= C) return forbidden(0.0);
        double score = all->nodes[(first() + t) * C + s];
        if (all->start && t == 0) score += double(all->start[s]);
        if (all->end && t + 1 == length) score += double(all->end[s]);
        return score;
    }
    __device__ const SCORE *step(int t) const {
        return step_weights(all->weights, all->shared, sentence, t, all->positions);
    }
    // The score that position t adds for labels, with the step into it.
    template <class Label>
    __device__ double gained(const Label *labels, int t) const {
        double score = node(t, int(labels[t]));
        return t == 0 ? score : score + double(step(t)[labels[t - 1] * C + labels[t]]);
    }
    // The score of labels, by a warp.
    template <class Label>
    __device__ double score(const Label *labels, int lane) const {
        double sum = 0;
        for (int t = lane; t < length; t += kWarp) sum += gained(labels, t);
        return sum_of_warp(sum);
    }
};

__device__ inline Chain chain_of(const Padded &given, int64 b) { return {&given, b, given.lengths[b]}; }

__device__ inline int64 number_of_warp() { return int64(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp; }

// Visit the sentences of a warp by index.
template <class Visit>
__device__ inline void each_sentence(const Padded &given, Visit visit) {
    int64 warps = int64(gridDim.x) * (blockDim.x / kWarp);
    for (int64 b = number_of_warp(); b < given.sentences; b += warps) visit(b);
}
