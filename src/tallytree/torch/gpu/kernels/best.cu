// The best labelling of each sentence, by score and tally: value = slope[tally] * (score + base) + offset[tally].
#include "asking.cuh"
#include "gathering.cuh"

struct Largest {  // the best score of all ways to a cell
    static __device__ REAL weight(REAL given, REAL) { return given; }

    // From a column before to kTile states.
    static __device__ void advance(const Sentence &, int t, const Column &column, int base, const Work &work) {
        asm volatile("" ::: "memory");  // weights are read again for each column: they do not fit in registers
        REAL sums[kTile];
#pragma unroll
        for (int j = 0; j < kTile; j++) sums[j] = forbidden(REAL(0));
#pragma unroll kAtOnce
        for (int s = 0; s < C; s++) {
            REAL score = column.before[s * column.stride];
            const REAL *w = work.weights + s * kPadded + base;
#pragma unroll
            for (int j = 0; j < kTile; j++) sums[j] = larger(sums[j], add_up(score, w[j]));
        }
        const int *places = work.places(t) + base;
        const REAL *gains = work.gains(t) + base;
#pragma unroll
        for (int j = 0; j < kTile; j++)
            if (base + j < C) column.after[places[j]] = add_up(sums[j], gains[j]);
    }
};

#if CHUNKS
using Memory = Arrivals;
__device__ inline void fill(Sentence &x, Memory &work, bool first) { fill_tables(x, work, first); }
#else
using Memory = Work;
__device__ inline void fill(Sentence &x, Memory &work, bool first) { fill_tables<Largest>(x, work, first); }
#endif

struct Finals {  // where the last table has a tally: a true chunk that ends with the sentence is a true positive
    const REAL *table;
    int size, column, ended;

    __device__ Finals(const Sentence &x, int l)
        : table(x.table(x.length - 1)), size(x.box(x.length - 1).size()), column(x.column(x.length - 1, l)),
          ended(CHUNKS ? x.column(x.length - 1, l - 1) : -1) {}
    __device__ REAL score(int row) const {
        int its = row < C ? column : ended;
        return its < 0 ? forbidden(REAL(0)) : table[row * size + its];
    }
};

__device__ inline REAL best_score(const Sentence &x, int l) {
    Finals finals(x, l);
    REAL most = forbidden(REAL(0));
#pragma unroll 8
    for (int row = 0; row < kRows; row++) most = larger(most, finals.score(row));
    return most;
}

// The best tally of a block's sentence; of equal values the first one.
__device__ int choose(const Sentence &x, const Asked &asked, double &value) {
    __shared__ double values[32];
    __shared__ int cells[32];
    double most = forbidden(0.0);
    int best = asked.tallies;
    for (int l = threadIdx.x; l < asked.tallies; l += blockDim.x) {
        REAL score = best_score(x, l);
        if (asked.profile) asked.profile[l] = score;
        double its = asked.value(double(score), l);
        if (its > most) most = its, best = l;
    }
    best_of_warp(most, best);
    if (threadIdx.x % kWarp == 0) values[threadIdx.x / kWarp] = most, cells[threadIdx.x / kWarp] = best;
    __syncthreads();
    int warps = blockDim.x / kWarp, lane = threadIdx.x % kWarp;
    most = lane < warps ? values[lane] : forbidden(0.0);
    best = lane < warps ? cells[lane] : asked.tallies;
    best_of_warp(most, best);
    __syncthreads();
    value = most;
    return best;
}

// The row of the last table that has the best score of a tally; a lane takes a row.
__device__ inline int last_row(const Sentence &x, int l, int lane) {
    Finals finals(x, l);
    REAL most = forbidden(REAL(0));
    int best = kRows;
    for (int row = lane; row < kRows; row += kWarp) {
        REAL score = finals.score(row);
        if (score > most) most = score, best = row;
    }
    best_of_warp(most, best);
    return best < kRows ? best : 0;
}

// What the walk needs at a position, asked for before it is needed.
struct Coming {
    Box box{0, 0, 0};  // of the position before
    int number = 0;    // what the lane's state adds, if a warp has a lane for each,
    Shift shift{0, 0};  // once it is split

    Coming() = default;
    __device__ Coming(const Sentence &x, int t, int place, int lane) {
        if (t <= 0) return;
        box = x.box(t - 1);
        if (kWarp >= C && lane < C) number = x.shift_at(place, lane);
    }
    __device__ void split(const Sentence &x) { shift = x.split(number); }
    __device__ Shift of(const Sentence &x, int t, int to) const {
        if (kWarp < C) return x.split(x.shift(t, to));
        return {__shfl_sync(~0u, shift.lines, to), __shfl_sync(~0u, shift.within, to)};
    }
};

// From the last cell back to the first: the first of the rows that give a cell its score.
__device__ void walk(const Sentence &x, const Memory &work, int l, int64 *labels) {
    int lane = threadIdx.x, t = x.length - 1, row = last_row(x, l, lane);
    bool quick = !CHUNKS && x.batch->given.shared;  // the weights are those of the block
    Coming now(x, t, x.place(t), lane);
    now.split(x);
    int place = x.place(t - 1);
    Shift at = x.split(row < C ? l : l - 1);
    for (; t > 0; t--) {
        int to = x.label(t, row);
        if (lane == 0) labels[t] = to;
        Coming next(x, t - 1, place, lane);
        place = x.place(t - 2);
        Shift added = now.of(x, t, to);
        const REAL *table = x.tables + int64(now.box.start) * kRows;
        REAL most = forbidden(REAL(0));
        int from = kRows;
        for (int r = lane; r < kRows; r += kWarp) {
            Step step = CHUNKS ? step_of(x, t, r, to) : Step{r, 0, to};
            Shift its = CHUNKS ? x.split(step.shift) : added;
            int column = now.box.column(at.lines - its.lines, at.within - its.within);
            if (step.label < 0 || step.row != row || column < 0) continue;
            REAL weight = quick ? work.weights[r * kPadded + to] : real(x.step(t)[step.label * C + to]);
            REAL score = add_up(table[r * now.box.size() + column], weight);
            if (score > most) most = score, from = r;
        }
        next.split(x);
        best_of_warp(most, from);
        if (from == kRows) return;  // scores are not numbers, which is an error
        if (CHUNKS) added = x.split(step_of(x, t, from, to).shift);
        at = {at.lines - added.lines, at.within - added.within};
        row = from;
        now = next;
    }
    if (lane == 0) labels[0] = x.label(0, row);
}

// Write the results for a sentence's best labelling, by a warp; its value is recomputed from its score in double precision.
__device__ void tell(const Sentence &x, const Memory &work, const Asked &asked, const Answers &answers, int cell, double bound) {
    int64 *labels = answers.labels + x.number * x.batch->given.positions;
    int lane = threadIdx.x, positions = x.batch->given.positions;
    bool some = cell < asked.tallies;
    for (int t = (some ? x.length : 0) + lane; t < positions; t += kWarp) labels[t] = 0;
    if (some) walk(x, work, cell, labels);
    __syncwarp();
    Chain chain{&x.batch->given, x.number, x.length};
    double value = some ? asked.value(chain.score(labels, lane), cell) : forbidden(0.0);
    if (lane) return;
    answers.values[x.number] = value;
    answers.gaps[x.number] = some && bound > value ? bound - value : 0;
    answers.slopes[x.number] = some ? asked.slope(cell) : 0;
    answers.cells[x.number] = some ? cell : -1;
}

constexpr int kMostThreads = sizeof(REAL) == 4 ? 1024 : 512;  // on a multiprocessor: fewer registers, and more blocks at once

extern "C" __global__ void TEAM_OF_BLOCKS __launch_bounds__(kMostThreads) best(const __grid_constant__ Batch batch, const __grid_constant__ Search search) {
    BLOCK_MEMORY;
    Memory work(memory, batch);
    const Answers &answers = search.answers;
    if (is_wrong(search.found.words)) {
        invalidate(batch.given, answers.gaps, Total{});
        return invalidate(batch.given, answers.values, search.all);
    }
    bool first = true;  // the block has no weights yet
    Queue queue(search.found, search.listed > 0);
    for (int64 b = number_of_team(); b < batch.given.sentences; b = kTeam > 1 ? b + gridDim.x / kTeam : queue.next(b)) {
        if (search.listed && answers.cells[b] != kPending) continue;
        queue.ask();
        Sentence x = sentence_of(batch, uniform(int(b)), search.scratch);
        x.length = uniform(x.length);
        fill(x, work, first);
        first = false;
        if (rank_in_team() == 0) {
            Asked asked = asked_of(batch, search, b);
            double bound;
            int cell = choose(x, asked, bound);
            if (threadIdx.x < kWarp) tell(x, work, asked, answers, cell, bound);
        }
        wait_for_team();
    }
    add_total(batch.given, answers.values, search.all, search.found);
}
