// Derivatives for weights that all sentences share: each warp sums its own, and blocks add up their warps in order.
#pragma once
#include "sentences.cuh"

constexpr int kTable = (C + 2) * C;   // weights, then start and end scores
constexpr bool kSmall = C <= 32;      // tables of warps are in shared memory, and are added up by block

// The table of a warp, filled with zeros; `memory`: of the block, for small tables.
__device__ inline double *table_of_warp(double *memory, double *tables, int lane) {
    double *own = kSmall ? memory + threadIdx.x / kWarp * kTable : tables + number_of_warp() * kTable;
    for (int i = lane; i < kTable; i += kWarp) own[i] = 0;
    __syncwarp();
    return own;
}

// Write the sum of a block's tables to its own one; `apart`: write the table of each warp to one of its own.
__device__ inline void leave_tables(const double *memory, double *tables, int apart = 0) {
    if (!kSmall) return;  // they are there, one for each warp
    __syncthreads();
    int warps = blockDim.x / kWarp;
    for (int i = threadIdx.x; apart && i < warps * kTable; i += blockDim.x) tables[int64(blockIdx.x) * warps * kTable + i] = memory[i];
    for (int i = threadIdx.x; !apart && i < kTable; i += blockDim.x) {
        double sum = 0;
        for (int warp = 0; warp < warps; warp++) sum += memory[warp * kTable + i];
        tables[int64(blockIdx.x) * kTable + i] = sum;
    }
}
