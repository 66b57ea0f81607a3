// What a kernel needs to run as plain C++: its threads are fibers, which run one after the other.
//
// A thread runs until it waits for its warp, and a warp until it waits for the block: a missing barrier shows, since what others
// should have written is not there, or what they should have read is gone. Threads and warps run forwards and backwards in turns.
// The memory of a block has no numbers in it at first, and threads of a warp that wait for different things are an error.
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __device__
#define __noinline__
#define __shared__ static
#define __CUDA_ARCH__ 900
#define WARP 32
#define BLOCK_MEMORY unsigned char *memory = emulated::memory

struct Index {
    int x;
};
static Index threadIdx{0}, blockDim{1}, blockIdx{0}, gridDim{1};

namespace emulated {

constexpr int kWarp = 32, kMostThreads = 1024, kMostMemory = 227 << 10, kStack = 128 << 10;
constexpr unsigned char kNothing = 0xff;  // nan, or -1
alignas(128) static unsigned char memory[kMostMemory];

enum class Wait { none, block, warp, shuffle, ballot, most, least, end };

struct Thread {
    ucontext_t context;
    jmp_buf place;
    std::unique_ptr<char[]> stack{new char[kStack]};
    Wait wait = Wait::none;
    std::uint64_t given[2];  // what it gives to its warp, and gave before
    int turn = 0;
    unsigned present = 0;    // who gave something
    bool begun = false;
};

static std::deque<Thread> threads;
static jmp_buf scheduler;
static void (*body)(const void *const *);
static const void *const *arguments;
static const char *failure = nullptr;

inline Thread &self() { return threads[threadIdx.x]; }

inline void wait_for(Wait what) {
    self().wait = what;
    if (!_setjmp(self().place)) _longjmp(scheduler, 1);
}

[[noreturn]] inline void fail(const char *what) {
    failure = what;
    for (;;) wait_for(Wait::end);
}

inline void live() {
    for (;;) {
        body(arguments);
        wait_for(Wait::end);
    }
}

inline void resume(int number) {
    threadIdx.x = number;
    if (_setjmp(scheduler)) return;
    Thread &thread = self();
    thread.wait = Wait::none;
    if (thread.begun) _longjmp(thread.place, 1);
    thread.begun = true;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get(), thread.context.uc_stack.ss_size = kStack;
    makecontext(&thread.context, live, 0);
    setcontext(&thread.context);
}

// What a warp waits for, whose threads are `its`: it goes on, unless it waits for the block or has ended.
inline bool release(Thread *const *its) {
    Wait common = Wait::end;
    unsigned present = 0;
    for (int i = 0; i < kWarp; i++) {
        if (its[i]->wait == Wait::end) continue;
        if (common != Wait::end && its[i]->wait != common) failure = "threads of a warp wait for different things";
        common = its[i]->wait, present |= 1u << i;
    }
    if (failure || common == Wait::end || common == Wait::block) return false;
    for (int i = 0; i < kWarp; i++)
        if (present >> i & 1) its[i]->wait = Wait::none, its[i]->present = present;
    return true;
}

inline void run_warp(int warp, bool backwards) {
    Thread *its[kWarp];
    for (int i = 0; i < kWarp; i++) its[i] = &threads[warp * kWarp + i];
    do
        for (int i = 0; i < kWarp; i++) {
            const int lane = backwards ? kWarp - 1 - i : i;
            if (its[lane]->wait == Wait::none) resume(warp * kWarp + lane);
        }
    while (release(its));
}

inline void run_block(bool backwards) {
    const int warps = blockDim.x / kWarp;
    for (int i = 0; i < blockDim.x; i++) threads[i].wait = Wait::none;
    for (bool some = true; some && !failure;) {
        for (int i = 0; i < warps; i++) run_warp(backwards ? warps - 1 - i : i, backwards);
        some = false;
        for (int i = 0; i < blockDim.x; i++)
            if (threads[i].wait == Wait::block) threads[i].wait = Wait::none, some = true;
    }
}

// Give a number to the warp. `read` is called with a function that returns the number of a lane, and the lanes that have one.
template <class T, class Read>
auto exchange(Wait kind, unsigned mask, T value, Read read) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    if (mask != ~0u) fail("only whole warps are emulated");
    const int turn = self().turn ^= 1, first = threadIdx.x / kWarp * kWarp;
    std::memcpy(&self().given[turn], &value, sizeof value);
    wait_for(kind);
    const auto of = [=](int lane) {
        T given;
        std::memcpy(&given, &threads[first + lane].given[turn], sizeof given);
        return given;
    };
    return read(of, self().present);
}

template <class T, class Better>
T best(Wait kind, unsigned mask, T value, Better better) {
    return exchange(kind, mask, value, [&](auto of, unsigned present) {
        T most = value;
        for (int i = 0; i < kWarp; i++)
            if ((present >> i & 1) && better(of(i), most)) most = of(i);
        return most;
    });
}

template <class T>
T shuffle(unsigned mask, T value, int from) {
    return exchange(Wait::shuffle, mask, value, [&](auto of, unsigned) { return from < 0 ? value : of(from); });
}

// Run the blocks of a launch, and return what went wrong, or null.
inline const char *run(void (*kernel)(const void *const *), const void *const *given, int blocks, int size, int bytes) {
    static int launches = 0;
    if (size % kWarp || size > kMostThreads || bytes > kMostMemory) return "there are no such blocks";
    while (static_cast<int>(threads.size()) < size) threads.emplace_back();
    body = kernel, arguments = given, blockDim.x = size, gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks && !failure; blockIdx.x++) {
        std::memset(memory, kNothing, sizeof memory);
        run_block((launches + blockIdx.x) % 2);
        for (int i = bytes; i < kMostMemory; i++)
            if (memory[i] != kNothing) failure = "it wrote beyond the memory of the block";
    }
    launches++;
    if (failure) threads.clear();  // where they have stopped, nobody knows
    return std::exchange(failure, nullptr);
}

}  // namespace emulated

// A kernel whose arguments are given by their addresses.
template <auto Kernel>
struct Launched;
template <class... Given, void (*Kernel)(Given...)>
struct Launched<Kernel> {
    template <std::size_t... I>
    static void call(const void *const *arguments, std::index_sequence<I...>) {
        Kernel(*static_cast<const Given *>(arguments[I])...);
    }
    static void body(const void *const *arguments) { call(arguments, std::index_sequence_for<Given...>()); }
    static const char *run(const void *const *arguments, const std::size_t *sizes, int blocks, int threads, int bytes) {
        const std::size_t expected[] = {sizeof(Given)...};
        for (std::size_t i = 0; i < sizeof...(Given); i++)
            if (sizes[i] != expected[i]) return "an argument has the wrong size";
        return emulated::run(body, arguments, blocks, threads, bytes);
    }
};
#define LAUNCHED(name)                                                                                        \
    extern "C" const char *launch_##name(const void *const *arguments, const std::size_t *sizes, int blocks,  \
                                         int threads, int bytes) {                                            \
        return Launched<name>::run(arguments, sizes, blocks, threads, bytes);                                 \
    }

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
static inline int __float_as_int(float number) {
    int bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
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
static inline int __ffs(unsigned bits) { return __builtin_ffs(int(bits)); }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

static inline void __syncthreads() { emulated::wait_for(emulated::Wait::block); }
static inline void __syncwarp() { emulated::wait_for(emulated::Wait::warp); }
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int from) {
    return emulated::shuffle(mask, value, from % emulated::kWarp);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int other) {
    return emulated::shuffle(mask, value, threadIdx.x % emulated::kWarp ^ other);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, int offset) {
    return emulated::shuffle(mask, value, threadIdx.x % emulated::kWarp - offset);
}
static inline unsigned __ballot_sync(unsigned mask, bool own) {
    return emulated::exchange(emulated::Wait::ballot, mask, unsigned(own), [](auto of, unsigned present) {
        unsigned bits = 0;
        for (int i = 0; i < emulated::kWarp; i++)
            if (present >> i & 1) bits |= of(i) << i;
        return bits;
    });
}
template <class T>
static inline T __reduce_max_sync(unsigned mask, T value) {
    return emulated::best(emulated::Wait::most, mask, value, [](T a, T b) { return a > b; });
}
template <class T>
static inline T __reduce_min_sync(unsigned mask, T value) {
    return emulated::best(emulated::Wait::least, mask, value, [](T a, T b) { return a < b; });
}

static inline void atomicOr(int *place, int value) { *place |= value; }
static inline int atomicAdd(int *place, int value) { return (*place += value) - value; }
static inline int atomicExch(int *place, int value) {
    std::swap(*place, value);
    return value;
}
static inline void atomicMax(int *place, int value) { *place = *place < value ? value : *place; }
static inline void __threadfence() {}
static inline void __threadfence_system() {}
