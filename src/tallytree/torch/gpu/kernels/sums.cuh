// Sums over labellings for every tally: filling tables, and the expected entries of any weighting of the tallies.
#pragma once
#include "filling.cuh"
#include "words.cuh"

constexpr bool kSmall = C <= 32;  // tables of derivatives for weights are in shared memory
constexpr REAL kTiny = sizeof(REAL) == 8 ? REAL(1e-250) : REAL(1e-30);  // smaller sums are added again with care
constexpr REAL kHuge = sizeof(REAL) == 8 ? REAL(575) : REAL(69);        // the exponent that goes with it

__device__ inline REAL largest_of_column(const REAL *column, int stride) {
    REAL most = forbidden(REAL(0));
    for (int s = 0; s < C; s++) most = larger(most, column[s * stride]);
    return most;
}

// log of the sum over s of exp(before[s] + w[s, to]), each term relative to the largest.
__device__ inline REAL careful_sum(const Sentence &x, int t, const REAL *before, int stride, int to) {
    const SCORE *w = x.step(t);
    REAL most = forbidden(REAL(0)), sum = 0;
    for (int s = 0; s < C; s++)
        if (!CHUNKS || !x.continues(s, to)) most = larger(most, before[s * stride] + real(w[s * C + to]));
    if (!(most > forbidden(REAL(0)))) return most;
    for (int s = 0; s < C; s++)
        if (!CHUNKS || !x.continues(s, to)) sum += exp(before[s * stride] + real(w[s * C + to]) - most);
    return log(sum) + most;
}

struct Sums {  // the logarithm of the sum of all ways to a cell
    static __device__ REAL weight(REAL given, REAL most) { return exp(given - most); }

    static __device__ void advance(const Sentence &x, int t, const Column &column, int base, const Work &work) {
        REAL most = largest_of_column(column.before, column.stride), sums[kTile];
#pragma unroll
        for (int j = 0; j < kTile; j++) sums[j] = 0;
        bool some = most > forbidden(REAL(0));
#pragma unroll 4
        for (int s = 0; some && s < C; s++) {
            REAL power = exp(column.before[s * column.stride] - most);
            const REAL *w = work.weights + s * kPadded + base;
#pragma unroll
            for (int j = 0; j < kTile; j++) sums[j] += power * w[j];
        }
#pragma unroll
        for (int j = 0; j < kTile; j++) {
            int to = base + j;
            if (to >= C) continue;
            REAL arrived = most;
            if (some) arrived = sums[j] > kTiny ? log(sums[j]) + most + *work.most : careful_sum(x, t, column.before, column.stride, to);
            column.after[work.places(t)[to]] = arrived + work.gains(t)[to];
        }
    }

    static __device__ REAL through(REAL before, const Exception &e) { return before + e.weight + e.gain; }

    static __device__ REAL both(REAL a, REAL b) {
        REAL most = larger(a, b), least = a < b ? a : b;
        return least > forbidden(REAL(0)) ? most + log1p(exp(least - most)) : most;
    }
};

// The cell of the last table that ends row r with tally l, or -1: a true chunk ends with the sentence.
__device__ inline int last_cell(const Sentence &x, int r, int l) {
    int last = x.length - 1, column = x.column(last, r < C ? l : l - 1);
    return column < 0 ? -1 : r * x.box(last).size() + column;
}

__device__ inline REAL log_tally(const Sentence &x, int l) {
    const REAL *table = x.table(x.length - 1);
    REAL most = forbidden(REAL(0)), sum = 0;
    for (int r = 0; r < kRows; r++)
        if (last_cell(x, r, l) >= 0) most = larger(most, table[last_cell(x, r, l)]);
    if (!(most > forbidden(REAL(0)))) return most;
    for (int r = 0; r < kRows; r++)
        if (last_cell(x, r, l) >= 0) sum += exp(table[last_cell(x, r, l)] - most);
    return log(sum) + most;
}

struct Staged {  // shared memory of a warp: for 32 columns, exponentials of what was before, and mass over what arrived
    REAL *powers, *rates;
    static constexpr int kStride = kWarp + 1;

    __device__ explicit Staged(const Work &work) {
        int64 end = reinterpret_cast<int64>(work.listed + 1);
        REAL *first = reinterpret_cast<REAL *>((end + 15) / 16 * 16);
        powers = first + threadIdx.x / kWarp * (C + kPadded) * kStride;
        rates = powers + C * kStride;
    }

    // The end of the memory of all warps.
    __device__ double *end() const {
        int64 last = reinterpret_cast<int64>(powers + (blockDim.x / kWarp - threadIdx.x / kWarp) * (C + kPadded) * kStride);
        return reinterpret_cast<double *>((last + 15) / 16 * 16);
    }
};

struct Masses {  // of two positions in turns: what each cell contributes to the weighted sum
    REAL *tables;
    int cells;

    __device__ Masses(const Sentence &x)
        : tables(x.tables + int64(x.batch->columns - 2 * x.batch->tallies) * kRows), cells(x.batch->tallies * kRows) {}
    __device__ REAL *at(int t) const { return tables + t % 2 * int64(cells); }
};

// The weight of each tally, split among the cells of the last table.
__device__ void last_masses(const Sentence &x, const double *upstream) {
    int t = x.length - 1;
    REAL *mass = Masses(x).at(t);
    for (int i = threadIdx.x; i < kRows * x.box(t).size(); i += blockDim.x) mass[i] = 0;
    __syncthreads();
    for (int l = threadIdx.x; l < x.batch->tallies; l += blockDim.x) {
        REAL total = log_tally(x, l);
        for (int r = 0; total > forbidden(REAL(0)) && upstream[l] != 0 && r < kRows; r++) {
            int cell = last_cell(x, r, l);
            if (cell >= 0) mass[cell] = REAL(upstream[l]) * exp(x.table(t)[cell] - total);
        }
    }
    __syncthreads();
}

// Expected entries of the nodes of a position: the masses of its states, less `share` of a label.
__device__ void sum_nodes(const Sentence &x, int t, int label, double share, SCORE *nodes) {
    const REAL *mass = Masses(x).at(t);
    int lane = threadIdx.x % kWarp, size = x.box(t).size();
    for (int s = threadIdx.x / kWarp; s < C; s += blockDim.x / kWarp) {
        double sum = 0;
        int twin = CHUNKS ? x.agreeing(t, s) : s;
        for (int i = lane; i < size; i += kWarp) sum += mass[s * size + i] + (twin != s ? mass[twin * size + i] : REAL(0));
        sum = sum_of_warp(sum);
        if (lane == 0) nodes[t * C + s] = SCORE(sum - (s == label ? share : 0));
    }
}

struct Split {  // one column before, and the cells it leads to
    const Sentence &x;
    const Work &work;
    int t, size, i, base;  // columns before, the column, where its cells go but for what states add
    const REAL *before, *after, *mass_after;
    REAL *mass_before, most;
    int lane;
    bool active;

    __device__ Split(const Sentence &x, const Work &work, int t, int first)
        : x(x), work(work), t(t), lane(threadIdx.x % kWarp) {
        Box old = x.box(t - 1), box = x.box(t);
        size = old.size();
        active = first + lane < size;
        i = active ? first + lane : first;
        base = i / old.width * box.width + i % old.width;
        before = x.table(t - 1) + i;
        after = x.table(t) + base;
        mass_after = Masses(x).at(t) + base;
        mass_before = Masses(x).at(t - 1) + i;
        most = active ? largest_of_column(before, size) : forbidden(REAL(0));
    }

    __device__ bool some() const { return most > forbidden(REAL(0)); }

    // Mass over what arrived at a cell of a state after; 0 if it must be split with care, which sets `odd`.
    __device__ REAL rate(REAL mass, REAL arrived, int to, bool &odd) const {
        if (mass == 0) return 0;
        REAL exponent = most + *work.most + work.gains(t)[to] - arrived;
        odd = !(exponent < kHuge);
        return odd ? REAL(0) : mass * exp(exponent);
    }
    __device__ bool is_odd(int to) const {
        bool odd = false;
        if (some()) rate(mass_after[work.places(t)[to]], after[work.places(t)[to]], to, odd);
        return odd;
    }
};

constexpr int kAtOnce = 4;  // loads, or sums, that need not wait for each other

__device__ void stage_powers(const Split &split, Staged &staged) {
    for (int first = 0; first < C; first += kAtOnce) {
        REAL scores[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) scores[k] = first + k < C ? split.before[(first + k) * split.size] : forbidden(REAL(0));
#pragma unroll
        for (int k = 0; k < kAtOnce; k++)
            if (first + k < C) staged.powers[(first + k) * Staged::kStride + split.lane] = split.some() ? exp(scores[k] - split.most) : REAL(0);
    }
}

// Returns whether some lane has cells that must be split with care.
__device__ bool stage(const Split &split, Staged &staged) {
    bool odd = false;
    stage_powers(split, staged);
    for (int first = 0; first < kPadded; first += kAtOnce) {
        REAL masses[kAtOnce], arrived[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            bool some = split.some() && first + k < C;
            masses[k] = some ? split.mass_after[split.work.places(split.t)[first + k]] : REAL(0);
            arrived[k] = some ? split.after[split.work.places(split.t)[first + k]] : REAL(0);
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            bool its = false;
            staged.rates[(first + k) * Staged::kStride + split.lane] = split.rate(masses[k], arrived[k], first + k, its);
            odd |= its;
        }
    }
    __syncwarp();
    return __ballot_sync(~0u, odd) != 0;
}

// The masses of the column before, from ordinary steps.
__device__ void split_column(const Split &split, const Staged &staged) {
    for (int base = 0; base < C; base += kTile) {  // states after, in turns
        REAL rates[kTile];
#pragma unroll
        for (int j = 0; j < kTile; j++) rates[j] = staged.rates[(base + j) * Staged::kStride + split.lane];
        for (int first = 0; first < C; first += kAtOnce) {
            REAL sums[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; k++) sums[k] = 0;
#pragma unroll
            for (int j = 0; j < kTile; j++)
#pragma unroll
                for (int k = 0; k < kAtOnce; k++)
                    sums[k] += split.work.weights[(first + k < C ? first + k : 0) * kPadded + base + j] * rates[j];
#pragma unroll
            for (int k = 0; k < kAtOnce; k++) {
                int s = first + k;
                if (s >= C) continue;
                REAL mass = sums[k] * staged.powers[s * Staged::kStride + split.lane];
                split.mass_before[s * split.size] = base ? split.mass_before[s * split.size] + mass : mass;
            }
        }
    }
    for (int row = C; row < kRows; row++) split.mass_before[row * split.size] = 0;
}

// Expected entries of the weights over a warp's columns: a lane takes a state after.
__device__ void sum_edges(const Work &work, const Staged &staged, double *edges, int lane) {
    for (int to = lane; to < C; to += kWarp) {
        REAL rates[kWarp];
#pragma unroll
        for (int c = 0; c < kWarp; c++) rates[c] = staged.rates[to * Staged::kStride + c];
        for (int first = 0; first < C; first += kAtOnce) {
            REAL sums[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; k++) sums[k] = 0;
#pragma unroll
            for (int c = 0; c < kWarp; c++)
#pragma unroll
                for (int k = 0; k < kAtOnce; k++)
                    sums[k] += staged.powers[(first + k < C ? first + k : 0) * Staged::kStride + c] * rates[c];
#pragma unroll
            for (int k = 0; k < kAtOnce; k++)
                if (first + k < C) edges[(first + k) * C + to] += sums[k] * work.weights[(first + k) * kPadded + to];
        }
    }
    __syncwarp();
}

// A cell whose sum left the range of numbers: its mass is split term by term, in its lane.
__device__ void split_carefully(const Split &split, int to, double *edges) {
    const Sentence &x = split.x;
    int place = split.work.places(split.t)[to];
    for (int s = 0; s < C; s++) {
        if (CHUNKS && x.continues(s, to)) continue;
        REAL score = split.before[s * split.size] + real(x.step(split.t)[s * C + to]) + split.work.gains(split.t)[to];
        REAL share = split.mass_after[place] * exp(score - split.after[place]);
        split.mass_before[s * split.size] += share;
        edges[s * C + to] += share;
    }
}

__device__ void split_odd(const Split &split, double *edges) {
    for (int to = 0; to < C; to++) {
        for (unsigned rest = __ballot_sync(~0u, split.is_odd(to)); rest; rest &= rest - 1) {  // one lane after the other
            if (split.lane == __ffs(rest) - 1) split_carefully(split, to, edges);
            __syncwarp();
        }
    }
}

__device__ void split_exceptions(const Split &split, double *edges) {
    Box box = split.x.box(split.t);
    for (int n = 0; n < *split.work.listed; n++) {
        Exception e = split.work.exceptions[n];
        double share = 0;
        if (split.active) {
            int cell = e.after * box.size() + e.lines * box.width + e.within;
            REAL mass = split.mass_after[cell], score = split.before[e.before * split.size];
            if (mass != 0 && score > forbidden(REAL(0))) share = mass * exp(Sums::through(score, e) - split.after[cell]);
            split.mass_before[e.before * split.size] += REAL(share);
        }
        share = sum_of_warp(share);
        if (split.lane == 0) edges[e.label * C + e.to] += share;
    }
    __syncwarp();
}

// From the masses of position t to those of the position before.
__device__ void split_masses(const Sentence &x, int t, const Work &work, double *edges) {
    Staged staged(work);
    int size = x.box(t - 1).size();
    for (int first = threadIdx.x / kWarp * kWarp; first < size; first += blockDim.x) {
        Split split(x, work, t, first);
        bool odd = stage(split, staged);
        if (split.active) split_column(split, staged);
        sum_edges(work, staged, edges, split.lane);
        if (odd) split_odd(split, edges);
        if (CHUNKS) split_exceptions(split, edges);
    }
    __syncthreads();
}

// One table for each warp becomes the table of a step; they begin at 0 again.
__device__ void gather_edges(double *tables, double *step) {
    for (int i = threadIdx.x; i < C * C; i += blockDim.x) {
        double sum = 0;
        for (int warp = 0; warp < blockDim.x / kWarp; warp++) sum += tables[warp * C * C + i], tables[warp * C * C + i] = 0;
        step[i] = sum;
    }
    __syncthreads();
}

struct Expected {  // derivatives of a weighted sum of tallies
    const Batch *batch;
    SCORE *nodes;     // of all sentences
    double *edges;    // one table per block; or one per step of all sentences
    double *working;  // of the block: a table for each warp, in its memory if they are small

    __device__ Expected(const Batch &batch, SCORE *nodes, double *edges, double *working, const Work &work)
        : batch(&batch), nodes(nodes), edges(edges),
          working(kSmall ? Staged(work).end() : working + int64(blockIdx.x) * (blockDim.x / kWarp) * C * C) {
        for (int i = threadIdx.x; nodes && i < blockDim.x / kWarp * C * C; i += blockDim.x) this->working[i] = 0;
        __syncthreads();
    }

    // Add those of a sentence, whose tables are filled; less `share` of its labels, if given.
    __device__ void add(const Sentence &x, const double *upstream, Work &work, const int64 *labels, double share) const {
        const Padded &given = batch->given;
        SCORE *its = nodes + x.number * given.positions * C;
        double *steps = given.shared ? nullptr : edges + x.number * (given.positions - 1) * C * C;
        for (int i = x.length * C + threadIdx.x; i < given.positions * C; i += blockDim.x) its[i] = 0;
        last_masses(x, upstream);
        for (int t = x.length - 1;; t--) {
            sum_nodes(x, t, labels ? int(labels[t]) : -1, share, its);
            if (t == 0) break;
            if (!given.shared) load_weights<Sums>(x, t, work);
            load_step(x, t, State(x, t, x.place(t), threadIdx.x), work);
            __syncthreads();
            split_masses(x, t, work, working + threadIdx.x / kWarp * C * C);
            if (labels && threadIdx.x == 0) working[labels[t - 1] * C + labels[t]] -= share;
            __syncthreads();
            if (steps) gather_edges(working, steps + int64(t - 1) * C * C);
        }
        __syncthreads();
    }

    // Write the sum of the block's tables to its own one; start and end scores have none.
    __device__ void leave() const {
        double *own = edges + int64(blockIdx.x) * (C + 2) * C;
        if (batch->given.shared) gather_edges(working, own);
    }
};
