// Numbers of any size: part * 2^exponent, for sums of products whose factors lie too far apart for a double.
#pragma once
#include "numbers.cuh"

struct Wide {
    double part, exponent;  // 1 <= part < 2, or both are 0

    __device__ Wide(double number = 0, double power = 0) : part(number), exponent(power) {
        if (part == 0) {
            exponent = 0;
            return;
        }
        int own = ilogb(part);
        part = scalbn(part, -own), exponent += own;
    }
    __device__ bool some() const { return part != 0; }
};

__device__ __noinline__ Wide operator*(const Wide &a, const Wide &b) { return {a.part * b.part, a.exponent + b.exponent}; }

__device__ __noinline__ Wide operator+(const Wide &a, const Wide &b) {
    if (!a.some()) return b;
    if (!b.some()) return a;
    const Wide &large = a.exponent < b.exponent ? b : a, &small = a.exponent < b.exponent ? a : b;
    double gap = large.exponent - small.exponent;
    return gap > 1000 ? large : Wide(large.part + scalbn(small.part, -int(gap)), large.exponent);
}

// exp of a score, which may be -inf.
__device__ __noinline__ Wide wide_power(double score) {
    if (!(score > forbidden(0.0))) return {};
    double exponent = rint(score * 1.4426950408889634);
    double rest = fma(-exponent, 1.9082149292705877e-10, fma(-exponent, 0.6931471803691238, score));  // log 2, in two parts
    return {exp(rest), exponent};
}

// A number as a double, times a power of 2.
__device__ __noinline__ double narrow(const Wide &number, double power = 0) {
    double exponent = number.exponent + power;
    exponent = exponent < -4000 ? -4000 : exponent > 4000 ? 4000 : exponent;
    return scalbn(number.part, int(exponent));
}
__device__ inline double narrow(double number, double power) { return narrow(Wide(number), power); }
__device__ inline bool is_some(const Wide &number) { return number.some(); }
__device__ inline bool is_some(double number) { return number != 0; }
