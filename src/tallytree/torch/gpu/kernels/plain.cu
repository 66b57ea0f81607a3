// Chains without counts: log Z, the log-likelihood of given labels, and their derivatives.
#include "looking.cuh"
#include "products.cuh"
#include "tables.cuh"

__device__ inline void clear(SCORE *slopes, int first, int last, int lane) {
    for (int i = first + lane; i < last; i += kWarp) slopes[i] = 0;
}

struct Likelihood {  // the input of `likelihood`
    Padded given;
    Ends ends;
    const int64 *labels;    // or null
    const SCORE *upstream;  // the gain of each value, or null for 1
    double *values;
    SCORE *slopes;          // or null
    double *kept;           // memory per warp for its messages, and for as many powers
    double *edges;          // one table per block if tables are small, else one per warp; or one per step, filled with zeros
    Findings found;         // no words: the lengths are known, and all is valid
    Total all;
    double sign;            // of the log-probability of labels: -1 for its negative
    int apart;              // whether each warp has one sentence at most, and a table of its own
};

// log Z, or the log-probability of labels times a sign; and the derivatives.
extern "C" __global__ void __launch_bounds__(128, 3) likelihood(const __grid_constant__ Likelihood asked) {
    BLOCK_MEMORY;
    const Padded &given = asked.given;
    int lane = threadIdx.x % kWarp, positions = given.positions;
    if (asked.found.words) {
        each_sentence(given, [&](int64 b) { look_at(given, asked.ends, asked.labels, nullptr, asked.found.words, b, lane); });
        tell_host(asked.found);
    }
    Shares shares(memory, given.shared);
    shares.fill(given.weights);
    bool tables = asked.slopes && given.shared;
    Edges sums(tables ? table_of_warp(shares.rest, asked.edges, lane) : nullptr, given.shared);
    double *messages = asked.slopes ? asked.kept + number_of_warp() * 2 * positions * C : nullptr;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        const int64 *its = asked.labels ? asked.labels + b * positions : nullptr;
        if (its && !in_range(its, chain.length, lane)) return;  // an error
        double sign = its ? -asked.sign : 1, score = its ? chain.score(its, lane) : 0;
        Summed sum;
        if (score > forbidden(0.0) && given.shared) sum = quick_forward(chain, shares, messages, lane);
        if (score > forbidden(0.0) && !sum.near) sum.log = forward(chain, shares, messages, lane);
        double total = sum.log;
        bool possible = total > forbidden(0.0);
        if (lane == 0) asked.values[b] = possible ? sign * (total - score) : its ? -sign * forbidden(0.0) : total;
        if (!asked.slopes) return;
        Asked one{sign * (asked.upstream ? double(asked.upstream[b]) : 1), its, asked.slopes + b * positions * C};
        if (!given.shared) sums.table = asked.edges + b * (positions - 1) * C * C;
        if (possible && sum.near) quick_backward(chain, one, shares, messages, sums, sum.mass, lane);
        if (possible && !sum.near) backward(chain, one, shares, messages, sums, lane);
        clear(one.slopes, possible ? chain.length * C : 0, positions * C, lane);
    });
    if (tables) {
        sums.finish(shares, lane);
        leave_tables(shares.rest, asked.edges, asked.apart);
    }
    add_total(given, asked.values, asked.all, asked.found);
}

struct Gathering {  // the input of `gather`
    Padded given;
    const SCORE *gains;  // of each value, or null for 1
    double rate;         // a factor for all; 0: one over the number of positions
    const SCORE *slopes;
    const double *edges;                             // `tables` tables, or one per step of each sentence if that is 0
    SCORE *by_nodes, *by_weights, *by_start, *by_end;  // start, end: or null
    int uniform, tables;                             // uniform: the first gain is for all, else tables are those of sentences
    const int *words;                                // of findings that make all derivatives 0, or null
};

// The place of the derivative with an index of a table, or null.
__device__ inline SCORE *place_of(const Gathering &asked, int i) {
    if (i < C * C) return asked.by_weights + i;
    SCORE *ends = i < C * C + C ? asked.by_start : asked.by_end;
    return ends ? ends + (i - C * C) % C : nullptr;
}

// Sum the entries of tables for some columns, by a block: the warps take tables in turns.
__device__ void gather_columns(const Gathering &asked, int first, double gain) {
    __shared__ double sums[32][kWarp];
    int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp, column = first + lane;
    double sum = 0;
    for (int i = warp; column < kTable && i < asked.tables; i += warps)
        sum += asked.edges[int64(i) * kTable + column] * (asked.uniform ? 1.0 : double(asked.gains[i]));
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < kTable) {
        for (int other = 1; other < warps; other++) sum += sums[other][lane];
        if (SCORE *place = place_of(asked, column)) *place = is_wrong(asked.words) ? SCORE(0) : SCORE(gain * sum);
    }
    __syncthreads();
}

// Derivatives times the gain of each value and `rate`, tables added up. Nodes may be replaced in place.
extern "C" __global__ void gather(const __grid_constant__ Gathering asked) {
    const Padded &given = asked.given;
    int64 first = int64(blockIdx.x) * blockDim.x + threadIdx.x, all = int64(gridDim.x) * blockDim.x;
    int64 block = int64(given.positions) * C, own = int64(given.positions - 1) * C * C;
    double rate = asked.rate ? asked.rate : one_per_position(given), gain = asked.gains && asked.uniform ? rate * *asked.gains : rate;  // for all
    for (int part = blockIdx.x; asked.tables && part * kWarp < kTable; part += gridDim.x) gather_columns(asked, part * kWarp, gain);
    bool wrong = is_wrong(asked.words);
    for (int64 i = first; i < given.sentences * block; i += all)
        asked.by_nodes[i] = wrong ? SCORE(0) : SCORE(asked.slopes[i] * (asked.uniform ? gain : rate * asked.gains[i / block]));
    for (int64 i = first; !asked.tables && i < given.sentences * own; i += all)
        asked.by_weights[i] = wrong ? SCORE(0) : SCORE(asked.edges[i] * (asked.uniform ? gain : rate * asked.gains[i / own]));
}
