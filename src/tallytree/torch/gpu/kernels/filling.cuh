// Filling the tables of a sentence from the first position to the last, for any way to combine what arrives at a cell.
#pragma once
#include "counted.cuh"

// The largest weight of a step, as each warp finds it; 0 if all are forbidden.
__device__ inline REAL largest_weight(const SCORE *weights) {
    REAL most = forbidden(REAL(0));
    for (int i = threadIdx.x % kWarp; i < C * C; i += kWarp) most = larger(most, real(weights[i]));
    most = largest_in_warp(most);
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

struct State {  // what ordinary steps into a row add at a position, read before it is needed
    int shift = -1;
    REAL gain = 0;

    State() = default;
    __device__ State(const Sentence &x, int t, int place, int row) {
        if (t >= x.length || row >= kRows) return;
        int to = x.leading(t, row);
        if (to >= 0) shift = x.shift_at(place, to), gain = x.node(t, to);
    }
    __device__ void put(const Sentence &x, int t, int row, Work &work) const {
        Shift its = x.split(shift);
        Box box = x.box(t);
        int to = x.leading(t, row);
        work.shift(t, row) = its;
        if (to < 0) return;
        work.places(t)[to] = row * box.size() + its.lines * box.width + its.within;
        work.gains(t)[to] = gain;
    }
};

// `own`: that of the thread's own row, the first one that it takes.
__device__ inline void load_states(const Sentence &x, int t, const State &own, Work &work) {
    for (int row = threadIdx.x; row < kRows; row += blockDim.x)
        (row < blockDim.x ? own : State(x, t, x.place(t), row)).put(x, t, row, work);
}

// Steps that go on with a chunk, and those of labellings that have agreed with the true chunk; in order, by the last warp.
__device__ inline void list_exceptions(const Sentence &x, int t, Work &work) {
    int lane = int(threadIdx.x) - int(blockDim.x) + kWarp;
    if (!CHUNKS || lane < 0) return;
    const int *pairs = x.batch->pairs;
    int line = x.batch->line, listed = 0;
    for (int first = 0; first < work.exception_count; first += kWarp) {
        int i = first + lane, rest = i - x.batch->pair_count;
        Step step{-1, 0, 0};
        int from = 0, to = 0;
        if (i < work.exception_count) {
            from = rest < 0 ? pairs[2 * i] : C + rest / C, to = rest < 0 ? pairs[2 * i + 1] : rest % C;
            step = step_of(x, t, from, to);
        }
        unsigned some = __ballot_sync(~0u, step.label >= 0);
        int place = listed + __popc(some & ((1u << lane) - 1));
        if (step.label >= 0)
            work.exceptions[place] = {from, step.row, step.shift / line, step.shift % line,
                                      step.label, to, real(x.step(t)[step.label * C + to]), x.node(t, to)};
        listed += __popc(some);
    }
    if (lane == 0) *work.listed = listed;
}

__device__ inline void load_step(const Sentence &x, int t, const State &own, Work &work) {
    load_states(x, t, own, work);
    list_exceptions(x, t, work);
}

struct Column {  // a column before, and where its cells go but for what states add
    const REAL *before;
    REAL *after;
    int stride;  // between the rows before
};

// Clear the cells that no ordinary step leads to: those beside the box before, shifted by what the state of a row adds.
// A warp takes some of the rows.
__device__ inline void clear_rest(const Sentence &x, int t, const Work &work) {
    Box before = x.box(t - 1), box = x.box(t);
    REAL *table = x.table(t);
    int lane = threadIdx.x % kWarp, warp = thread_of_team() / kWarp, warps = threads_of_team() / kWarp;
    int lines = box.lines - before.lines, gap = box.width - before.width;  // whole lines, and cells of the others
    int whole = lines * box.width, count = whole + before.lines * gap;
    for (int i = lane; i < count; i += kWarp) {
        bool is_whole = i < whole;
        int rest = is_whole ? i : i - whole, width = is_whole ? box.width : gap, line = rest / width, within = rest % width;
        for (int row = warp; row < kRows; row += warps) {
            Shift shift = work.shift(t, row);
            int its_line = !is_whole ? line + shift.lines : line < shift.lines ? line : line + before.lines;
            int its_place = is_whole || within < shift.within ? within : within + before.width;
            int cell = row * box.size() + its_line * box.width + its_place;
            if (shift.lines >= 0) table[cell] = forbidden(REAL(0));
        }
    }
    for (int row = warp; CHUNKS && row < kRows; row += warps)  // rows that no ordinary step leads to
        for (int i = lane; work.shift(t, row).lines < 0 && i < box.size(); i += kWarp) table[row * box.size() + i] = forbidden(REAL(0));
}

__device__ inline void first_table(const Sentence &x) {
    int first = thread_of_team(), all = threads_of_team();
    for (int i = first; i < kRows * x.box(0).size(); i += all) x.table(0)[i] = forbidden(REAL(0));
    wait_for_team();
    for (int s = first; s < C; s += all) {
        int row = CHUNKS ? x.agreeing(0, s) : s;
        x.table(0)[row * x.box(0).size() + x.column(0, x.shift(0, s))] = x.node(0, s);
    }
}

// A thread takes a column of the new table, and a few steps at once, whose cells need not be waited for one by one.
template <class Algebra>
__device__ void add_exceptions(const Sentence &x, int t, const Work &work) {
    constexpr int kAtOnce = 4;
    const REAL *before = x.table(t - 1);
    Box old = x.box(t - 1), box = x.box(t);
    for (int i = threadIdx.x; i < box.size(); i += blockDim.x) {
        int line = i / box.width, within = i % box.width;
        REAL *after = x.table(t) + i;
        for (int first = 0; first < *work.listed; first += kAtOnce) {
            REAL scores[kAtOnce], cells[kAtOnce];
            int rows[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; k++) {
                const Exception &e = work.exceptions[first + k];
                int column = first + k < *work.listed ? old.column(line - e.lines, within - e.within) : -1;
                rows[k] = column < 0 ? -1 : e.after;
                scores[k] = column < 0 ? REAL(0) : before[e.before * old.size() + column];
                cells[k] = column < 0 ? REAL(0) : after[e.after * box.size()];
            }
#pragma unroll
            for (int k = 0; k < kAtOnce; k++) {
                if (rows[k] < 0) continue;
#pragma unroll
                for (int j = 0; j < k; j++) cells[k] = rows[j] == rows[k] ? cells[j] : cells[k];
                cells[k] = Algebra::both(cells[k], Algebra::through(scores[k], work.exceptions[first + k]));
                after[rows[k] * box.size()] = cells[k];
            }
        }
    }
}

// A thread takes a column, and a tile of the states after.
template <class Algebra>
__device__ void add_columns(const Sentence &x, int t, const Work &work) {
    Box old = x.box(t - 1), box = x.box(t);
    for (int i = thread_of_team(); i < kTiles * old.size(); i += threads_of_team()) {
        int tile = kTiles == 1 ? 0 : i / old.size(), column = i - tile * old.size();
        Column c{x.table(t - 1) + column, x.table(t) + column / old.width * box.width + column % old.width, old.size()};
        Algebra::advance(x, t, c, tile * kTile, work);
    }
}

// All tables; `first`: the block has no weights yet. What states add at a position is loaded while the one before is filled.
template <class Algebra>
__device__ void fill_tables(const Sentence &x, Work &work, bool first) {
    bool shared = x.batch->given.shared;
    if (shared ? first : x.length > 1) load_weights<Algebra>(x, 1, work);
    State own(x, 1, x.place(1), threadIdx.x);
    int place = x.place(2);  // a step ahead of what is read there
    first_table(x);
    for (int t = 1; t <= x.length; t++) {
        if (t < x.length) load_states(x, t, own, work);
        own = State(x, t + 1, place, threadIdx.x);
        place = x.place(t + 2);
        if (t > 1) {
            add_columns<Algebra>(x, t - 1, work);
            clear_rest(x, t - 1, work);
            list_exceptions(x, t - 1, work);
        }
        wait_for_team();
        if (t == 1 || (!CHUNKS && shared)) continue;
        if constexpr (CHUNKS > 0) add_exceptions<Algebra>(x, t - 1, work);
        if (!shared && t < x.length) load_weights<Algebra>(x, t, work);
        __syncthreads();
    }
}
