// Chains with counts: a table for each position, with a row for each state and a column for each tally.
//
// Tallies are numbered as the cells of a grid, line by line, so that what a state adds is one shift of the column: by lines
// and within the line. At each position a box of the grid is in use: the first cells of the first lines. One block, or a
// team of blocks, takes a sentence at a time; its tables lie in memory that it uses again for its next one. A thread takes
// a column at a time, so that the sums over states stay in registers.
//
// With CHUNKS, whole chunks are counted. What a state adds then depends on the state before: a label "begins" a chunk,
// which is one shift, unless it "goes on" with the chunk of the label before, which is none. CHUNKS more rows stand for
// labellings that have agreed with the true chunk from its first position on: one for each label of its type.
#pragma once
#include "sentences.cuh"
#include "team.cuh"

constexpr int kRows = C + CHUNKS;
#ifndef TILES  // a thread takes a tile of the states after, in registers
#define TILES 1
#endif
constexpr int kTiles = TILES;
constexpr int kTile = ((C + kTiles - 1) / kTiles + 3) / 4 * 4;
constexpr int kPadded = kTiles * kTile;  // weights of a row in shared memory

__device__ inline REAL real(SCORE score) {
    REAL number;
    convert(score, number);
    return number;
}

struct Batch {  // the input of a kernel
    Padded given;
    const int *shifts;        // rows of the shifts of states
    const int64 *rows;        // the row of each position; if null, the first one with CHUNKS, else its own
    const int *boxes;         // the `Box` of each position, of each sentence or of each length
    const int *marks;         // CHUNKS: 1 if a true chunk begins, plus 2 if one ended just before; the labels of its type or -1
    const unsigned *goes_on;  // CHUNKS: bit `to` of row s: whether `to` after s continues the chunk
    const int *pairs;         // CHUNKS: the pairs of labels with a bit set
    const int *before;        // CHUNKS: in each of `ways` rows, a label that each label goes on from, or -1
    int pair_count, ways, outside, tallies;  // outside: the label outside of chunks, or -1
    int line;     // cells of a line of the grid
    int columns;  // of all tables of a block
    int row_count;  // of shifts
    int by_length;  // if not 0, shifts and boxes are not those of each sentence, but of each length from this one on
};

struct Box {  // columns in use: the first `width` cells of the first `lines` lines of the grid, kept without gaps
    int lines, width, start;  // start: columns of the tables before

    __device__ int size() const { return lines * width; }
    __device__ bool holds(int line, int within) const {
        return unsigned(line) < unsigned(lines) && unsigned(within) < unsigned(width);
    }
    __device__ int column(int line, int within) const { return holds(line, within) ? line * width + within : -1; }
};

struct Shift {  // of a column: by lines, and within the line; -1 lines: there is none
    int lines, within;
};

struct Sentence {
    const Batch *batch;
    const SCORE *nodes;
    const int64 *rows;
    const int *shifts, *boxes, *marks;
    int length;
    int64 number;
    REAL *tables;

    __device__ Box box(int t) const { return {boxes[3 * t], boxes[3 * t + 1], boxes[3 * t + 2]}; }
    __device__ REAL *table(int t) const { return tables + int64(boxes[3 * t + 2]) * kRows; }
    __device__ int column(int t, int tally) const { return tally < 0 ? -1 : box(t).column(tally / batch->line, tally % batch->line); }
    __device__ const SCORE *step(int t) const {
        return step_weights(batch->given.weights, batch->given.shared, number, t, batch->given.positions);
    }
    // The row of shifts of a position, or 0 if there is no such position.
    __device__ int place(int t) const {
        if (unsigned(t) >= unsigned(length)) return 0;
        return rows ? int(rows[t]) : CHUNKS ? 0 : t;
    }
    __device__ int shift_at(int place, int s) const {  // places that are none are an error, told elsewhere
        return shifts[(unsigned(place) < unsigned(batch->row_count) ? place : 0) * C + s];
    }
    __device__ int shift(int t, int s) const { return shift_at(place(t), s); }
    __device__ Shift split(int shift) const {
        int lines = shift < 0 ? -1 : shift / batch->line;
        return {lines, shift - lines * batch->line};
    }
    __device__ REAL node(int t, int s) const { return real(nodes[t * C + s]); }

    __device__ bool begins(int t) const { return marks[t * (1 + CHUNKS)] & 1; }
    __device__ bool ended(int t) const { return marks[t * (1 + CHUNKS)] & 2; }
    __device__ int label(int t, int row) const { return row < C ? row : marks[t * (1 + CHUNKS) + 1 + row - C]; }
    __device__ int agreeing(int t, int s) const {  // the row of a label that agrees with the true chunk, or its own
        for (int row = C; row < kRows; row++)
            if (label(t, row) == s) return row;
        return s;
    }
    // The state whose ordinary steps lead to a row, or -1.
    __device__ int leading(int t, int row) const {
        if (!CHUNKS) return row;
        int state = row < C || begins(t) ? label(t, row) : -1;
        return state < 0 || (begins(t) ? agreeing(t, state) : state) != row ? -1 : state;
    }
    __device__ bool continues(int s, int to) const { return batch->goes_on[s * ((C + 31) / 32) + to / 32] >> to % 32 & 1; }
};

// Sentence b, with the tables of the block or its team.
__device__ inline Sentence sentence_of(const Batch &batch, int64 b, unsigned char *scratch) {
    int64 first = b * batch.given.positions;
    int length = batch.given.lengths[b];
    int64 counted = batch.by_length ? int64(length - batch.by_length) * batch.given.positions : first;
    bool own = !batch.rows && !CHUNKS;
    return {&batch, batch.given.nodes + first * C, batch.rows ? batch.rows + first : nullptr,
            batch.shifts + (own ? counted * C : 0), batch.boxes + counted * 3,
            batch.marks + first * (1 + CHUNKS), length, b,
            reinterpret_cast<REAL *>(scratch) + int64(number_of_team()) * batch.columns * kRows};
}

struct Step {  // from a row to a state: the label before, what is added, and the row it leads to
    int label, shift, row;
};

// How row `from` goes on to state `to` at position t.
__device__ inline Step step_of(const Sentence &x, int t, int from, int to) {
    if (!CHUNKS) return {from, x.shift(t, to), to};
    int label = x.label(t - 1, from);
    bool on = label >= 0 && x.continues(label, to), agreed = from >= C;
    int complete = agreed && !on && x.ended(t);  // a true positive
    bool agrees = x.begins(t) ? !on : on && agreed;
    return {label, (on ? 0 : x.shift(t, to)) + complete, agrees ? x.agreeing(t, to) : to};
}

struct Exception {  // a step with a shift of its own, from a row to a row
    int before, after, lines, within;
    int label, to;
    REAL weight, gain;
};

struct Work {  // shared memory of a block: the weights of a step and their largest; what states add, at two positions in turns
    REAL *weights, *scores, *most;
    Exception *exceptions;
    int *cells;     // where the steps into each state lead, and its score
    Shift *shifts;  // what the state adds whose ordinary steps lead to a row
    int *listed;    // how many exceptions there are, of as many as there can be
    int exception_count;

    __device__ Work(unsigned char *memory, const Batch &batch)
        : weights(reinterpret_cast<REAL *>(memory)), scores(weights + C * kPadded), most(scores + 2 * kPadded),
          exceptions(reinterpret_cast<Exception *>(most + 4)), exception_count(CHUNKS ? batch.pair_count + CHUNKS * C : 0) {
        cells = reinterpret_cast<int *>(exceptions + exception_count);
        shifts = reinterpret_cast<Shift *>(cells + 2 * kPadded);
        listed = reinterpret_cast<int *>(shifts + 2 * kRows);
    }
    __device__ REAL *gains(int t) const { return scores + t % 2 * kPadded; }
    __device__ int *places(int t) const { return cells + t % 2 * kPadded; }
    __device__ Shift &shift(int t, int row) const { return shifts[t % 2 * kRows + row]; }
};
