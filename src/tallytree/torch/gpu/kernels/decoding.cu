// The best labelling of each sentence, without counts.
#include "messages.cuh"
#include "words.cuh"

// From the messages of the previous position to those of position t; `before` gets the best previous state of each state.
__device__ void advance(const Chain &chain, int t, Shares &shares, double *message, int *before, int lane) {
    __syncwarp();
    for (int k = 0, s = lane; s < C; k++, s += kWarp) shares.message[s] = message[k];
    __syncwarp();
    const SCORE *w = chain.step(t);
    for (int k = 0, to = lane; to < C; k++, to += kWarp) {
        double most = forbidden(0.0);
        int from = 0;
        for (int s = 0; s < C; s++) {
            double value = shares.message[s] + double(w[s * C + to]);
            if (value > most) most = value, from = s;
        }
        message[k] = most + chain.node(t, to);
        before[t * C + to] = from;
    }
}

struct Decoding {  // the input of the kernel
    Padded given;
    double *scores;
    int *choices;  // memory per warp for the best previous state of each state
    int64 *labels;
    Findings found;
};

extern "C" __global__ void viterbi(const __grid_constant__ Decoding asked) {
    BLOCK_MEMORY;
    const Padded &given = asked.given;
    Shares shares(memory, 0);
    int lane = threadIdx.x % kWarp, positions = given.positions;
    int *before = asked.choices + number_of_warp() * positions * C;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        int64 *labels = asked.labels + b * positions;
        double message[kStates];
        for (int k = 0; k < kStates; k++) message[k] = chain.node(0, lane + k * kWarp);
        for (int t = 1; t < chain.length; t++) advance(chain, t, shares, message, before, lane);
        double most = forbidden(0.0);
        int state = C;
        for (int k = 0, s = lane; s < C; k++, s += kWarp)
            if (message[k] > most) most = message[k], state = s;
        best_of_warp(most, state);
        __syncwarp();
        for (int t = (state < C ? chain.length : 0) + lane; t < positions; t += kWarp) labels[t] = 0;
        if (lane == 0) asked.scores[b] = most;
        if (lane == 0 && state == C) atomicOr(asked.found.words, kNothing);
        for (int t = chain.length - 1; lane == 0 && t >= 0 && state < C; t--) {
            labels[t] = state;
            state = t ? before[t * C + state] : 0;
        }
    });
    tell_host(asked.found);
}
