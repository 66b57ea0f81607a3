// Expected losses that are quotients of counts, with their derivatives: one block per sentence, one warp for some of its columns.
#include "risks.cuh"

struct Risk {  // the input of the kernel
    Padded given;
    Quotient counts;
    const int64 *labels;    // the true tags
    const SCORE *upstream;  // the gain of each value, or null for 1
    double *scratch;        // of each block
    int64 room;             // of its parts: numbers of a block
    double *values;
    SCORE *nodes;    // derivatives for nodes, or null
    double *edges;   // one table per block; or one per step of all sentences
    double *working;  // a table for each warp, if they are not in shared memory
    Findings found;  // of sentences without an allowed labelling, if that is told
    Total all;
};

struct Block {  // shared memory: factors, then for each warp its lanes and its table
    unsigned char *lanes;
    double *factors, *table;
    double spread;  // of shared weights
    int warp, warps, lane;

    __device__ Block(int shared, double *working)
        : spread(0), warp(threadIdx.x / kWarp), warps(blockDim.x / kWarp), lane(threadIdx.x % kWarp) {
        unsigned char *memory = memory_of_block(), *first = memory + shared * (C * C + 1) / 2 * 16;
        factors = reinterpret_cast<double *>(memory);
        lanes = first + warp * Lanes<Careful>::kBytes;
        double *tables = kSmall ? reinterpret_cast<double *>(first + warps * Lanes<Careful>::kBytes)
                                : working + int64(blockIdx.x) * warps * C * C;
        table = tables + warp * C * C;
    }
};

// Exponentials relative to the largest score; returns how far scores that are allowed lie apart. By a warp.
__device__ double exponentials(const SCORE *scores, int count, double *powers, int lane, bool put = true) {
    Range range = range_of(scores, count, lane);
    for (int i = lane; put && i < count; i += kWarp) powers[i] = range.factor(double(scores[i]));
    return range.spread();
}

// Exponentials of all scores of a sentence; returns whether they are near enough for plain numbers.
__device__ bool prepare(const Course &x, const Block &block) {
    bool far = false;
    for (int t = block.warp; t < x.chain.length; t += block.warps) {
        double spread = exponentials(x.chain.all->nodes + (x.chain.first() + t) * C, C, x.powers + t * C, block.lane);
        double steps = t == 0 || x.chain.all->shared ? block.spread : exponentials(x.chain.step(t), C * C, x.factors_of(t), block.lane);
        far |= !(spread + steps <= kMostSpread);
        for (int s = block.lane; s < C; s += kWarp) x.note(t, s);
    }
    return sum_of_block(far) == 0;
}

__device__ inline Wide end_of(const Course &x, int column, int part) {
    const double *end = x.ends + column * 4 + 2 * part;
    return {end[0], end[1]};
}

// The expected loss, from the sums of all columns; -inf if nothing is allowed. By each warp.
__device__ double value_of(const Course &x, int lane) {
    Wide all = end_of(x, 0, 0);
    if (!all.some()) return forbidden(0.0);
    double value = 0;
    for (int column = 1 + lane; column < x.columns(); column += kWarp)
        value += x.weight(column) * narrow(end_of(x, column, 1), -all.exponent) / all.part;
    return sum_of_warp(value);
}

struct Room {  // where derivatives of a sentence go
    double gain;
    double *nodes;  // of each warp
    SCORE *slopes;
    double *working, *steps;  // tables of warps, as in `Risk`; those of the steps of the sentence, if they are not shared
};

// Sum up all columns; returns whether numbers were large enough.
template <class Mode>
__device__ __noinline__ bool sum_up(const Course &given) {
    Course x = given;  // in registers
    Block block(x.chain.all->shared, nullptr);
    Lanes<Mode> lanes(block.lanes, x, block.lane);
    Held held = held_of(x, block.lane, true, Mode::kPlain);
    bool odd = false;
    for (int column = block.warp; column < x.columns(); column += block.warps) odd |= forward<Mode>(x, column, lanes, held);
    return sum_of_block(odd) == 0;
}

// Derivatives, from the sums of all columns.
template <class Mode>
__device__ __noinline__ void derive(const Course &given, const Room &room, double value) {
    Course x = given;  // in registers
    Block block(x.chain.all->shared, room.working);
    Lanes<Mode> lanes(block.lanes, x, block.lane);
    Held held = held_of(x, block.lane, false, Mode::kPlain);
    Edges edges(room.steps ? room.steps : block.table, x.chain.all->shared);
    Wide all = end_of(x, 0, 0);
    int cells = x.chain.length * C;
    double *own = room.nodes + int64(block.warp) * x.chain.all->positions * C;
    for (int i = block.lane; block.warp >= x.columns() && i < cells; i += kWarp) own[i] = 0;
    for (int column = block.warp; column < x.columns(); column += block.warps) {
        Share share(room.gain * (column ? x.weight(column) : -value) / all.part, -all.exponent);
        backward<Mode>(x, column, lanes, held, share, edges, own, column == block.warp);
    }
    edges.finish(x, block.lane);
    __syncthreads();
    for (int i = threadIdx.x; i < cells; i += blockDim.x) {
        double sum = 0;
        for (int warp = 0; warp < block.warps; warp++) sum += room.nodes[int64(warp) * x.chain.all->positions * C + i];
        room.slopes[i] = SCORE(sum);
    }
}

// Write the sum of the tables of the block's warps to its own one; start and end scores have none.
__device__ void leave_table(const Block &block, double *edges) {
    __syncthreads();
    const double *tables = block.table - block.warp * C * C;
    for (int i = threadIdx.x; i < C * C; i += blockDim.x) {
        double sum = 0;
        for (int warp = 0; warp < block.warps; warp++) sum += tables[warp * C * C + i];
        edges[int64(blockIdx.x) * (C + 2) * C + i] = sum;
    }
}

// The parts of a block's memory, for sentence b.
__device__ Course course_of(const Risk &asked, const Block &block, int64 b) {
    const Padded &given = asked.given;
    int64 places = int64(given.positions) * C;
    double *first = asked.scratch + blockIdx.x * asked.room, *ends = first + 3 * places;
    double *own = ends + 4 * (asked.counts.width / 2 + 1), *kept = own + (given.shared ? 0 : int64(given.positions - 1) * C * C);
    kept += (kept - first) % 2;
    return {chain_of(given, b), &asked.counts, asked.labels + b * given.positions,
            asked.counts.marks + b * given.positions * (1 + CHUNKS),
            asked.counts.rules + int64(asked.counts.which[b]) * asked.counts.width,
            first, given.shared ? block.factors : own, first + places, reinterpret_cast<int *>(first + 2 * places), kept, ends};
}

extern "C" __global__ void __launch_bounds__(256) risk(const __grid_constant__ Risk asked) {
    if (is_wrong(asked.found.words)) return invalidate(asked.given, asked.values, asked.all);
    const Padded &given = asked.given;
    Block block(given.shared, asked.working);
    for (int i = block.lane; asked.nodes && i < C * C; i += kWarp) block.table[i] = 0;
    if (given.shared && given.positions > 1) block.spread = exponentials(given.weights, C * C, block.factors, block.lane, block.warp == 0);
    __syncthreads();
    for (int64 b = blockIdx.x; b < given.sentences; b += gridDim.x) {
        Course x = course_of(asked, block, b);
        double *nodes = x.kept + int64(asked.counts.width / 2 + 1) * given.positions * (2 * kKept * C + 2);
        SCORE *slopes = asked.nodes ? asked.nodes + x.chain.first() * C : nullptr;
        double *steps = given.shared ? nullptr : asked.edges + b * (given.positions - 1) * C * C;
        Room room{asked.upstream ? double(asked.upstream[b]) : 1, nodes, slopes, asked.working, steps};
        bool plain = prepare(x, block) && sum_up<Plain>(x);
        if (!plain) sum_up<Careful>(x);
        double value = value_of(x, block.lane);
        bool possible = value > forbidden(0.0);
        if (threadIdx.x == 0) asked.values[b] = value;
        if (threadIdx.x == 0 && !possible && asked.found.told) atomicOr(asked.found.words, kNothing);
        if (b + gridDim.x >= given.sentences) tell_host(asked.found);  // the last one of this block
        if (slopes && possible && plain) derive<Plain>(x, room, value);
        if (slopes && possible && !plain) derive<Careful>(x, room, value);
        for (int i = (possible ? x.chain.length * C : 0) + threadIdx.x; slopes && i < given.positions * C; i += blockDim.x) slopes[i] = 0;
        __syncthreads();
    }
    if (asked.nodes && given.shared) leave_table(block, asked.edges);
    add_total(given, asked.values, asked.all, asked.found);
}
