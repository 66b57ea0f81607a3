// Chains whose scores lie near each other: messages are plain products, without logarithms on the way.
//
// What arrives at a state is multiplied by its power: exp(score - the largest one at the position), times a power of 2 that keeps
// messages near 1. What goes back is multiplied by the same powers, so products of both add up to the same sum at each position.
#pragma once
#include "slopes.cuh"

struct Summed {  // all labellings of a sentence
    double log = forbidden(0.0), mass = 0;  // log Z; the sum of the messages of the last position
    bool near = false;                      // whether plain products are safe
};

struct Passed {  // the messages and powers of a lane's states at a position
    double message[kStates], power[kStates];

    __device__ void keep(double *kept, int t, int lane) const {
        for (int k = 0, s = lane; s < C; k++, s += kWarp) kept[2 * t * C + s] = message[k], kept[(2 * t + 1) * C + s] = power[k];
    }
    __device__ void load(const double *kept, int t, int lane) {
        for (int k = 0, s = lane; t >= 0 && s < C; k++, s += kWarp) message[k] = kept[2 * t * C + s], power[k] = kept[(2 * t + 1) * C + s];
    }
};

struct Scores {  // of a lane's states at a position
    double its[kStates];

    __device__ void read(const Chain &chain, int t, int lane) {
        for (int k = 0; k < kStates; k++) its[k] = t < chain.length ? chain.node(t, lane + k * kWarp) : forbidden(0.0);
    }
    // Set the powers, relative to the largest score, which is returned; `far`: whether scores lie too far apart.
    __device__ double raise(double *powers, double spread, bool &far) const {
        double most = largest_in_warp(SCORE(largest(its)));
        for (int k = 0; k < kStates; k++) {
            bool some = its[k] > forbidden(0.0);
            far |= some && !(its[k] - most >= -spread && its[k] - most <= 1);  // sums with start or end scores are rounded
            powers[k] = some ? exp(its[k] - most) : 0;
        }
        return most;
    }
};

// The sum of the numbers of all states times their factors: those of steps into s, or out of it.
__device__ inline double mixed(const double *numbers, const double *factors, const Held &held, bool into, int s) {
    if (held.held) return held.sum<4>(numbers);
    double sum = 0;
    for (int i = 0; s < C && i < C; i++) sum += numbers[i] * factors[into ? i * C + s : s * C + i];
    return sum;
}

__device__ inline Held factors_of(const Shares &shares, bool into, int lane) {
    return Held(shares.factors, into, lane, [](int, int) { return false; });
}

// Messages from left to right. `kept` gets them and the powers, if a backward pass follows.
__device__ inline Summed quick_forward(const Chain &chain, const Shares &shares, double *kept, int lane) {
    Held held = factors_of(shares, true, lane);
    Scores scores;
    Passed now;
    double spread = kMostSpread - shares.range.spread(), mass = 0;
    bool odd = false;
    int exponent = 0, all = 0;
    scores.read(chain, 0, lane);
    double offset = scores.raise(now.power, spread, odd);
    scores.read(chain, 1, lane);
    for (int t = 0;; t++) {
        double scale = power_of_two(-exponent);
        for (int k = 0; k < kStates; k++) {
            now.power[k] *= scale;
            now.message[k] = t ? now.power[k] * mixed(shares.powers, shares.factors, held, true, lane + k * kWarp) : now.power[k];
            odd |= is_small(now.message[k]);
        }
        if (kept) now.keep(kept, t, lane);
        all += exponent;
        if (t + 1 == chain.length) break;
        __syncwarp();
        for (int k = 0, s = lane; s < C; k++, s += kWarp) shares.powers[s] = now.message[k];
        __syncwarp();
        exponent = largest_exponent(largest(now.message));
        if (exponent < -1022) exponent = 0;
        offset += scores.raise(now.power, spread, odd);
        scores.read(chain, t + 2, lane);
    }
    for (int k = 0; k < kStates; k++) mass += now.message[k];
    mass = sum_of_warp(mass);
    if (shares.range.some()) offset += (chain.length - 1) * shares.range.most;
    double log_z = mass > 0 ? log(mass) + all * 0.6931471805599453 + offset : forbidden(0.0);
    __syncwarp();
    return {log_z, mass, __ballot_sync(~0u, odd) == 0};
}

// Derivatives, from what `kept` has; `mass`: of all labellings.
__device__ inline void quick_backward(const Chain &chain, const Asked &asked, const Shares &shares, const double *kept, Edges &edges,
                                      double mass, int lane) {
    Held held = factors_of(shares, false, lane);
    Weights weights = shares.weights(chain.step(1), lane);
    Passed now, before, next;  // of t and of the two positions before, read ahead
    double back[kStates];      // the gain of a state's message
    int last = chain.length - 1, label = asked.label(last), previous = asked.label(last - 1);
    now.load(kept, last, lane), before.load(kept, last - 1, lane);
    for (int k = 0; k < kStates; k++) back[k] = asked.gain / mass;
    for (int t = last;; t--) {
        int earlier = asked.label(t - 2);
        next.load(kept, t - 2, lane);
        for (int k = 0, s = lane; s < C; k++, s += kWarp) {
            if (now.message[k] == 0) back[k] = 0;  // of a state that cannot be reached: it may be too large for a double
            double slope = now.message[k] * back[k] - (label == s ? asked.gain : 0);
            asked.slopes[t * C + s] = SCORE(slope);
            edges.end(chain, t, s, slope);
        }
        if (!t) return;
        __syncwarp();
        for (int k = 0, s = lane; s < C; k++, s += kWarp) shares.powers[s] = before.message[k], shares.rates[s] = now.power[k] * back[k];
        __syncwarp();
        edges.add(shares, weights, t, lane);
        for (int k = 0; k < kStates; k++) back[k] = mixed(shares.rates, shares.factors, held, false, lane + k * kWarp);
        edges.take(asked.gain, t, previous, label, lane);
        now = before, before = next;
        label = previous, previous = earlier;
    }
}
