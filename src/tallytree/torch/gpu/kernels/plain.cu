// Chains without counts: log Z, the log-likelihood of given labels, and their derivatives.
#include "looking.cuh"
#include "messages.cuh"
#include "tables.cuh"

struct Asked {  // for one sentence: the gain of its value, its labels or null, and where its derivatives go
    double gain;
    const int64 *labels;
    SCORE *slopes;

    // The gain of the given label; 0 for other labels, or without labels.
    __device__ double own(int t, int s) const { return labels && labels[t] == s ? gain : 0; }
};

// Where derivatives for weights go: a warp's table, or one table per step.
struct Edges {
    double *table;
    int shared;
    double sums[kOne ? C : 1];  // of a lane's column, before the factors, if they fit in registers

    __device__ Edges(double *table, int shared) : table(table), shared(shared) {
        for (int s = 0; s < (kOne ? C : 1); s++) sums[s] = 0;
    }

    __device__ double *at(int t) const { return shared ? table : table + int64(t - 1) * C * C; }

    __device__ void add(const Shares &shares, const Weights &w, int t, int lane) {
        if constexpr (kOne) {
            if (shared) {
                double rate = lane < C ? shares.rates[lane] : 0;
#pragma unroll
                for (int s = 0; s < C; s++) sums[s] += shares.powers[s] * rate;
                return;
            }
        }
        for (int to = lane; to < C; to += kWarp)
            for (int s = 0; s < C; s++) {
                double share = shares.powers[s] * w.factor(s, to) * shares.rates[to];
                double *place = at(t) + s * C + to;
                *place = shared ? *place + share : share;
            }
        __syncwarp();
    }

    // Add the derivative of a state at the first or the last position.
    __device__ void end(const Chain &chain, int t, int s, double slope) {
        if (shared && t == 0) table[C * C + s] += slope;
        if (shared && t + 1 == chain.length) table[C * C + C + s] += slope;
    }

    // Subtract the step of the labels into t, in the lane that has the column.
    __device__ void take(const Asked &asked, int t, int lane) {
        __syncwarp();
        if (asked.labels && asked.labels[t] % kWarp == lane) at(t)[asked.labels[t - 1] * C + asked.labels[t]] -= asked.gain;
    }

    __device__ void finish(const Shares &shares, int lane) {
        __syncwarp();
        if (kOne && shared && lane < C)
#pragma unroll
            for (int s = 0; s < (kOne ? C : 1); s++) table[s * C + lane] += sums[s] * shares.column[s];
        __syncwarp();
    }
};

// Split the mass of a state whose sum left the range of numbers, term by term.
__device__ void split_carefully(double mass, const Shares &shares, const SCORE *w, int to, double *edges, double *next, int lane) {
    double arrived = careful_sum(shares.message, w, to);
    for (int k = 0, s = lane; s < C; k++, s += kWarp) {
        double share = mass * exp(shares.message[s] + double(w[s * C + to]) - arrived);
        next[k] += share;
        edges[s * C + to] += share;
    }
    __syncwarp();
}

// One step to the left: a state's mass is split among the states before it in proportion to what arrived from them.
__device__ void split(double *mass, Shares &shares, const Weights &w, Edges &edges, int t, int lane) {
    double next[kStates];
    unsigned odd[kStates];
    for (int k = 0; k < kStates; k++) {
        int to = lane + k * kWarp;
        double sum = to < C && mass[k] != 0 ? shares.arriving(w, to) : 1;
        odd[k] = __ballot_sync(~0u, !ordinary(sum));
        if (to < C) shares.rates[to] = ordinary(sum) ? mass[k] / sum : 0;
        next[k] = 0;
    }
    __syncwarp();
    edges.add(shares, w, t, lane);
    for (int k = 0, s = lane; s < C; k++, s += kWarp) {
        double sums[4] = {0, 0, 0, 0};  // independent, for pipelining
#pragma unroll 8
        for (int to = 0; to < C; to++) sums[to % 4] += w.factor(s, to) * shares.rates[to];
        next[k] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * shares.powers[s];
    }
    for (int k = 0; k < kStates; k++)
        for (unsigned rest = odd[k]; rest; rest &= rest - 1) {
            int owner = __ffs(rest) - 1;
            split_carefully(__shfl_sync(~0u, mass[k], owner), shares, w.given, owner + k * kWarp, edges.at(t), next, lane);
        }
    for (int k = 0; k < kStates; k++) mass[k] = next[k];
}

// Derivatives from the messages in `kept`; the messages of the last position must be published.
__device__ void backward(const Chain &chain, const Asked &asked, Shares &shares, const double *kept, Edges &edges, int lane) {
    double mass[kStates], sum = 0;
    for (int k = 0; k < kStates; k++) {
        int s = lane + k * kWarp;
        mass[k] = s < C ? shares.powers[s] : 0;
        sum += mass[k];
    }
    sum = asked.gain / sum_of_warp(sum);
    for (int k = 0; k < kStates; k++) mass[k] *= sum;
    double before[kStates];  // the message of the position before, a step ahead
    auto load = [&](int t) {
        for (int k = 0, s = lane; t >= 0 && s < C; k++, s += kWarp) before[k] = kept[t * C + s];
    };
    load(chain.length - 2);
    for (int t = chain.length - 1;; t--) {
        for (int k = 0, s = lane; s < C; k++, s += kWarp) {
            double slope = mass[k] - asked.own(t, s);
            asked.slopes[t * C + s] = SCORE(slope);
            edges.end(chain, t, s, slope);
        }
        if (!t) return;
        shares.publish(before, lane);
        load(t - 2);
        split(mass, shares, shares.weights(chain.step(t), lane), edges, t, lane);
        edges.take(asked, t, lane);
    }
}

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
    double *kept;           // memory per warp for its messages
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
    double *messages = asked.slopes ? asked.kept + number_of_warp() * positions * C : nullptr;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        const int64 *its = asked.labels ? asked.labels + b * positions : nullptr;
        if (its && !in_range(its, chain.length, lane)) return;  // an error
        double sign = its ? -asked.sign : 1, score = its ? chain.score(its, lane) : 0;
        double total = score > forbidden(0.0) ? forward(chain, shares, messages, lane) : forbidden(0.0);
        bool possible = total > forbidden(0.0);
        if (lane == 0) asked.values[b] = possible ? sign * (total - score) : its ? -sign * forbidden(0.0) : total;
        if (!asked.slopes) return;
        Asked one{sign * (asked.upstream ? double(asked.upstream[b]) : 1), its, asked.slopes + b * positions * C};
        if (!given.shared) sums.table = asked.edges + b * (positions - 1) * C * C;
        if (possible) backward(chain, one, shares, messages, sums, lane);
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
