// Labellings drawn from the distribution of each sentence: messages from left to right, then draws back.
#include "messages.cuh"
#include "words.cuh"

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

struct Drawing {  // the input of the kernel
    Padded given;
    const double *uniforms;  // (draws, sentences, positions)
    double *kept;            // memory per warp for its messages
    int64 *labels;           // as uniforms: zeros
    Findings found;
    int draws;
};

extern "C" __global__ void draw(const __grid_constant__ Drawing asked) {
    BLOCK_MEMORY;
    const Padded &given = asked.given;
    Shares shares(memory, given.shared);
    shares.fill(given.weights);
    int lane = threadIdx.x % kWarp;
    double *its = asked.kept + number_of_warp() * given.positions * C;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        bool possible = forward(chain, shares, its, lane) > forbidden(0.0);
        if (!possible && lane == 0) atomicOr(asked.found.words, kNothing);
        __syncwarp();
        for (int d = lane; possible && d < asked.draws; d += kWarp) {
            int64 row = (int64(d) * given.sentences + b) * given.positions;
            int state = -1;
            for (int t = chain.length - 1; t >= 0; t--) {
                const SCORE *w = t + 1 < chain.length ? chain.step(t + 1) : nullptr;
                asked.labels[row + t] = state = drawn(its + t * C, w, state, asked.uniforms[row + t]);
            }
        }
        __syncwarp();
    });
    tell_host(asked.found);
}
