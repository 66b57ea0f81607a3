// Chains with counts: a table for each position, with a row for each state and a column for each tally.
//
// Tallies are numbered so that what a state adds to them is one shift of the column. One block takes a sentence at a time;
// its tables lie in memory that it uses again for its next one. A thread takes a column at a time, so that the
// sums over states stay in registers. Columns that no labelling reaches are neither computed nor read.
//
// With CHUNKS, whole chunks are counted. What a state adds then depends on the state before: a label "begins" a chunk,
// which is one shift, unless it "goes on" with the chunk of the label before, which is none. CHUNKS more rows stand for
// labellings that have agreed with the true chunk from its first position on: one for each label of its type.
#pragma once
#include "numbers.cuh"

constexpr int kRows = C + CHUNKS;
constexpr int kTiles = (C + 23) / 24;                           // states after are taken in turns, ...
constexpr int kTile = ((C + kTiles - 1) / kTiles + 3) / 4 * 4;  // ... so many at once, in registers
constexpr int kPadded = kTiles * kTile;                         // weights of a row in shared memory
constexpr int kBits = 32;                                       // columns of a word of a mask

__device__ inline REAL real(SCORE score) {
    REAL number;
    convert(score, number);
    return number;
}

struct Batch {  // what a kernel is given: addresses of all sentences
    const SCORE *nodes, *weights;
    const int *lengths, *shifts;  // what each state adds, for each position
    const int *marks;             // CHUNKS: 1: a true chunk begins, 2: one ended just before; the labels of its type or -1
    const unsigned *goes_on;      // CHUNKS: bit `to` of row s: `to` after s goes on with the chunk
    const int *pairs;             // CHUNKS: those labels before and after
    int pair_count, sentences, positions, tallies, shared;
};

struct Sentence {
    const SCORE *nodes, *weights;
    const int *shifts, *marks;
    const unsigned *goes_on;
    const int *pairs;
    int pair_count, shared, positions, length, stride, words;
    int64 number;
    REAL *tables;
    unsigned *masks;  // columns in use, for each position
    int *lists;       // the same as a list, after its length

    __device__ REAL *table(int t) const { return tables + int64(t) * kRows * stride; }
    __device__ REAL *mass(int t) const { return table(positions + t % 2); }  // of a backward pass, for two positions at a time
    __device__ const SCORE *step(int t) const { return step_weights(weights, shared, number, t, positions); }
    __device__ int shift(int t, int s) const { return shifts[t * C + s]; }
    __device__ REAL node(int t, int s) const { return real(nodes[t * C + s]); }

    __device__ unsigned *mask(int t) const { return masks + int64(t) * words; }
    __device__ int *list(int t) const { return lists + int64(t) * (stride + 1) + 1; }
    __device__ int reached(int t) const { return list(t)[-1]; }
    __device__ bool alive(int t, int l) const {
        return l >= 0 && l < words * kBits && mask(t)[l / kBits] >> l % kBits & 1;
    }

    __device__ bool begins(int t) const { return marks[t * (1 + CHUNKS)] & 1; }
    __device__ bool ended(int t) const { return marks[t * (1 + CHUNKS)] & 2; }
    __device__ int label(int t, int row) const { return row < C ? row : marks[t * (1 + CHUNKS) + 1 + row - C]; }
    __device__ int agreeing(int t, int s) const {  // the row of a label that agrees with the true chunk, or its own
        for (int row = C; row < kRows; row++)
            if (label(t, row) == s) return row;
        return s;
    }
    __device__ bool continues(int s, int to) const {
        return goes_on[s * ((C + kBits - 1) / kBits) + to / kBits] >> to % kBits & 1;
    }
};

// Sentence b, with the block's memory: tables, masks and lists one after the other.
__device__ inline Sentence sentence_of(const Batch &batch, int64 b, unsigned char *memory) {
    int stride = (batch.tallies + kBits - 1) / kBits * kBits, words = stride / kBits;
    int64 cells = int64(batch.positions + 2) * kRows * stride;
    REAL *tables = reinterpret_cast<REAL *>(memory);
    unsigned *masks = reinterpret_cast<unsigned *>(tables + cells);
    return Sentence{batch.nodes + b * batch.positions * C, batch.weights, batch.shifts + b * batch.positions * C,
                    batch.marks + b * batch.positions * (1 + CHUNKS), batch.goes_on, batch.pairs, batch.pair_count,
                    batch.shared, batch.positions, batch.lengths[b], stride, words, b, tables, masks,
                    reinterpret_cast<int *>(masks + int64(batch.positions) * words)};
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

struct Exception {  // a step with a shift of its own: rows before and after, as offsets in their tables
    int before, after, shift;  // no such step: a shift of -1
    int label, to;
    REAL weight, gain;
};

struct Work {  // shared memory of a block: the weights of a step and their largest; where states go, and their scores
    REAL *weights, *gains, *most;
    Exception *exceptions;
    int *places;
    int exception_count;

    __device__ Work(unsigned char *memory, int pair_count)
        : weights(reinterpret_cast<REAL *>(memory)), gains(weights + C * kPadded), most(gains + kPadded),
          exceptions(reinterpret_cast<Exception *>(most + 4)), exception_count(CHUNKS ? pair_count + CHUNKS * C : 0) {
        places = reinterpret_cast<int *>(exceptions + exception_count);
    }
};

// Word w of a mask, moved by a shift.
__device__ inline unsigned moved(const unsigned *mask, int w, int shift) {
    int whole = w - shift / kBits, part = shift % kBits;
    unsigned low = whole >= 0 ? mask[whole] << part : 0;
    return part && whole > 0 ? low | mask[whole - 1] >> (kBits - part) : low;
}

__device__ inline unsigned next_word(const Sentence &x, int t, int w) {
    const unsigned *before = x.mask(t - 1);
    unsigned word = CHUNKS ? before[w] | (x.ended(t) ? moved(before, w, 1) : 0) : 0;
    int last = -1;
    for (int s = 0; s < C; s++) {
        int shift = x.shift(t, s);
        if (shift == last) continue;
        last = shift;
        word |= moved(before, w, shift);
        if (CHUNKS && x.ended(t)) word |= moved(before, w, shift + 1);
    }
    return word;
}

// The columns of a mask in order, by one warp.
__device__ inline void list_columns(const Sentence &x, int t, int lane) {
    int count = 0, *list = x.list(t);
    for (int base = 0; base < x.words; base += kWarp) {
        unsigned bits = base + lane < x.words ? x.mask(t)[base + lane] : 0;
        int own = __popc(bits), up_to = own;
        for (int offset = 1; offset < kWarp; offset *= 2) {
            int more = __shfl_up_sync(~0u, up_to, offset);
            if (lane >= offset) up_to += more;
        }
        for (int at = count + up_to - own; bits; bits &= bits - 1) list[at++] = (base + lane) * kBits + __ffs(bits) - 1;
        count += __shfl_sync(~0u, up_to, kWarp - 1);
    }
    if (lane == 0) list[-1] = count;
}

// Which columns are reached at each position, by the first warp of a block.
__device__ void find_columns(const Sentence &x) {
    int lane = threadIdx.x;
    if (lane < kWarp) {
        for (int w = lane; w < x.words; w += kWarp) {
            unsigned word = 0;
            for (int s = 0; s < C; s++) word |= x.shift(0, s) / kBits == w ? 1u << x.shift(0, s) % kBits : 0;
            x.mask(0)[w] = word;
        }
        for (int t = 1;; t++) {
            __syncwarp();
            list_columns(x, t - 1, lane);
            if (t == x.length) break;
            for (int w = lane; w < x.words; w += kWarp) x.mask(t)[w] = next_word(x, t, w);
        }
    }
    __syncthreads();
}
