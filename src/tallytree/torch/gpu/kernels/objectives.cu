// Objectives of the losses of all labellings, with their derivatives: the expected loss, and the softmax margin.
#include "sums.cuh"

struct Objective {  // the input of the kernel, with the batch
    const double *losses;  // rows of the losses of all tallies
    const int *which;      // the row of each sentence
    const int64 *labels;   // the true tags
    const double *right;   // their scores; null: the expected loss, else the softmax margin
    const SCORE *upstream;  // the gain of each value, or null for 1
    unsigned char *scratch;
    double *weights;  // memory of each block, for each tally
    double *values;
    SCORE *nodes;  // derivatives for nodes, or null
    double *edges, *working;  // as for `Expected`
    Findings found;           // of sentences without an allowed labelling, if that is told
    Total all;
};

__device__ inline double largest_of_block(double value) {
    __shared__ double most[32];
    value = largest_in_warp(value);
    __syncthreads();
    if (threadIdx.x % kWarp == 0) most[threadIdx.x / kWarp] = value;
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / kWarp; warp++) value = larger(value, most[warp]);
    return value;
}

// The value of a sentence, from its tables; `weights` gets the derivative by log Z of each tally, times `gain`.
__device__ double value_of(const Sentence &x, const Objective &asked, double gain, double *weights) {
    int tallies = x.batch->tallies;
    const double *losses = asked.losses + int64(asked.which[x.number]) * tallies;
    double most = forbidden(0.0), sum = 0, mean = 0;
    for (int l = threadIdx.x; l < tallies; l += blockDim.x) {
        double log = log_tally(x, l);
        weights[l] = asked.right ? log + losses[l] : log;
        most = larger(most, weights[l]);
    }
    most = largest_of_block(most);
    if (!(most > forbidden(0.0))) return most;
    for (int l = threadIdx.x; l < tallies; l += blockDim.x) {
        double share = weights[l] > forbidden(0.0) ? exp(weights[l] - most) : 0;
        weights[l] = share;
        sum += share;
        if (share != 0) mean += share * losses[l];
    }
    sum = sum_of_block(sum);
    mean = sum_of_block(mean) / sum;
    for (int l = threadIdx.x; l < tallies; l += blockDim.x)
        if (weights[l] != 0) weights[l] *= gain / sum * (asked.right ? 1 : losses[l] - mean);
    __syncthreads();
    return asked.right ? most + log(sum) - asked.right[x.number] : mean;
}

extern "C" __global__ void __launch_bounds__(256) objective(const __grid_constant__ Batch batch, const __grid_constant__ Objective asked) {
    BLOCK_MEMORY;
    if (is_wrong(asked.found.words)) return invalidate(batch.given, asked.values, asked.all);
    Work work(memory, batch);
    Expected sums(batch, asked.nodes, asked.edges, asked.working, work);
    double *weights = asked.weights + int64(blockIdx.x) * batch.tallies;
    for (int64 b = blockIdx.x; b < batch.given.sentences; b += gridDim.x) {
        Sentence x = sentence_of(batch, b, asked.scratch);
        fill_tables<Sums>(x, work, b == blockIdx.x);
        double gain = asked.upstream ? double(asked.upstream[b]) : 1, value = value_of(x, asked, gain, weights);
        bool possible = value > forbidden(0.0);
        if (threadIdx.x == 0) asked.values[b] = value;
        if (threadIdx.x == 0 && !possible && asked.found.told) atomicOr(asked.found.words, kNothing);
        const int64 *labels = asked.right ? asked.labels + b * batch.given.positions : nullptr;
        if (asked.nodes && possible) sums.add(x, weights, work, labels, gain);
        __syncthreads();
    }
    if (asked.nodes) sums.leave();
    tell_host(asked.found);
    add_total(batch.given, asked.values, asked.all, asked.found);
}
