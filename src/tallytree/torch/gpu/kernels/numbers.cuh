// Numbers: scores as they come, sums as they are added.
//
// Compiled at run time with STATES, SCORE (float or double) and, for tables with counts, REAL (float or double) and
// CHUNKS (labels of a type of chunk, 0 if no chunks are counted).
#pragma once

typedef long long int64;

__device__ constexpr int C = STATES;

#ifndef WARP  // the tests run kernels as plain C++
#define WARP 32
#define BLOCK_MEMORY extern __shared__ __align__(16) unsigned char memory[]
#endif
__device__ constexpr int kWarp = WARP;
__device__ constexpr int kStates = (C + kWarp - 1) / kWarp;  // states of one lane: lane, lane + 32, ...
__device__ constexpr bool kOne = kStates == 1;

// The memory of the block, for functions that are not inlined: addresses that come from elsewhere may be those of any memory.
__device__ inline unsigned char *memory_of_block() {
    BLOCK_MEMORY;
    return memory;
}

__device__ inline double forbidden(double) { return __longlong_as_double(0xfff0000000000000LL); }
__device__ inline float forbidden(float) { return __int_as_float(0xff800000); }

// A sum that is never too small: in single precision every entry of a table is an upper bound.
__device__ inline float add_up(float a, float b) { return __fadd_ru(a, b); }
__device__ inline double add_up(double a, double b) { return a + b; }

__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return a < b ? b : a; }  // there is no instruction for it

// A score as a number of a table, never too small.
__device__ inline void convert(float score, float &number) { number = score; }
__device__ inline void convert(double score, float &number) { number = __double2float_ru(score); }
template <class T>
__device__ inline void convert(T score, double &number) {
    number = score;
}

// Where the weights of the step into position t begin: one table for all, or one for each position and sentence.
template <class T>
__device__ inline const T *step_weights(const T *weights, int shared, int64 sentence, int t, int length) {
    return shared ? weights : weights + (sentence * (length - 1) + t - 1) * C * C;
}

// The largest number of a warp. Processors since 2020 find that of integers at once, so numbers become integers in the same order.
__device__ inline float largest_in_warp(float value) {
#if __CUDA_ARCH__ >= 800
    int bits = __float_as_int(value + 0.0f), most = __reduce_max_sync(~0u, bits ^ (bits >> 31 & 0x7fffffff));  // -0 is 0
    return __int_as_float(most ^ (most >> 31 & 0x7fffffff));
#else
    for (int offset = kWarp / 2; offset; offset /= 2) value = larger(value, __shfl_xor_sync(~0u, value, offset));
    return value;
#endif
}
__device__ inline double largest_in_warp(double value) {
#if __CUDA_ARCH__ >= 800
    int64 bits = __double_as_longlong(value + 0.0), key = bits ^ (bits >> 63 & 0x7fffffffffffffffLL);
    int high = __reduce_max_sync(~0u, int(key >> 32));
    unsigned low = __reduce_max_sync(~0u, int(key >> 32) == high ? unsigned(key) : 0u);
    key = int64(high) << 32 | low;
    return __longlong_as_double(key ^ (key >> 63 & 0x7fffffffffffffffLL));
#else
    for (int offset = kWarp / 2; offset; offset /= 2) value = larger(value, __shfl_xor_sync(~0u, value, offset));
    return value;
#endif
}

// The largest exponent of a warp's numbers, which are not negative; far below all others if all are 0.
__device__ inline int largest_exponent(double number) {
    int high = int(__double_as_longlong(number) >> 32);
#if __CUDA_ARCH__ >= 800
    high = __reduce_max_sync(~0u, high);
#else
    for (int offset = kWarp / 2; offset; offset /= 2) {
        int other = __shfl_xor_sync(~0u, high, offset);
        high = other > high ? other : high;
    }
#endif
    return (high >> 20) - 1023;
}

// 2 to the power of an exponent, as near as it can be.
__device__ inline double power_of_two(int exponent) {
    exponent = exponent < -1022 ? -1022 : exponent > 1023 ? 1023 : exponent;
    return __longlong_as_double(int64(exponent + 1023) << 52);
}

__device__ inline int smallest_in_warp(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, value);
#else
    for (int offset = kWarp / 2; offset; offset /= 2) {
        int other = __shfl_xor_sync(~0u, value, offset);
        value = other < value ? other : value;
    }
    return value;
#endif
}

// The best of a warp's candidates; of equal ones the one with the smallest index.
template <class T>
__device__ inline void best_of_warp(T &value, int &index) {
    T most = largest_in_warp(value);
    index = smallest_in_warp(value == most ? index : 0x7fffffff);
    value = most;
}

// A number that is the same in all lanes, in a way that the compiler can see: it is kept once for the warp.
__device__ inline int uniform(int number) { return __shfl_sync(~0u, number, 0); }

__device__ inline double sum_of_warp(double value) {
    for (int offset = kWarp / 2; offset; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
    return value;
}
