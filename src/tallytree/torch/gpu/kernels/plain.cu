// Chains without counts: log Z, the log-likelihood of given labels, and their derivatives.
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
    for (int t = chain.length - 1;; t--) {
        for (int k = 0, s = lane; s < C; k++, s += kWarp) {
            double slope = mass[k] - asked.own(t, s);
            asked.slopes[t * C + s] = SCORE(slope);
            edges.end(chain, t, s, slope);
        }
        if (!t) return;
        double before[kStates];
        for (int k = 0, s = lane; s < C; k++, s += kWarp) before[k] = kept[(t - 1) * C + s];
        shares.publish(before, lane);
        split(mass, shares, shares.weights(chain.step(t), lane), edges, t, lane);
        edges.take(asked, t, lane);
    }
}

__device__ inline void clear(SCORE *slopes, int first, int last, int lane) {
    for (int i = first + lane; i < last; i += kWarp) slopes[i] = 0;
}

// log Z, or the log-probability of `labels`; and the derivatives, if `slopes` is not null.
//
// `upstream`: the gain of each value, or null for 1. `kept`: memory per warp for its messages. `edges`: one table per
// block if tables are small, else one per warp; if each step has its own weights, one per step, filled with zeros.
extern "C" __global__ void __launch_bounds__(128, 3) likelihood(const __grid_constant__ Padded given, const int64 *labels, const SCORE *upstream,
                                                             double *values, SCORE *slopes, double *kept, double *edges) {
    BLOCK_MEMORY;
    Shares shares(memory, given.shared);
    shares.fill(given.weights);
    int lane = threadIdx.x % kWarp, positions = given.positions;
    bool tables = slopes && given.shared;
    Edges sums(tables ? table_of_warp(shares.rest, edges, lane) : nullptr, given.shared);
    double *messages = slopes ? kept + number_of_warp() * positions * C : nullptr;
    each_sentence(given, [&](int64 b) {
        Chain chain = chain_of(given, b);
        const int64 *its = labels ? labels + b * positions : nullptr;
        double sign = its ? -1 : 1, score = its ? chain.score(its, lane) : 0;
        double total = score > forbidden(0.0) ? forward(chain, shares, messages, lane) : forbidden(0.0);
        bool possible = total > forbidden(0.0);
        if (lane == 0) values[b] = possible ? sign * (total - score) : total;
        if (!slopes) return;
        Asked asked{sign * (upstream ? double(upstream[b]) : 1), its, slopes + b * positions * C};
        if (!given.shared) sums.table = edges + b * (positions - 1) * C * C;
        if (possible) backward(chain, asked, shares, messages, sums, lane);
        clear(asked.slopes, possible ? chain.length * C : 0, positions * C, lane);
    });
    if (!tables) return;
    sums.finish(shares, lane);
    leave_tables(shares.rest, edges);
}

// Sum the entries of tables for some columns, by a block: the warps take tables in turns.
__device__ void gather_columns(const double *tables, int count, int first, double gain, SCORE *answers) {
    __shared__ double sums[32][kWarp];
    int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp, column = first + lane;
    double sum = 0;
    for (int i = warp; column < kTable && i < count; i += warps) sum += tables[int64(i) * kTable + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < kTable) {
        for (int other = 1; other < warps; other++) sum += sums[other][lane];
        answers[column] = SCORE(gain * sum);
    }
    __syncthreads();
}

// Derivatives times the gain of each value (`gains`, or null for 1; `uniform`: one for all) and `rate`, tables added up.
//
// `edges`: `tables` tables, or one per step of each sentence if that is 0.
extern "C" __global__ void gather(const __grid_constant__ Padded given, const SCORE *gains, double rate, int uniform, const SCORE *slopes,
                                  const double *edges, int tables, SCORE *by_nodes, SCORE *by_weights) {
    int64 first = int64(blockIdx.x) * blockDim.x + threadIdx.x, all = int64(gridDim.x) * blockDim.x;
    int64 block = int64(given.positions) * C, own = int64(given.positions - 1) * C * C;
    double gain = gains ? rate * *gains : rate;  // used for all if `uniform`
    for (int part = blockIdx.x; tables && part * kWarp < kTable; part += gridDim.x)
        gather_columns(edges, tables, part * kWarp, gain, by_weights);
    for (int64 i = first; i < given.sentences * block; i += all)
        by_nodes[i] = SCORE(slopes[i] * (uniform ? gain : rate * gains[i / block]));
    for (int64 i = first; !tables && i < given.sentences * own; i += all)
        by_weights[i] = SCORE(edges[i] * (uniform ? gain : rate * gains[i / own]));
}
