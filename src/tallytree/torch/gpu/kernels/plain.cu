// Chains without counts: one warp for each sentence, one lane for each state; sums in double precision.
//
// Messages are kept relative to their largest entry, so that long sentences lose no digits.
#include "numbers.cuh"

constexpr int kStates = (C + kWarp - 1) / kWarp;  // states of one lane: lane, lane + 32, ...
constexpr double kTiny = 1e-250;                  // smaller sums of exponentials are added again, relative to their own largest term

struct Chain {
    const SCORE *nodes, *weights;  // of one sentence; weights of all its steps, or one table
    int shared, positions, length;
    int64 sentence;

    __device__ double node(int t, int s) const { return s < C ? double(nodes[t * C + s]) : forbidden(0.0); }
    __device__ const SCORE *step(int t) const { return step_weights(weights, shared, sentence, t, positions); }
};

__device__ inline double largest_of_warp(const double *message) {
    double most = forbidden(0.0);
    for (int k = 0; k < kStates; k++) most = larger(most, message[k]);
    int ignored = 0;
    best_of_warp(most, ignored);
    return most;
}

// Take off the largest entry, unless nothing is allowed, and return it.
__device__ inline double normalise(double *message) {
    double most = largest_of_warp(message);
    if (!(most > forbidden(0.0))) return most;
    for (int k = 0; k < kStates; k++) message[k] -= most;
    return most;
}

// log of the sum over s of exp(source[s] + w[s, to]), each term relative to the largest.
__device__ double careful_sum(const double *source, const SCORE *w, int to) {
    double most = forbidden(0.0), sum = 0;
    for (int s = 0; s < C; s++) most = larger(most, source[s] + double(w[s * C + to]));
    if (!(most > forbidden(0.0))) return most;
    for (int s = 0; s < C; s++) sum += exp(source[s] + double(w[s * C + to]) - most);
    return log(sum) + most;
}

// The largest of C x C weights, as one warp finds it; 0 where all are forbidden.
__device__ double largest_weight(const SCORE *weights, int lane) {
    double most = forbidden(0.0);
    for (int i = lane; i < C * C; i += kWarp) most = larger(most, double(weights[i]));
    int ignored = 0;
    best_of_warp(most, ignored);
    return most > forbidden(0.0) ? most : 0;
}

struct Weights {  // of one step: as given, their largest, and exp(weight - largest) where all steps share them
    const SCORE *given;
    double most;
    const double *factors;

    __device__ double factor(int s, int to) const {
        return factors ? factors[s * C + to] : exp(double(given[s * C + to]) - most);
    }
};

// The sum over s of exp(message[s] + w[s, to] - the largest weight).
__device__ inline double arriving(const double *powers, const Weights &w, int to) {
    double sum = 0;
    for (int s = 0; s < C; s++) sum += powers[s] * w.factor(s, to);
    return sum;
}

__device__ inline bool ordinary(double sum) { return sum > kTiny; }

struct Shares {  // shared memory: the factors of the block, then three rows for each warp
    double *factors, *message, *powers, *rates;
    double most;

    __device__ Shares(unsigned char *memory, int with_factors) {
        double *rest = reinterpret_cast<double *>(memory);
        factors = with_factors ? rest : nullptr;
        message = rest + with_factors * C * C + threadIdx.x / kWarp * 3 * C;
        powers = message + C;
        rates = powers + C;
    }

    __device__ void fill(const SCORE *weights) {
        if (!factors) return;
        most = largest_weight(weights, threadIdx.x % kWarp);
        for (int i = threadIdx.x; i < C * C; i += blockDim.x) factors[i] = exp(double(weights[i]) - most);
        __syncthreads();
    }

    __device__ Weights weights(const SCORE *given, int lane) const {
        return Weights{given, factors ? most : largest_weight(given, lane), factors};
    }

    __device__ void publish(const double *its, int lane) {
        __syncwarp();
        for (int k = 0, s = lane; s < C; k++, s += kWarp) message[s] = its[k], powers[s] = exp(its[k]);
        __syncwarp();
    }
};

// The messages of one sentence from left to right; returns log Z. `kept` takes them where a backward pass follows.
__device__ double forward(const Chain &chain, Shares &shares, double *kept, int lane) {
    double message[kStates], total = 0;
    for (int k = 0; k < kStates; k++) message[k] = chain.node(0, lane + k * kWarp);
    for (int t = 0;; t++) {
        double most = normalise(message);
        total += most;
        if (!(most > forbidden(0.0))) return most;
        shares.publish(message, lane);
        for (int k = 0, s = lane; kept && s < C; k++, s += kWarp) kept[t * C + s] = message[k];
        if (t + 1 == chain.length) break;
        Weights w = shares.weights(chain.step(t + 1), lane);
        for (int k = 0, to = lane; to < C; k++, to += kWarp) {
            double sum = arriving(shares.powers, w, to);
            double arrived = ordinary(sum) ? log(sum) + w.most : careful_sum(shares.message, w.given, to);
            message[k] = arrived + chain.node(t + 1, to);
        }
    }
    double sum = 0;
    for (int s = lane; s < C; s += kWarp) sum += shares.powers[s];
    return total + log(sum_of_warp(sum));
}

// Where the expected entries of weights go: rows of one table, or one table for each step.
struct Edges {
    double *table;
    int shared;
    double sums[kStates == 1 ? C : 1];  // of a lane's column, before the factors, where they fit in registers

    __device__ double *at(int t) const { return shared ? table : table + int64(t - 1) * C * C; }

    __device__ void begin(int lane) {
        for (int s = 0; s < (kStates == 1 ? C : 1); s++) sums[s] = 0;
        for (int i = lane; shared && i < C * C; i += kWarp) table[i] = 0;
        __syncwarp();
    }

    __device__ void add(const Shares &shares, const Weights &w, int t, int lane) {
        if constexpr (kStates == 1) {
            if (shared) {
#pragma unroll
                for (int s = 0; s < C; s++) sums[s] += shares.powers[s] * (lane < C ? shares.rates[lane] : 0);
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

    __device__ void end(const Weights &w, int lane) {
        if (kStates == 1 && lane < C)
            for (int s = 0; s < (kStates == 1 ? C : 1); s++) table[s * C + lane] += sums[s] * w.factor(s, lane);
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
        double sum = to < C && mass[k] != 0 ? arriving(shares.powers, w, to) : 1;
        odd[k] = __ballot_sync(~0u, !ordinary(sum));
        if (to < C) shares.rates[to] = ordinary(sum) ? mass[k] / sum : 0;
        next[k] = 0;
    }
    __syncwarp();
    edges.add(shares, w, t, lane);
    for (int k = 0, s = lane; s < C; k++, s += kWarp) {
        for (int to = 0; to < C; to++) next[k] += w.factor(s, to) * shares.rates[to];
        next[k] *= shares.powers[s];
    }
    for (int k = 0; k < kStates; k++)
        for (unsigned rest = odd[k]; rest; rest &= rest - 1) {
            int owner = __ffs(rest) - 1;
            split_carefully(__shfl_sync(~0u, mass[k], owner), shares, w.given, owner + k * kWarp, edges.at(t), next, lane);
        }
    for (int k = 0; k < kStates; k++) mass[k] = next[k];
}

// Expected entries times `upstream`, from the messages in `kept`, which they replace.
__device__ void backward(const Chain &chain, double upstream, Shares &shares, double *kept, Edges &edges, int lane) {
    double mass[kStates], sum = 0;
    for (int k = 0; k < kStates; k++) {
        int s = lane + k * kWarp;
        mass[k] = s < C ? shares.powers[s] : 0;  // of the last position
        sum += mass[k];
    }
    sum = upstream / sum_of_warp(sum);
    for (int k = 0; k < kStates; k++) mass[k] *= sum;
    for (int t = chain.length - 1;; t--) {
        for (int k = 0, s = lane; s < C; k++, s += kWarp) kept[t * C + s] = mass[k];
        if (!t) return;
        double before[kStates];
        for (int k = 0, s = lane; s < C; k++, s += kWarp) before[k] = kept[(t - 1) * C + s];
        shares.publish(before, lane);
        split(mass, shares, shares.weights(chain.step(t), lane), edges, t, lane);
    }
}

extern "C" __global__ void log_partition(const SCORE *nodes, const SCORE *weights, const int *lengths, double *answers,
                                         int sentences, int positions, int shared) {
    BLOCK_MEMORY;
    Shares shares(memory, shared);
    shares.fill(weights);
    int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int64 b = int64(blockIdx.x) * warps + threadIdx.x / kWarp; b < sentences; b += int64(gridDim.x) * warps) {
        Chain chain{nodes + b * positions * C, weights, shared, positions, lengths[b], b};
        double answer = forward(chain, shares, nullptr, lane);
        if (lane == 0) answers[b] = answer;
    }
}

// `kept`: zeros, one entry for each of `nodes`; `edges`: one table for each warp, or zeros, one for each step of a sentence.
extern "C" __global__ void expectations(const SCORE *nodes, const SCORE *weights, const int *lengths, const double *upstream,
                                        double *kept, double *edges, int sentences, int positions, int shared) {
    BLOCK_MEMORY;
    Shares shares(memory, shared);
    shares.fill(weights);
    int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    int64 first = int64(blockIdx.x) * warps + threadIdx.x / kWarp;
    Edges sums{edges + first * C * C, shared};
    sums.begin(lane);
    for (int64 b = first; b < sentences; b += int64(gridDim.x) * warps) {
        Chain chain{nodes + b * positions * C, weights, shared, positions, lengths[b], b};
        if (!shared) sums.table = edges + b * (positions - 1) * C * C;
        double *its = kept + b * positions * C;
        if (forward(chain, shares, its, lane) > forbidden(0.0)) {
            backward(chain, upstream[b], shares, its, sums, lane);
        } else {  // no labelling is allowed: nothing to gain from any entry
            __syncwarp();
            for (int i = lane; i < positions * C; i += kWarp) its[i] = 0;
        }
    }
    if (shared) sums.end(shares.weights(weights, lane), lane);
}

// The best labelling of each sentence. `choices` holds, for each position, the best state before each state.
extern "C" __global__ void viterbi(const SCORE *nodes, const SCORE *weights, const int *lengths, double *scores, int *choices,
                                   int64 *labels, int sentences, int positions, int shared) {
    BLOCK_MEMORY;
    Shares shares(memory, 0);
    int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int64 b = int64(blockIdx.x) * warps + threadIdx.x / kWarp; b < sentences; b += int64(gridDim.x) * warps) {
        Chain chain{nodes + b * positions * C, weights, shared, positions, lengths[b], b};
        int *before = choices + b * positions * C;
        double message[kStates];
        for (int k = 0; k < kStates; k++) message[k] = chain.node(0, lane + k * kWarp);
        for (int t = 1; t < chain.length; t++) {
            __syncwarp();
            for (int k = 0, s = lane; s < C; k++, s += kWarp) shares.message[s] = message[k];
            __syncwarp();
            const SCORE *w = chain.step(t);
            for (int k = 0, to = lane; to < C; k++, to += kWarp) {
                double most = forbidden(0.0);
                int from = 0;
                for (int s = 0; s < C; s++) {
                    double value = shares.message[s] + double(w[s * C + to]);
                    if (value > most) most = value, from = s;
                }
                message[k] = most + chain.node(t, to);
                before[t * C + to] = from;
            }
        }
        double most = forbidden(0.0);
        int state = C;
        for (int k = 0, s = lane; s < C; k++, s += kWarp)
            if (message[k] > most) most = message[k], state = s;
        best_of_warp(most, state);
        __syncwarp();
        if (lane) continue;
        scores[b] = most;
        for (int t = chain.length - 1; t >= 0 && state < C; t--) {
            labels[b * positions + t] = state;
            state = t ? before[t * C + state] : 0;
        }
    }
}
