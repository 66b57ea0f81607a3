// log Z of every tally of each sentence, and the expected entries of any weighting of the tallies.
#include "filling.cuh"

constexpr REAL kTiny = sizeof(REAL) == 8 ? REAL(1e-250) : REAL(1e-30);  // smaller sums are added again with care
constexpr REAL kHuge = sizeof(REAL) == 8 ? REAL(575) : REAL(69);        // the exponent that goes with it

__device__ inline REAL largest_of_column(const REAL *column, int stride) {
    REAL most = forbidden(REAL(0));
    for (int s = 0; s < C; s++) most = larger(most, column[s * stride]);
    return most;
}

// log of the sum over s of exp(before[s] + w[s, to]), each term relative to the largest.
__device__ inline REAL careful_sum(const Sentence &x, int t, int l, int to) {
    const REAL *before = x.table(t - 1) + l;
    const SCORE *w = x.step(t);
    REAL most = forbidden(REAL(0)), sum = 0;
    for (int s = 0; s < C; s++)
        if (!CHUNKS || !x.continues(s, to)) most = larger(most, before[s * x.stride] + real(w[s * C + to]));
    if (!(most > forbidden(REAL(0)))) return most;
    for (int s = 0; s < C; s++)
        if (!CHUNKS || !x.continues(s, to)) sum += exp(before[s * x.stride] + real(w[s * C + to]) - most);
    return log(sum) + most;
}

struct Sums {  // the logarithm of the sum of all ways to a cell
    static __device__ REAL weight(REAL given, REAL most) { return exp(given - most); }

    static __device__ void advance(const Sentence &x, int t, int l, int base, const Work &work) {
        const REAL *before = x.table(t - 1) + l;
        REAL most = largest_of_column(before, x.stride), sums[kTile];
#pragma unroll
        for (int j = 0; j < kTile; j++) sums[j] = 0;
        if (most > forbidden(REAL(0)))
            for (int s = 0; s < C; s++) {
                REAL power = exp(before[s * x.stride] - most);
                const REAL *w = work.weights + s * kPadded + base;
#pragma unroll
                for (int j = 0; j < kTile; j++) sums[j] += power * w[j];
            }
        REAL *after = x.table(t) + l;
#pragma unroll
        for (int j = 0; j < kTile; j++) {
            if (base + j >= C) continue;
            REAL arrived = sums[j] > kTiny ? log(sums[j]) + most + *work.most : careful_sum(x, t, l, base + j);
            after[work.places[base + j]] = arrived + work.gains[base + j];
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
    int column = r < C ? l : l - 1;
    return x.alive(x.length - 1, column) ? r * x.stride + column : -1;
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

extern "C" __global__ void log_tallies(Batch batch, unsigned char *scratch, int64 scratch_bytes, double *answers) {
    BLOCK_MEMORY;
    Work work(memory, batch.pair_count);
    for (int64 b = blockIdx.x; b < batch.sentences; b += gridDim.x) {
        Sentence x = sentence_of(batch, b, scratch + blockIdx.x * scratch_bytes);
        fill_tables<Sums>(x, work, b == blockIdx.x);
        for (int l = threadIdx.x; l < batch.tallies; l += blockDim.x) answers[b * batch.tallies + l] = log_tally(x, l);
        __syncthreads();
    }
}

struct Staged {  // shared memory of a warp: for 32 columns, exponentials of what was before, and mass over what arrived
    REAL *powers, *rates;
    static constexpr int kStride = kWarp + 1;

    __device__ explicit Staged(const Work &work) {
        int64 end = reinterpret_cast<int64>(work.places + kPadded);
        REAL *first = reinterpret_cast<REAL *>((end + 15) / 16 * 16);
        powers = first + threadIdx.x / kWarp * (C + kPadded) * kStride;
        rates = powers + C * kStride;
    }
};

// The weight of each tally, split among the cells of the last table.
__device__ void last_masses(const Sentence &x, const double *upstream, int tallies) {
    int t = x.length - 1;
    REAL *mass = x.mass(t);
    for (int i = threadIdx.x; i < kRows * x.reached(t); i += blockDim.x) mass[i % kRows * x.stride + x.list(t)[i / kRows]] = 0;
    __syncthreads();
    for (int l = threadIdx.x; l < tallies; l += blockDim.x) {
        REAL total = log_tally(x, l);
        for (int r = 0; total > forbidden(REAL(0)) && upstream[l] != 0 && r < kRows; r++) {
            int cell = last_cell(x, r, l);
            if (cell >= 0) mass[cell] = REAL(upstream[l]) * exp(x.table(t)[cell] - total);
        }
    }
    __syncthreads();
}

// Expected entries of the nodes of a position: the masses of its states.
__device__ void sum_nodes(const Sentence &x, int t, double *nodes) {
    const REAL *mass = x.mass(t);
    int lane = threadIdx.x % kWarp;
    for (int s = threadIdx.x / kWarp; s < C; s += blockDim.x / kWarp) {
        double sum = 0;
        int twin = CHUNKS ? x.agreeing(t, s) : s;
        for (int i = lane; i < x.reached(t); i += kWarp) {
            int l = x.list(t)[i];
            sum += mass[s * x.stride + l] + (twin != s ? mass[twin * x.stride + l] : REAL(0));
        }
        sum = sum_of_warp(sum);
        if (lane == 0) nodes[t * C + s] = sum;
    }
}

// A cell whose sum left the range of numbers: its mass is split term by term, by all lanes.
__device__ void split_carefully(const Sentence &x, int t, int l, int to, const Work &work, double *edges, int lane) {
    int cell = work.places[to] + l;
    REAL mass = x.mass(t)[cell], arrived = x.table(t)[cell];
    for (int s = lane; s < C; s += kWarp) {
        if (CHUNKS && x.continues(s, to)) continue;
        REAL share = mass * exp(x.table(t - 1)[s * x.stride + l] + real(x.step(t)[s * C + to]) + work.gains[to] - arrived);
        x.mass(t - 1)[s * x.stride + l] += share;
        edges[s * C + to] += share;
    }
    __syncwarp();
}

// Mass over what arrived, for a lane's column; 0 where it must be split with care, which `odd` tells.
__device__ inline REAL rate_of(const Sentence &x, int t, int l, int to, REAL most, const Work &work, bool &odd) {
    int cell = work.places[to] + l;
    REAL mass = x.mass(t)[cell];
    if (mass == 0) return 0;
    REAL exponent = most + *work.most + work.gains[to] - x.table(t)[cell];
    odd = !(exponent < kHuge);
    return odd ? 0 : mass * exp(exponent);
}

__device__ void stage(const Sentence &x, int t, int l, bool active, const Work &work, Staged &staged, int lane) {
    const REAL *before = x.table(t - 1) + l;
    REAL most = active ? largest_of_column(before, x.stride) : REAL(0);
    bool some = active && most > forbidden(REAL(0));
    for (int s = 0; s < C; s++) staged.powers[s * Staged::kStride + lane] = some ? exp(before[s * x.stride] - most) : REAL(0);
    for (int to = 0; to < kPadded; to++) {
        bool odd = false;
        staged.rates[to * Staged::kStride + lane] = some && to < C ? rate_of(x, t, l, to, most, work, odd) : REAL(0);
    }
    __syncwarp();
}

// The masses of the column before, from ordinary steps.
__device__ void split_column(const Sentence &x, int t, int l, const Work &work, const Staged &staged, int lane) {
    REAL *mass = x.mass(t - 1) + l;
    for (int s = 0; s < C; s++) {
        REAL sum = 0;
#pragma unroll
        for (int to = 0; to < kPadded; to++) sum += work.weights[s * kPadded + to] * staged.rates[to * Staged::kStride + lane];
        mass[s * x.stride] = sum * staged.powers[s * Staged::kStride + lane];
    }
    for (int row = C; row < kRows; row++) mass[row * x.stride] = 0;
}

// Expected entries of the weights over a warp's columns: a lane takes a state after.
__device__ void sum_edges(const Work &work, const Staged &staged, double *edges, int lane) {
    for (int to = lane; to < C; to += kWarp) {
        REAL rates[kWarp];
#pragma unroll
        for (int c = 0; c < kWarp; c++) rates[c] = staged.rates[to * Staged::kStride + c];
        for (int s = 0; s < C; s++) {
            REAL sum = 0;
#pragma unroll
            for (int c = 0; c < kWarp; c++) sum += staged.powers[s * Staged::kStride + c] * rates[c];
            edges[s * C + to] += sum * work.weights[s * kPadded + to];
        }
    }
    __syncwarp();
}

__device__ void split_odd(const Sentence &x, int t, int l, bool active, const Work &work, double *edges, int lane) {
    REAL most = active ? largest_of_column(x.table(t - 1) + l, x.stride) : forbidden(REAL(0));
    for (int to = 0; to < C; to++) {
        bool odd = false;
        if (most > forbidden(REAL(0))) rate_of(x, t, l, to, most, work, odd);
        for (unsigned rest = __ballot_sync(~0u, odd); rest; rest &= rest - 1)
            split_carefully(x, t, __shfl_sync(~0u, l, __ffs(rest) - 1), to, work, edges, lane);
    }
}

__device__ void split_exceptions(const Sentence &x, int t, int l, bool active, const Work &work, double *edges, int lane) {
    for (int n = 0; n < work.exception_count; n++) {
        Exception e = work.exceptions[n];
        double share = 0;
        if (active && e.shift >= 0) {
            int cell = e.after + l + e.shift;
            REAL mass = x.mass(t)[cell], score = x.table(t - 1)[e.before + l];
            if (mass != 0 && score > forbidden(REAL(0))) share = mass * exp(Sums::through(score, e) - x.table(t)[cell]);
            x.mass(t - 1)[e.before + l] += REAL(share);
        }
        share = sum_of_warp(share);
        if (lane == 0) edges[e.label * C + e.to] += share;
    }
    __syncwarp();
}

// From the masses of position t to those of the position before.
__device__ void split_masses(const Sentence &x, int t, const Work &work, double *edges) {
    Staged staged(work);
    int lane = threadIdx.x % kWarp, reached = x.reached(t - 1);
    for (int base = threadIdx.x / kWarp * kWarp; base < reached; base += blockDim.x) {
        bool active = base + lane < reached;
        int l = x.list(t - 1)[active ? base + lane : base];
        stage(x, t, l, active, work, staged, lane);
        if (active) split_column(x, t, l, work, staged, lane);
        sum_edges(work, staged, edges, lane);
        split_odd(x, t, l, active, work, edges, lane);
        if (CHUNKS) split_exceptions(x, t, l, active, work, edges, lane);
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

// `nodes`: zeros; `tables`: zeros, one C x C table for each warp; `steps`: one for each step, where steps differ, or null.
extern "C" __global__ void tally_expectations(Batch batch, const double *upstream, unsigned char *scratch, int64 scratch_bytes,
                                              double *nodes, double *tables, double *steps) {
    BLOCK_MEMORY;
    Work work(memory, batch.pair_count);
    double *block = tables + int64(blockIdx.x) * (blockDim.x / kWarp) * C * C, *own = block + threadIdx.x / kWarp * C * C;
    for (int64 b = blockIdx.x; b < batch.sentences; b += gridDim.x) {
        Sentence x = sentence_of(batch, b, scratch + blockIdx.x * scratch_bytes);
        fill_tables<Sums>(x, work, b == blockIdx.x);
        last_masses(x, upstream + b * batch.tallies, batch.tallies);
        double *its = nodes + b * batch.positions * C;
        for (int t = x.length - 1;; t--) {
            sum_nodes(x, t, its);
            if (t == 0) break;
            if (!x.shared) load_weights<Sums>(x, t, work);
            load_step(x, t, work);
            __syncthreads();
            split_masses(x, t, work, own);
            if (steps) gather_edges(block, steps + (b * (batch.positions - 1) + t - 1) * C * C);
        }
        __syncthreads();
    }
}
