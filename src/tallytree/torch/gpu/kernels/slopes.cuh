// Derivatives of log Z of chains without counts: where they go, and the way back through messages.
#pragma once
#include "messages.cuh"

struct Asked {  // for one sentence: the gain of its value, its labels or null, and where its derivatives go
    double gain;
    const int64 *labels;
    SCORE *slopes;

    __device__ int label(int t) const { return labels && t >= 0 ? int(labels[t]) : -1; }
};

// Where derivatives for weights go: a warp's table, or one table per step.
struct Edges {
    double *table;
    int shared;
    double sums[kOne ? C : 1];  // of a lane's column, before the factors, if they fit in registers

    __device__ Edges(double *table, int shared) : table(table), shared(shared) {
        for (int s = 0; s < (kOne ? C : 1); s++) sums[s] = 0;
    }

    __device__ double *at(int t) const { return shared ? table : table + int64(t - 1) * C * C; }

    // The share of each step into t: the power before it, times its factor, times the rate after it.
    __device__ void add(const Shares &shares, const Weights &w, int t, int lane) {
        if constexpr (kOne) {
            if (shared) {
                double rate = lane < C ? shares.rates[lane] : 0;
#pragma unroll
                for (int s = 0; s < C; s++) sums[s] += shares.powers[s] * rate;
                return;
            }
        }
        for (int to = lane; to < C; to += kWarp)
            for (int s = 0; s < C; s++) {
                double share = shares.powers[s] * w.factor(s, to) * shares.rates[to];
                double *place = at(t) + s * C + to;
                *place = shared ? *place + share : share;
            }
        __syncwarp();
    }

    // Add the derivative of a state at the first or the last position.
    __device__ void end(const Chain &chain, int t, int s, double slope) {
        if (shared && t == 0) table[C * C + s] += slope;
        if (shared && t + 1 == chain.length) table[C * C + C + s] += slope;
    }

    // Subtract the gain of a step of the labels into t, in the lane that has the column.
    __device__ void take(double gain, int t, int from, int to, int lane) {
        __syncwarp();
        if (to >= 0 && to % kWarp == lane) at(t)[from * C + to] -= gain;
    }

    __device__ void finish(const Shares &shares, int lane) {
        __syncwarp();
        if (kOne && shared && lane < C)
#pragma unroll
            for (int s = 0; s < (kOne ? C : 1); s++) table[s * C + lane] += sums[s] * shares.factors[s * C + lane];
        __syncwarp();
    }
};

// Split the mass of a state whose sum left the range of numbers, term by term.
__device__ void split_carefully(double mass, const Shares &shares, const SCORE *w, int to, double *edges, double *next, int lane) {
    double arrived = careful_sum(shares.message, w, to);
    for (int k = 0, s = lane; s < C; k++, s += kWarp) {
        double share = mass * exp(shares.message[s] + double(w[s * C + to]) - arrived);
        next[k] += share;
        edges[s * C + to] += share;
    }
    __syncwarp();
}

// One step to the left: a state's mass is split among the states before it in proportion to what arrived from them.
__device__ void split(double *mass, Shares &shares, const Weights &w, Edges &edges, int t, int lane) {
    double next[kStates];
    unsigned odd[kStates];
    for (int k = 0; k < kStates; k++) {
        int to = lane + k * kWarp;
        double sum = to < C && mass[k] != 0 ? shares.arriving(w, to) : 1;
        odd[k] = __ballot_sync(~0u, !ordinary(sum));
        if (to < C) shares.rates[to] = ordinary(sum) ? mass[k] / sum : 0;
        next[k] = 0;
    }
    __syncwarp();
    edges.add(shares, w, t, lane);
    for (int k = 0, s = lane; s < C; k++, s += kWarp) {
        double sums[4] = {0, 0, 0, 0};  // independent, for pipelining
#pragma unroll 8
        for (int to = 0; to < C; to++) sums[to % 4] += w.factor(s, to) * shares.rates[to];
        next[k] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * shares.powers[s];
    }
    for (int k = 0; k < kStates; k++)
        for (unsigned rest = odd[k]; rest; rest &= rest - 1) {
            int owner = __ffs(rest) - 1;
            split_carefully(__shfl_sync(~0u, mass[k], owner), shares, w.given, owner + k * kWarp, edges.at(t), next, lane);
        }
    for (int k = 0; k < kStates; k++) mass[k] = next[k];
}

// Derivatives from the messages in `kept`; the messages of the last position must be published.
__device__ void backward(const Chain &chain, const Asked &asked, Shares &shares, const double *kept, Edges &edges, int lane) {
    double mass[kStates], sum = 0;
    for (int k = 0; k < kStates; k++) {
        int s = lane + k * kWarp;
        mass[k] = s < C ? shares.powers[s] : 0;
        sum += mass[k];
    }
    sum = asked.gain / sum_of_warp(sum);
    for (int k = 0; k < kStates; k++) mass[k] *= sum;
    double before[kStates];  // the message of the position before, a step ahead
    auto load = [&](int t) {
        for (int k = 0, s = lane; t >= 0 && s < C; k++, s += kWarp) before[k] = kept[t * C + s];
    };
    load(chain.length - 2);
    for (int t = chain.length - 1;; t--) {
        for (int k = 0, s = lane; s < C; k++, s += kWarp) {
            double slope = mass[k] - (asked.label(t) == s ? asked.gain : 0);
            asked.slopes[t * C + s] = SCORE(slope);
            edges.end(chain, t, s, slope);
        }
        if (!t) return;
        shares.publish(before, lane);
        load(t - 2);
        split(mass, shares, shares.weights(chain.step(t), lane), edges, t, lane);
        edges.take(asked.gain, t, asked.label(t - 1), asked.label(t), lane);
    }
}
