// What a kernel needs to run as plain C++: blocks of one thread, warps of one lane.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __device__
#define __noinline__
#define __shared__ static thread_local
#define WARP 1
#define BLOCK_MEMORY alignas(16) static thread_local unsigned char memory[1 << 20]

struct Index {
    int x;
};
static const Index threadIdx{0}, blockDim{1};
static thread_local Index blockIdx{0}, gridDim{1};
extern "C" void place(int block, int blocks) { blockIdx.x = block, gridDim.x = blocks; }

static inline double __longlong_as_double(long long bits) {
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}
static inline long long __double_as_longlong(double number) {
    long long bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}
static inline float __int_as_float(int bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}
static inline float __fadd_ru(float a, float b) {
    float sum = a + b;
    return double(sum) < double(a) + double(b) ? std::nextafterf(sum, INFINITY) : sum;
}
static inline float __double2float_ru(double number) {
    float near = float(number);
    return double(near) < number ? std::nextafterf(near, INFINITY) : near;
}
static inline void sincospif(float turn, float *sine, float *cosine) {
    *sine = std::sin(3.14159265f * turn), *cosine = std::cos(3.14159265f * turn);
}
static inline void __syncthreads() {}
static inline void __syncwarp() {}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int) { return value; }
template <class T> static inline T __shfl_sync(unsigned, T value, int) { return value; }
static inline unsigned __ballot_sync(unsigned, bool own) { return own; }
static inline int __ffs(unsigned bits) { return __builtin_ffs(int(bits)); }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
template <class T> static inline T __shfl_up_sync(unsigned, T value, int) { return value; }
static inline void atomicOr(int *place, int value) { *place |= value; }
static inline int atomicAdd(int *place, int value) { return (*place += value) - value; }
static inline int atomicExch(int *place, int value) { std::swap(*place, value); return value; }
static inline void __threadfence() {}
static inline void __threadfence_system() {}
static inline void atomicMax(int *place, int value) { *place = *place < value ? value : *place; }
