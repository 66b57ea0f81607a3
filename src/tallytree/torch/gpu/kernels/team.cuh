// Blocks that fill the tables of one sentence together, if there are fewer sentences than the device can take: a cluster.
#pragma once
#include "numbers.cuh"

#ifndef TEAM
#define TEAM 1
#endif
constexpr int kTeam = TEAM;

#if TEAM > 1
#define TEAM_OF_BLOCKS __cluster_dims__(TEAM, 1, 1)

__device__ inline int rank_in_team() {
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// A barrier of all threads of the team, which then see what the others have written.
__device__ inline void wait_for_team() {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
#else
#define TEAM_OF_BLOCKS

__device__ inline int rank_in_team() { return 0; }
__device__ inline void wait_for_team() { __syncthreads(); }
#endif

__device__ inline int thread_of_team() { return rank_in_team() * blockDim.x + threadIdx.x; }
__device__ inline int threads_of_team() { return kTeam * blockDim.x; }
__device__ inline int number_of_team() { return blockIdx.x / kTeam; }
