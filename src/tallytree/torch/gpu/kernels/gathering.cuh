// Filling the tables of whole chunks for a search: a thread takes a column of the new table, and all that leads to it.
//
// A step begins a chunk, goes on with one, or leads outside. Beginning one is a line of the grid, whatever the label, so all of
// these steps come from one column before, the one above. The others come from the same column; there are few of them, as only
// labels of one type go on with each other. Labellings that have agreed with the true chunk complete it by a step that does not
// go on with it, once it has ended: that is a cell of the line.
#pragma once
#include "filling.cuh"

constexpr int kAgreeing = CHUNKS ? CHUNKS : 1;
constexpr int kAtOnce = kTiles == 1 ? C : 16;  // states before that a loop takes at once

struct alignas(16) Turn {  // the steps into a position
    REAL gains[kPadded];   // the scores of labels
    REAL out[kAgreeing], on[kAgreeing][kAgreeing];  // from the rows that have agreed: to the label outside, and with the chunk
    int before[kAgreeing], after[kAgreeing];        // the labels of these rows at the position before and at this one, or -1
    int begins, ended;                              // whether a true chunk begins here, and whether one ended just before
};

struct Arrivals {  // shared memory of a block
    Turn *turns;     // of two positions in turns
    REAL *weights;   // of steps that begin a chunk; the others are forbidden
    REAL *on;        // of steps that go on with one: a row for each way, with a label for each that is gone on to
    int *before;     // the labels of these ways
    REAL *out;       // of steps to the label outside
    int *marks;      // of the sentence
    int ways, outside;

    __device__ Arrivals(unsigned char *memory, const Batch &batch)
        : turns(reinterpret_cast<Turn *>(memory)), weights(reinterpret_cast<REAL *>(turns + 2)), on(weights + C * kPadded),
          out(on + batch.ways * kPadded), ways(batch.ways), outside(batch.outside) {
        before = reinterpret_cast<int *>(out + kPadded);
        marks = before + ways * kPadded;
    }
    __device__ Turn &turn(int t) const { return turns[t % 2]; }
};

// The weight of a step that goes on with a chunk.
__device__ inline REAL weight_on(const Sentence &x, int t, int before, int to) {
    bool on = before >= 0 && to >= 0 && x.continues(before, to);
    return on ? real(x.step(t)[before * C + to]) : forbidden(REAL(0));
}

// The weight of a step that leads outside.
__device__ inline REAL weight_out(const Sentence &x, int t, int before, int outside) {
    return before >= 0 && outside >= 0 ? real(x.step(t)[before * C + outside]) : forbidden(REAL(0));
}

__device__ inline void load_weights(const Sentence &x, int t, const Arrivals &work) {
    const SCORE *w = x.step(t);
    for (int i = threadIdx.x; i < C * kPadded; i += blockDim.x) {
        int s = i / kPadded, to = i % kPadded;
        bool begins = to < C && x.shifts[to] && !x.continues(s, to);
        work.weights[i] = begins ? real(w[s * C + to]) : forbidden(REAL(0));
    }
    for (int i = threadIdx.x; i < work.ways * kPadded; i += blockDim.x) {
        int to = i % kPadded, before = to < C ? x.batch->before[i / kPadded * C + to] : -1;
        work.before[i] = before < 0 ? 0 : before;
        work.on[i] = weight_on(x, t, before, to);
    }
    for (int s = threadIdx.x; s < C; s += blockDim.x) work.out[s] = weight_out(x, t, s, work.outside);
}

// `gain`: the score of the thread's own label, which was read before. The last threads begin: they have the fewest columns.
__device__ inline void load_turn(const Sentence &x, int t, REAL gain, const Arrivals &work) {
    Turn &turn = work.turn(t);
    int own = blockDim.x - 1 - threadIdx.x;
    for (int to = own; to < kPadded; to += blockDim.x) turn.gains[to] = to == own ? gain : to < C ? x.node(t, to) : REAL(0);
    for (int k = own; k < CHUNKS; k += blockDim.x) {
        turn.before[k] = x.label(t - 1, C + k), turn.after[k] = x.label(t, C + k);
        turn.out[k] = weight_out(x, t, turn.before[k], work.outside);
        for (int l = 0; l < CHUNKS; l++) turn.on[k][l] = weight_on(x, t, turn.before[k], x.label(t - 1, C + l));
    }
    if (own == 0) turn.begins = x.begins(t), turn.ended = x.ended(t);
}

// The score of the label that the thread will load into a turn.
__device__ inline REAL coming_gain(const Sentence &x, int t) {
    int to = blockDim.x - 1 - threadIdx.x;
    return t < x.length && to < C ? x.node(t, to) : REAL(0);
}

struct Gathered {  // the best scores of a cell's labels: kTile of them
    REAL sums[kTile];

    __device__ Gathered() {
#pragma unroll
        for (int j = 0; j < kTile; j++) sums[j] = forbidden(REAL(0));
    }
    __device__ void add(REAL score, const REAL *weights) {
#pragma unroll
        for (int j = 0; j < kTile; j++) sums[j] = larger(sums[j], add_up(score, weights[j]));
    }
    // The score of a label, which is then forbidden: it belongs to another row.
    __device__ REAL take(int label) {
        REAL its = forbidden(REAL(0));
#pragma unroll
        for (int j = 0; j < kTile; j++)
            if (j == label) its = sums[j], sums[j] = forbidden(REAL(0));
        return its;
    }
    __device__ void raise(int label, REAL score) {
#pragma unroll
        for (int j = 0; j < kTile; j++)
            if (j == label) sums[j] = larger(sums[j], score);
    }
    __device__ void put(const REAL *gains, int count, REAL *after, int size) const {
#pragma unroll
        for (int j = 0; j < kTile; j++)
            if (j < count) after[j * size] = add_up(sums[j], gains[j]);
    }
};

// The column of a cell, and the columns before that lead to it; -1 if there is none.
struct Arrival {
    const Sentence &x;
    const Arrivals &work;
    const Turn &turn;
    const REAL *table;  // before
    REAL *after;
    int t, base, old_size, size;     // base: the first label of the thread's tile
    int same, above;                 // for all steps, and for those that begin a chunk,
    int completed, completed_above;  // from labellings that have agreed with a chunk that has just ended

    __device__ Arrival(const Sentence &x, const Arrivals &work, int t, int base, const Box &old, const Box &box, Shift at)
        : x(x), work(work), turn(work.turn(t)), table(x.table(t - 1)), after(x.table(t) + at.lines * box.width + at.within), t(t), base(base),
          old_size(old.size()), size(box.size()), same(old.column(at.lines, at.within)), above(old.column(at.lines - 1, at.within)) {
        completed = old.column(at.lines, at.within - turn.ended);
        completed_above = old.column(at.lines - 1, at.within - turn.ended);
    }

    __device__ REAL score(int row, int column) const { return column < 0 ? forbidden(REAL(0)) : table[row * old_size + column]; }
    __device__ bool is_own(int label) const { return label >= base && (kTiles == 1 || label < base + kTile); }

    __device__ void gather() const {
        Gathered cells;
        add_beginnings(cells);
        put_agreeing(cells);
        add_leaving(cells);
        add_going_on(cells);
        cells.put(turn.gains + base, C - base, after + base * size, size);
        put_outside();
    }

    __device__ void add_beginnings(Gathered &cells) const {
        if (above >= 0) {
#pragma unroll kAtOnce
            for (int s = 0; s < C; s++) cells.add(table[s * old_size + above], work.weights + s * kPadded + base);
        }
#pragma unroll 1
        for (int k = 0; k < CHUNKS; k++)
            if (turn.before[k] >= 0) cells.add(score(C + k, completed_above), work.weights + turn.before[k] * kPadded + base);
    }

    // The best score of labellings that have agreed and go on with label l of the type.
    __device__ REAL going_on(int l) const {
        REAL most = forbidden(REAL(0));
        for (int k = 0; k < CHUNKS; k++) most = larger(most, add_up(score(C + k, same), turn.on[k][l]));
        return most;
    }

    // The rows of labellings that agree with the true chunk: they begin with it, or have agreed before and go on.
    __device__ void put_agreeing(Gathered &cells) const {
#pragma unroll 1
        for (int l = 0; l < CHUNKS; l++) {
            int label = turn.after[l];
            if (label < 0 ? base > 0 : !is_own(label)) continue;  // the row is another thread's
            REAL most = turn.begins ? cells.take(label - base) : forbidden(REAL(0));
            if (!turn.ended) most = larger(most, going_on(l));
            after[(C + l) * size] = add_up(most, label < 0 ? REAL(0) : turn.gains[label]);
        }
    }

    // Labellings that go on with a true chunk that has ended agree no more.
    __device__ void add_leaving(Gathered &cells) const {
#pragma unroll 1
        for (int l = 0; turn.ended && l < CHUNKS; l++)
            if (turn.before[l] >= 0 && is_own(turn.before[l])) cells.raise(turn.before[l] - base, going_on(l));
    }

    // Steps that go on with a chunk. Labels without one take a forbidden step, so that nothing waits for a branch.
    __device__ void add_going_on(Gathered &cells) const {
#pragma unroll 1
        for (int way = 0; same >= 0 && way < work.ways; way++) {
            const int *before = work.before + way * kPadded + base;
            const REAL *weights = work.on + way * kPadded + base;
#pragma unroll
            for (int j = 0; j < kTile; j++) cells.sums[j] = larger(cells.sums[j], add_up(table[before[j] * old_size + same], weights[j]));
        }
    }

    __device__ void put_outside() const {
        int outside = work.outside;
        if (outside < 0 || !is_own(outside)) return;
        REAL out = forbidden(REAL(0));
        for (int k = 0; k < CHUNKS; k++) out = larger(out, add_up(score(C + k, completed), turn.out[k]));
        if (same >= 0) {
#pragma unroll kAtOnce
            for (int s = 0; s < C; s++) out = larger(out, add_up(table[s * old_size + same], work.out[s]));
        }
        after[outside * size] = add_up(out, turn.gains[outside]);
    }
};

// All cells of position t; a thread takes a column, and a tile of its states.
__device__ void gather_columns(const Sentence &x, int t, const Arrivals &work) {
    Box old = x.box(t - 1), box = x.box(t);
    int size = box.size();
    for (int i = thread_of_team(); i < kTiles * size; i += threads_of_team()) {
        int tile = kTiles == 1 ? 0 : i / size, column = i - tile * size;
        Arrival(x, work, t, tile * kTile, old, box, {column / box.width, column % box.width}).gather();
    }
}

// All tables; `first`: the block has no weights yet. A turn is loaded while the columns of the one before are filled.
__device__ void fill_tables(Sentence &x, const Arrivals &work, bool first) {
    bool shared = x.batch->given.shared;
    if (shared ? first : x.length > 1) load_weights(x, 1, work);
    for (int i = threadIdx.x; i < x.length * (1 + CHUNKS); i += blockDim.x) work.marks[i] = x.marks[i];
    x.marks = work.marks;
    REAL gain = coming_gain(x, 1);
    __syncthreads();
    first_table(x);
    for (int t = 1; t <= x.length; t++) {
        if (t < x.length) load_turn(x, t, gain, work);
        gain = coming_gain(x, t + 1);
        if (t > 1) gather_columns(x, t - 1, work);
        wait_for_team();
        if (shared || t == 1 || t == x.length) continue;
        load_weights(x, t, work);
        __syncthreads();
    }
}
