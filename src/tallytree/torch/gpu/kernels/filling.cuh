// Filling the tables of a sentence from the first position to the last, for any way to combine what arrives at a cell.
#pragma once
#include "counted.cuh"

// The largest weight of a step, as each warp finds it; 0 if all are forbidden.
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
    Box box = x.box(t);
    for (int to = threadIdx.x; to < C; to += blockDim.x) {
        int row = CHUNKS && x.begins(t) ? x.agreeing(t, to) : to, shift = x.shift(t, to), line = x.batch->line;
        work.places[to] = row * box.size() + shift / line * box.width + shift % line;
        work.gains[to] = x.node(t, to);
    }
}

// Steps that go on with a chunk, and those of labellings that have agreed with the true chunk.
__device__ inline void list_exceptions(const Sentence &x, int t, Work &work) {
    const int *pairs = x.batch->pairs;
    int line = x.batch->line;
    for (int i = threadIdx.x; i < work.exception_count; i += blockDim.x) {
        int rest = i - x.batch->pair_count;
        int from = rest < 0 ? pairs[2 * i] : C + rest / C, to = rest < 0 ? pairs[2 * i + 1] : rest % C;
        Step step = step_of(x, t, from, to);
        bool some = step.label >= 0;
        int label = some ? step.label : 0;
        work.exceptions[i] = {from, step.row, some ? step.shift / line : -1, step.shift % line,
                              label, to, real(x.step(t)[label * C + to]), x.node(t, to)};
    }
}

__device__ inline void load_step(const Sentence &x, int t, Work &work) {
    load_states(x, t, work);
    list_exceptions(x, t, work);
}

struct Column {  // a column before, and where its cells go but for what states add
    const REAL *before;
    REAL *after;
    int stride;  // between the rows before
};

__device__ inline void clear_table(const Sentence &x, int t) {
    REAL *table = x.table(t);
    for (int i = threadIdx.x; i < kRows * x.box(t).size(); i += blockDim.x) table[i] = forbidden(REAL(0));
}

__device__ inline void first_table(const Sentence &x) {
    clear_table(x, 0);
    __syncthreads();
    for (int s = threadIdx.x; s < C; s += blockDim.x) {
        int row = CHUNKS ? x.agreeing(0, s) : s;
        x.table(0)[row * x.box(0).size() + x.column(0, x.shift(0, s))] = x.node(0, s);
    }
}

// A thread takes a column of the new table.
template <class Algebra>
__device__ void add_exceptions(const Sentence &x, int t, const Work &work) {
    const REAL *before = x.table(t - 1);
    Box old = x.box(t - 1), box = x.box(t);
    for (int i = threadIdx.x; i < box.size(); i += blockDim.x) {
        int line = i / box.width, within = i % box.width;
        REAL *after = x.table(t) + i;
        for (int n = 0; n < work.exception_count; n++) {
            Exception e = work.exceptions[n];
            int column = old.column(line - e.lines, within - e.within);
            if (e.lines < 0 || column < 0) continue;
            REAL score = Algebra::through(before[e.before * old.size() + column], e), *cell = after + e.after * box.size();
            *cell = Algebra::both(*cell, score);
        }
    }
}

// All tables; `first`: the block has no weights yet.
template <class Algebra>
__device__ void fill_tables(const Sentence &x, Work &work, bool first) {
    if (x.batch->given.shared && first) load_weights<Algebra>(x, 1, work);
    first_table(x);
    if (x.length > 1) clear_table(x, 1);
    for (int t = 1; t < x.length; t++) {
        if (!x.batch->given.shared) load_weights<Algebra>(x, t, work);
        load_step(x, t, work);
        __syncthreads();
        Box old = x.box(t - 1), box = x.box(t);
        for (int i = threadIdx.x; i < old.size(); i += blockDim.x) {
            Column c{x.table(t - 1) + i, x.table(t) + i / old.width * box.width + i % old.width, old.size()};
            for (int base = 0; base < C; base += kTile) Algebra::advance(x, t, c, base, work);
        }
        if (t + 1 < x.length) clear_table(x, t + 1);
        __syncthreads();
        if (!CHUNKS) continue;
        add_exceptions<Algebra>(x, t, work);
        __syncthreads();
    }
    __syncthreads();
}
