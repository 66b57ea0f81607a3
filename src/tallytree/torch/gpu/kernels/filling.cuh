// Filling the tables of a sentence from the first position to the last, for any way to combine what arrives at a cell.
#pragma once
#include "counted.cuh"

// The largest weight of a step, as each warp finds it; 0 where all are forbidden.
__device__ inline REAL largest_weight(const SCORE *weights) {
    REAL most = forbidden(REAL(0));
    int ignored = 0;
    for (int i = threadIdx.x % kWarp; i < C * C; i += kWarp) most = larger(most, real(weights[i]));
    best_of_warp(most, ignored);
    return most > forbidden(REAL(0)) ? most : REAL(0);
}

// Weights of a step for shared memory; steps with a shift of their own are left to the exceptions.
template <class Algebra>
__device__ void load_weights(const Sentence &x, int t, Work &work) {
    const SCORE *w = x.step(t);
    REAL most = largest_weight(w);
    for (int i = threadIdx.x; i < C * kPadded; i += blockDim.x) {
        int s = i / kPadded, to = i % kPadded;
        bool left_out = to >= C || (CHUNKS && x.continues(s, to));
        work.weights[i] = Algebra::weight(left_out ? forbidden(REAL(0)) : real(w[s * C + to]), most);
    }
    if (threadIdx.x == 0) *work.most = most;
}

__device__ inline void load_states(const Sentence &x, int t, Work &work) {
    for (int to = threadIdx.x; to < C; to += blockDim.x) {
        int row = CHUNKS && x.begins(t) ? x.agreeing(t, to) : to;
        work.places[to] = row * x.stride + x.shift(t, to);
        work.gains[to] = x.node(t, to);
    }
}

// Steps that go on with a chunk, and those of labellings that have agreed with the true chunk.
__device__ inline void list_exceptions(const Sentence &x, int t, Work &work) {
    for (int i = threadIdx.x; i < work.exception_count; i += blockDim.x) {
        int rest = i - x.pair_count;
        int from = rest < 0 ? x.pairs[2 * i] : C + rest / C, to = rest < 0 ? x.pairs[2 * i + 1] : rest % C;
        Step step = step_of(x, t, from, to);
        bool some = step.label >= 0;
        int label = some ? step.label : 0;
        work.exceptions[i] = {from * x.stride, step.row * x.stride, some ? step.shift : -1, label, to,
                              real(x.step(t)[label * C + to]), x.node(t, to)};
    }
}

__device__ inline void load_step(const Sentence &x, int t, Work &work) {
    load_states(x, t, work);
    list_exceptions(x, t, work);
}

__device__ inline void first_table(const Sentence &x) {
    REAL *table = x.table(0);
    for (int i = threadIdx.x; i < kRows * x.reached(0); i += blockDim.x)
        table[i % kRows * x.stride + x.list(0)[i / kRows]] = forbidden(REAL(0));
    __syncthreads();
    for (int s = threadIdx.x; s < C; s += blockDim.x)
        table[(CHUNKS ? x.agreeing(0, s) : s) * x.stride + x.shift(0, s)] = x.node(0, s);
    __syncthreads();
}

// Cells of the columns in use that no ordinary step leads to.
__device__ inline void clear_rest(const Sentence &x, int t, const Work &work) {
    REAL *table = x.table(t);
    for (int i = threadIdx.x; i < x.reached(t); i += blockDim.x) {
        int l = x.list(t)[i];
        for (int to = 0; to < C; to++) {
            int shift = x.shift(t, to);
            if (!x.alive(t - 1, l - shift)) table[work.places[to] - shift + l] = forbidden(REAL(0));
        }
        for (int row = C; row < kRows; row++) {  // of a label and of its agreement, the one that they do not reach
            int free = x.begins(t) && x.label(t, row) >= 0 ? x.label(t, row) : row;
            table[free * x.stride + l] = forbidden(REAL(0));
        }
    }
}

template <class Algebra>
__device__ void add_exceptions(const Sentence &x, int t, const Work &work) {
    const REAL *before = x.table(t - 1);
    for (int i = threadIdx.x; i < x.reached(t); i += blockDim.x) {
        int l = x.list(t)[i];
        REAL *after = x.table(t) + l;
        for (int n = 0; n < work.exception_count; n++) {
            Exception e = work.exceptions[n];
            if (e.shift < 0 || !x.alive(t - 1, l - e.shift)) continue;
            after[e.after] = Algebra::both(after[e.after], Algebra::through(before[e.before + l - e.shift], e));
        }
    }
}

// All tables; `first`: the block has no weights yet.
template <class Algebra>
__device__ void fill_tables(const Sentence &x, Work &work, bool first) {
    find_columns(x);
    if (x.shared && first) load_weights<Algebra>(x, 1, work);
    first_table(x);
    for (int t = 1; t < x.length; t++) {
        if (!x.shared) load_weights<Algebra>(x, t, work);
        load_step(x, t, work);
        __syncthreads();
        clear_rest(x, t, work);
        for (int i = threadIdx.x; i < x.reached(t - 1); i += blockDim.x)
            for (int base = 0; base < C; base += kTile) Algebra::advance(x, t, x.list(t - 1)[i], base, work);
        __syncthreads();
        if (!CHUNKS) continue;
        add_exceptions<Algebra>(x, t, work);
        __syncthreads();
    }
}
