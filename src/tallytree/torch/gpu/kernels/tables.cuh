// Derivatives by weights that all sentences share: each warp sums its own, and blocks add theirs in order.
#pragma once
#include "sentences.cuh"

constexpr int kTable = (C + 2) * C;   // weights, then first and last scores
constexpr bool kSmall = C <= 32;      // a warp's table lies in shared memory, and a block has one table in the end

// The table of a warp, with zeros; `memory`: of the block, where tables are small.
__device__ inline double *table_of_warp(double *memory, double *tables, int lane) {
    double *own = kSmall ? memory + threadIdx.x / kWarp * kTable : tables + number_of_warp() * kTable;
    for (int i = lane; i < kTable; i += kWarp) own[i] = 0;
    __syncwarp();
    return own;
}

// Leave the sum of a block's tables in the one that is its own.
__device__ inline void leave_tables(const double *memory, double *tables) {
    if (!kSmall) return;
    __syncthreads();
    for (int i = threadIdx.x; i < kTable; i += blockDim.x) {
        double sum = 0;
        for (int warp = 0; warp < blockDim.x / kWarp; warp++) sum += memory[warp * kTable + i];
        tables[int64(blockIdx.x) * kTable + i] = sum;
    }
}
