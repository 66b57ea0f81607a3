// The findings of kernels about a batch, in a few words that are read once; and what the last block of a launch does.
#pragma once
#include "sentences.cuh"

// Bits of the first word: findings that are checked again on the CPU for a full message.
constexpr int kEnds = 1;       // a sentence without positions, or a mask with holes
constexpr int kTags = 2;       // a tag out of range
constexpr int kScores = 4;     // nan or +inf
constexpr int kForbidden = 8;  // true tags with a score of -inf
constexpr int kUnknown = 16;   // a truth whose losses are not in a table yet
constexpr int kNothing = 32;   // a sentence without an allowed labelling
constexpr int kLimited = 64;   // scores of -inf: there may be such a sentence

// Indices of the other words.
constexpr int kTotal = 1;    // the number of positions of all sentences
constexpr int kColumns = 2;  // the maximum number of columns of the tables of a sentence; or of its positions
constexpr int kPadding = 3;  // the maximum number of positions after the end of a sentence
constexpr int kTold = 4;     // on the device: blocks that have found what they can; for the host: whether all have
constexpr int kEnded = 5;    // blocks that have ended
constexpr int kNext = 7;     // sentences that blocks have taken
constexpr int kWrong = 6;    // in a CUDA graph: findings of the last replay that make its results invalid

struct Findings {
    int *words;  // zeros between launches, or null
    int *told;   // in the memory of the host; null if a later launch tells
    int fatal;   // in a CUDA graph, where nobody waits: findings that make results invalid; else 0
};

__device__ inline bool is_wrong(const int *words) { return words && *static_cast<const volatile int *>(words + kWrong); }

// Whether a block is the last one to come here: it then sees what all have written before.
__device__ inline bool is_last(int *count) {
    __shared__ int last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(count, 1) + 1 == int(gridDim.x);
        if (last) *count = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

// Which sentences a block takes: after its first one, always the first that is left, so that blocks end about together.
class Queue {
  public:
    __device__ Queue(const Findings &found, bool by_turns) : words(by_turns ? nullptr : found.words) {
        __shared__ int places[2];  // in turns, so that a number is kept until all threads have read it
        numbers = places;
    }

    // Ask for the sentence after this one, which is known after the next barrier.
    __device__ void ask() {
        turn = 1 - turn;
        if (words && threadIdx.x == 0) numbers[turn] = atomicAdd(words + kNext, 1);
    }

    // The sentence after b.
    __device__ int64 next(int64 b) const { return gridDim.x + (words ? numbers[turn] : b); }

  private:
    int *words;  // or null: blocks take turns
    int *numbers, turn = 0;
};

// Tell the host what all blocks have found, while they go on.
__device__ inline void tell_host(const Findings &found) {
    if (!found.told || !is_last(found.words + kTold) || threadIdx.x) return;
    volatile int *told = found.told;
    int words[kTold];
    for (int i = 0; i < kTold; i++) words[i] = atomicExch(found.words + i, 0);
    if (found.fatal) {  // kept for later launches, and for the host until it asks
        atomicExch(found.words + kWrong, words[0] & found.fatal);
        if (words[0] & found.fatal) told[0] = told[0] | (words[0] & found.fatal);
        __threadfence_system();
        return;
    }
    for (int i = 0; i < kTold; i++) told[i] = words[i];
    __threadfence_system();
    told[kTold] = 1;
}

struct Total {  // of the values of all sentences
    SCORE *total;    // or null
    double divisor;  // 0: the number of positions
};

// The sum of a number of each thread of a block.
__device__ inline double sum_of_block(double value) {
    __shared__ double sums[32];
    value = sum_of_warp(value);
    __syncthreads();
    if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < blockDim.x / kWarp; warp++) value += sums[warp];
    return value;
}

// One over the number of positions of all sentences, in each block.
__device__ double one_per_position(const Padded &given) {
    double positions = 0;
    for (int b = threadIdx.x; b < given.sentences; b += blockDim.x) positions += given.lengths[b];
    return 1 / sum_of_block(positions);
}

// The results of invalid inputs in a CUDA graph, by one block or by all.
__device__ inline void invalidate(const Padded &given, double *values, const Total &all) {
    double nan = __longlong_as_double(0x7ff8000000000000LL);
    for (int b = threadIdx.x; b < given.sentences; b += blockDim.x) values[b] = nan;
    if (all.total && threadIdx.x == 0) *all.total = SCORE(nan);
}

// Add up the values of all sentences, in the last block.
__device__ inline void add_total(const Padded &given, double *values, const Total &all, const Findings &found) {
    if (!found.words || !is_last(found.words + kEnded)) return;
    if (threadIdx.x == 0) found.words[kNext] = 0;
    if (is_wrong(found.words)) return invalidate(given, values, all);
    if (!all.total) return;
    const volatile double *value = values;
    const volatile int *length = given.lengths;
    double sum = 0, positions = 0;
    for (int b = threadIdx.x; b < given.sentences; b += blockDim.x) sum += value[b], positions += length[b];
    sum = sum_of_block(sum);
    positions = sum_of_block(positions);
    if (threadIdx.x == 0) *all.total = SCORE(sum / (all.divisor ? all.divisor : positions));
}
