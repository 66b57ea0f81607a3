// log Z of every tally of each sentence, and the derivatives of any function of them.
#include "sums.cuh"

struct Summing {  // the input of the kernels, with the batch
    unsigned char *scratch;
    double *answers;  // (sentences, tallies): gets log Z; or has the derivatives of the function
    SCORE *nodes;
    double *edges, *working;  // as for `Expected`
};

extern "C" __global__ void __launch_bounds__(256) log_tallies(const __grid_constant__ Batch batch, const __grid_constant__ Summing asked) {
    BLOCK_MEMORY;
    Work work(memory, batch);
    for (int64 b = blockIdx.x; b < batch.given.sentences; b += gridDim.x) {
        Sentence x = sentence_of(batch, b, asked.scratch);
        fill_tables<Sums>(x, work, b == blockIdx.x);
        for (int l = threadIdx.x; l < batch.tallies; l += blockDim.x) asked.answers[b * batch.tallies + l] = log_tally(x, l);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256) tally_expectations(const __grid_constant__ Batch batch, const __grid_constant__ Summing asked) {
    BLOCK_MEMORY;
    Work work(memory, batch);
    Expected sums(batch, asked.nodes, asked.edges, asked.working, work);
    for (int64 b = blockIdx.x; b < batch.given.sentences; b += gridDim.x) {
        Sentence x = sentence_of(batch, b, asked.scratch);
        fill_tables<Sums>(x, work, b == blockIdx.x);
        sums.add(x, asked.answers + b * batch.tallies, work, nullptr, 0);
    }
    sums.leave();
}
