// The counts of a loss relative to the true tags: the boxes of the grid of tallies that are reachable, and the row of losses.
#include "looking.cuh"

struct Rules {
    const int *reach;         // lines and cells that a position adds at most, for each true tag; unused for chunks
    const int *types;         // CHUNKS: the type of each tag, -1 outside
    const int *labels;        // CHUNKS: the labels of each type, -1 for none
    const unsigned *goes_on;  // CHUNKS: bit `to` of row s: whether `to` after s continues the chunk
    const int *known;         // the row of losses for each key, or -1
    int background;           // the tag that is not a node, or -1
    int by_size;              // whether the key is the number of nodes, without the length
    int lines, line;          // of the grid
};

// The prefix sums of a warp's numbers.
__device__ inline int summed_up(int value, int lane) {
    for (int offset = 1; offset < kWarp; offset *= 2) {
        int other = __shfl_up_sync(~0u, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

__device__ inline int last_of_warp(int value) { return __shfl_sync(~0u, value, kWarp - 1); }

struct Truth {  // the true tags of a sentence
    const int64 *tags;
    const Rules *rules;
    int length;

    __device__ int tag(int t) const { return unsigned(tags[t]) < unsigned(C) ? int(tags[t]) : 0; }
    __device__ bool some(int t) const { return rules->types[tag(t)] >= 0; }
    __device__ bool cut(int t) const {
        return t == 0 || !(rules->goes_on[tag(t - 1) * ((C + 31) / 32) + tag(t) / 32] >> tag(t) % 32 & 1);
    }
    __device__ bool begins(int t) const { return t < length && some(t) && cut(t); }
    __device__ bool ended(int t) const { return t && t < length && some(t - 1) && cut(t); }

    __device__ int lines(int t) const { return CHUNKS ? 1 : t < length ? rules->reach[2 * tag(t)] : 0; }
    __device__ int cells(int t) const { return CHUNKS ? ended(t) : t < length ? rules->reach[2 * tag(t) + 1] : 0; }
    __device__ bool node(int t) const { return CHUNKS ? begins(t) : t < length && tag(t) != rules->background; }

    __device__ void mark(int t, int *marks) const {
        int type = t < length ? rules->types[tag(t)] : -1;
        marks[0] = begins(t) + 2 * ended(t);
        for (int i = 0; i < CHUNKS; i++) marks[1 + i] = type < 0 ? -1 : rules->labels[type * CHUNKS + i];
    }
};

struct Counting {  // the input of the kernel
    Padded given;
    Ends ends;
    const int64 *labels;
    Rules rules;
    double *right;             // gets the scores of the true tags
    int *boxes, *marks;        // boxes: or null
    int *which, *keys;         // get the row of losses of each sentence, and its key
    Findings found;            // gets the maximum number of columns
};

__device__ void count_one(const Counting &asked, int64 b, int lane) {
    const Rules &rules = asked.rules;
    int positions = asked.given.positions, lines = 1, cells = 1, columns = 0, nodes = 0;
    Truth truth{asked.labels + b * positions, &rules, asked.given.lengths[b]};
    for (int first = 0; first < truth.length; first += kWarp) {
        int t = first + lane;
        bool inside = t < truth.length;
        int up = lines + summed_up(inside ? truth.lines(t) : 0, lane), along = cells + summed_up(inside ? truth.cells(t) : 0, lane);
        lines = last_of_warp(up), cells = last_of_warp(along);
        up = up < rules.lines ? up : rules.lines, along = along < rules.line ? along : rules.line;
        int size = inside ? up * along : 0, end = columns + summed_up(size, lane);
        columns = last_of_warp(end);
        nodes += __popc(__ballot_sync(~0u, inside && truth.node(t)));
        if (!inside) continue;
        if (asked.boxes) {
            int *box = asked.boxes + (b * positions + t) * 3;
            box[0] = up, box[1] = along, box[2] = end - size;
        }
        if (CHUNKS) truth.mark(t, asked.marks + (b * positions + t) * (1 + CHUNKS));
    }
    if (lane) return;
    int key = rules.by_size ? nodes : nodes * (positions + 1) + truth.length, row = rules.known[key];
    asked.keys[b] = key, asked.which[b] = row < 0 ? 0 : row;
    if (row < 0) atomicOr(asked.found.words, kUnknown);
    atomicMax(asked.found.words + kColumns, columns);
}

extern "C" __global__ void count(const __grid_constant__ Counting asked) {
    int lane = threadIdx.x % kWarp;
    each_sentence(asked.given, [&](int64 b) {
        look_at(asked.given, asked.ends, asked.labels, asked.right, asked.found.words, b, lane);
        count_one(asked, b, lane);
    });
    tell_host(asked.found);
}
