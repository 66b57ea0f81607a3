// Labellings drawn from the distribution of each sentence: messages from left to right, then draws back.
#include "plain.cu"

// One state of a column of logarithms, by a uniform number; `to` >= 0: on the way to that state, through weights.
__device__ int drawn(const double *message, const SCORE *w, int to, double uniform) {
    double most = forbidden(0.0), total = 0, so_far = 0;
    for (int s = 0; s < C; s++) most = larger(most, message[s] + (to < 0 ? 0 : double(w[s * C + to])));
    for (int s = 0; s < C; s++) total += exp(message[s] + (to < 0 ? 0 : double(w[s * C + to])) - most);
    int last = 0;
    for (int s = 0; s < C; s++) {
        double share = exp(message[s] + (to < 0 ? 0 : double(w[s * C + to])) - most);
        if (share > 0) last = s;
        so_far += share;
        if (share > 0 && so_far > uniform * total) return s;
    }
    return last;  // rounding
}

// `kept`: one entry for each of `nodes`; `uniforms` and `labels`: draws, sentences, positions.
extern "C" __global__ void draw(const SCORE *nodes, const SCORE *weights, const int *lengths, const double *uniforms, double *kept,
                                int64 *labels, int draws, int sentences, int positions, int shared) {
    BLOCK_MEMORY;
    Shares shares(memory, shared);
    shares.fill(weights);
    int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int64 b = int64(blockIdx.x) * warps + threadIdx.x / kWarp; b < sentences; b += int64(gridDim.x) * warps) {
        Chain chain{nodes + b * positions * C, weights, shared, positions, lengths[b], b};
        double *its = kept + b * positions * C;
        if (!(forward(chain, shares, its, lane) > forbidden(0.0))) continue;
        __syncwarp();
        for (int d = lane; d < draws; d += kWarp) {
            int64 row = (int64(d) * sentences + b) * positions;
            int state = -1;
            for (int t = chain.length - 1; t >= 0; t--) {
                const SCORE *w = t + 1 < chain.length ? chain.step(t + 1) : nullptr;
                labels[row + t] = state = drawn(its + t * C, w, state, uniforms[row + t]);
            }
        }
        __syncwarp();
    }
}
