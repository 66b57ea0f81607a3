// Exponentials of scores, as factors of plain products: quick, if no sum comes near underflow.
//
// Sums are scaled by powers of 2 at each position. If the allowed scores of a position and of a step lie within `kMostSpread` together,
// and no sum that is not 0 is small next to the largest, nothing that matters underflows.
#pragma once
#include "numbers.cuh"

constexpr double kLeast = 1e-120, kMostSpread = 300;  // exp(-300) * 1e-120 is 1e-250

__device__ inline bool is_small(double number) { return number > 0 && number < kLeast; }

struct Range {  // of scores that are allowed
    double most = forbidden(0.0), least = -forbidden(0.0);

    __device__ void take(double score) {
        most = larger(most, score);
        if (score > forbidden(0.0) && score < least) least = score;
    }
    __device__ bool some() const { return most > forbidden(0.0); }
    __device__ double spread() const { return most > least ? most - least : 0; }
    __device__ double factor(double score) const { return some() ? exp(score - most) : 0; }
};

// The range of all scores, by a warp.
__device__ inline Range range_of(const SCORE *scores, int count, int lane) {
    Range range;
    for (int i = lane; i < count; i += kWarp) range.take(double(scores[i]));
    range.most = largest_in_warp(range.most), range.least = -largest_in_warp(-range.least);
    return range;
}

// The factors of steps into a lane's state, or out of it, in registers if a lane has one state.
struct Held {
    double row[kOne ? C : 1];
    bool held;

    // `factors`: a table, or null.
    template <class Skipped>
    __device__ Held(const double *factors, bool into, int lane, Skipped skipped) : held(kOne && factors) {
#pragma unroll
        for (int i = 0; i < (kOne ? C : 0); i++) {
            int s = into ? i : lane, to = into ? lane : i;
            row[i] = held && lane < C && !skipped(s, to) ? factors[s * C + to] : 0;
        }
    }
    // The sum of numbers times factors, which are a row or a column of a table. `kAtOnce`: independent sums, for pipelining.
    template <int kAtOnce, class N>
    __device__ N sum(const N *numbers) const {
        N sums[kAtOnce] = {};
#pragma unroll
        for (int i = 0; i < (kOne ? C : 0); i++) sums[i % kAtOnce] = sums[i % kAtOnce] + numbers[i] * row[i];
        for (int i = kAtOnce / 2; i; i /= 2)
            for (int j = 0; j < i; j++) sums[j] = sums[j] + sums[j + i];
        return sums[0];
    }
};
