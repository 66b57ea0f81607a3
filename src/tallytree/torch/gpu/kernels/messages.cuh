// Messages of chains without counts: one warp per sentence, one lane per state; sums in double precision.
//
// Messages are kept relative to their largest entry, so that long sentences lose no digits.
#pragma once
#include "factors.cuh"
#include "sentences.cuh"

constexpr double kTiny = 1e-250;  // smaller sums of exponentials are added again, relative to their own largest term

// The largest number of a lane's states.
__device__ inline double largest(const double *numbers) {
    double most = forbidden(0.0);
    for (int k = 0; k < kStates; k++) most = larger(most, numbers[k]);
    return most;
}

// Take off the largest entry, unless nothing is allowed, and return it.
__device__ inline double normalise(double *message) {
    double most = largest_in_warp(largest(message));
    if (!(most > forbidden(0.0))) return most;
    for (int k = 0; k < kStates; k++) message[k] -= most;
    return most;
}

// log of the sum over s of exp(source[s] + w[s, to]), each term relative to the largest.
__device__ inline double careful_sum(const double *source, const SCORE *w, int to) {
    double most = forbidden(0.0), sum = 0;
    for (int s = 0; s < C; s++) most = larger(most, source[s] + double(w[s * C + to]));
    if (!(most > forbidden(0.0))) return most;
    for (int s = 0; s < C; s++) sum += exp(source[s] + double(w[s * C + to]) - most);
    return log(sum) + most;
}

struct Weights {  // of one step: as given, their largest, and exp(weight - largest) if all steps share them
    const SCORE *given;
    double most;
    const double *factors;

    __device__ double factor(int s, int to) const {
        return factors ? factors[s * C + to] : exp(double(given[s * C + to]) - most);
    }
};

__device__ inline bool ordinary(double sum) { return sum > kTiny; }

struct Shares {  // shared memory: the factors of the block, then three rows for each warp
    double *factors, *message, *powers, *rates, *rest;
    Range range;  // of shared weights

    __device__ Shares(unsigned char *memory, int with_factors) {
        double *first = reinterpret_cast<double *>(memory);
        factors = with_factors ? first : nullptr;
        first += with_factors * C * C;
        message = first + threadIdx.x / kWarp * 3 * C;
        powers = message + C;
        rates = powers + C;
        rest = first + blockDim.x / kWarp * 3 * C;
    }

    __device__ void fill(const SCORE *weights) {
        if (!factors) return;
        range = range_of(weights, C * C, threadIdx.x % kWarp);
        for (int i = threadIdx.x; i < C * C; i += blockDim.x) factors[i] = range.factor(double(weights[i]));
        __syncthreads();
    }

    __device__ Weights weights(const SCORE *given, int lane) const {
        Range its = factors ? range : range_of(given, C * C, lane);
        return Weights{given, its.some() ? its.most : 0, factors};
    }

    __device__ void publish(const double *its, int lane) {
        __syncwarp();
        for (int k = 0, s = lane; s < C; k++, s += kWarp) message[s] = its[k], powers[s] = exp(its[k]);
        __syncwarp();
    }

    // The sum over s of exp(message[s] + w[s, to] - the largest weight).
    __device__ double arriving(const Weights &w, int to) const {
        double sum = 0;
        for (int s = 0; s < C; s++) sum += powers[s] * w.factor(s, to);
        return sum;
    }
};

// The messages of one sentence from left to right; returns log Z. `kept` gets them if a backward pass follows.
__device__ inline double forward(const Chain &chain, Shares &shares, double *kept, int lane) {
    double message[kStates], next[kStates], total = 0;
    for (int k = 0; k < kStates; k++) message[k] = chain.node(0, lane + k * kWarp);
    for (int t = 0;; t++) {
        for (int k = 0; k < kStates; k++) next[k] = t + 1 < chain.length ? chain.node(t + 1, lane + k * kWarp) : 0;
        double most = normalise(message);
        total += most;
        if (!(most > forbidden(0.0))) return most;
        shares.publish(message, lane);
        for (int k = 0, s = lane; kept && s < C; k++, s += kWarp) kept[t * C + s] = message[k];
        if (t + 1 == chain.length) break;
        Weights w = shares.weights(chain.step(t + 1), lane);
        for (int k = 0, to = lane; to < C; k++, to += kWarp) {
            double sum = shares.arriving(w, to);
            double arrived = ordinary(sum) ? log(sum) + w.most : careful_sum(shares.message, w.given, to);
            message[k] = arrived + next[k];
        }
    }
    double sum = 0;
    for (int s = lane; s < C; s += kWarp) sum += shares.powers[s];
    return total + log(sum_of_warp(sum));
}
