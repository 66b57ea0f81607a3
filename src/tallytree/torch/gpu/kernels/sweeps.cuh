// Plain passes over a sentence with a price for each count, by a warp: a lane takes a state, or several.
#pragma once
#include "counted.cuh"

constexpr int kPasses = 12;                       // over a sentence, at most

struct Prices {  // of a line of the grid, and of a cell within it
    float lines, within;
};

struct alignas(16) Tally {  // one that may still be the best
    float lines, within;
    float need;   // the score that it needs, relative to the truth; inf for those that no prices can rule out
    float spare;  // for loads of 16 bytes
};

struct Met {  // a labelling that was met: its score relative to the truth, its tally, and the prices that led to it
    float score, lines, within;
    Prices prices;
    int cell;
};

struct Room {  // shared memory of a warp
    Tally *tallies;
    double *bounds;  // of the scores of tallies, relative to the truth
    Met *met;        // the truth, then one for each pass
    REAL *message;
    unsigned char *choices, *path, *best;  // the best previous state of each state; a labelling, and the best one

    __device__ Room(unsigned char *memory, int listed, int positions) {
        int each = 24 * listed + 24 * (kPasses + 1) + 8 * C + (positions * (C + 2) + 15) / 16 * 16;
        tallies = reinterpret_cast<Tally *>(memory + threadIdx.x / kWarp * ((each + 15) / 16 * 16));
        bounds = reinterpret_cast<double *>(tallies + listed);
        message = reinterpret_cast<REAL *>(bounds + listed);
        met = reinterpret_cast<Met *>(reinterpret_cast<double *>(message) + C);
        choices = reinterpret_cast<unsigned char *>(met + kPasses + 1);
        path = choices + positions * C;
        best = path + positions;
    }
};

struct Weights {  // into the state of a lane, in registers, if all steps share them
    static constexpr bool kKept = C <= kWarp;
    REAL column[kKept ? C : 1];
    bool kept;

    __device__ Weights(const Padded &given, int lane) : kept(kKept && given.shared) {
        if (!kept) return;
#pragma unroll
        for (int s = 0; s < (kKept ? C : 1); s++) column[s] = real(given.weights[s * C + (lane < C ? lane : 0)]);
    }
};

struct Priced {  // the score of a state at a position, read before it is needed
    REAL node = forbidden(REAL(0));
    int shift = 0;

    Priced() = default;
    __device__ Priced(const Sentence &x, int t, int s) {
        if (t < x.length && s < C) node = x.node(t, s), shift = x.shift(t, s);
    }
    // With prices, never too small.
    __device__ REAL score(const Sentence &x, const Prices &prices) const {
        Shift its = x.split(shift);
        REAL price;
        convert(double(prices.lines) * its.lines + double(prices.within) * its.within, price);
        return add_up(node, price);
    }
};

struct Swept {  // the best score at some prices, its last state, and the size of what was added up
    REAL most;
    int state;
    REAL size;
    bool tied;  // whether another labelling has the score of the best one, up to a tolerance

    __device__ void grow(REAL number) {
        REAL its = number < 0 ? -number : number;
        if (number > forbidden(REAL(0)) && its > size) size = its;
    }
};

// The arrivals at a state, from all states before.
__device__ inline REAL arrive(const REAL *message, const Weights &weights, const SCORE *step, int to, int &from) {
    REAL most = forbidden(REAL(0));
    from = 0;
    if (Weights::kKept && weights.kept) {
#pragma unroll
        for (int s = 0; s < C; s++) {
            REAL score = add_up(message[s], weights.column[Weights::kKept ? s : 0]);
            if (score > most) most = score, from = s;
        }
    } else {
        for (int s = 0; s < C; s++) {
            REAL score = add_up(message[s], real(step[s * C + to]));
            if (score > most) most = score, from = s;
        }
    }
    return most;
}

// A pass from left to right. kCheck: whether another labelling comes within `near` of the one in `room.best`.
template <bool kCheck>
__device__ Swept sweep(const Sentence &x, const Room &room, const Weights &weights, Prices prices, REAL near, int lane) {
    REAL message[kStates];
    Priced coming[kStates];
    Swept found{forbidden(REAL(0)), C, 0, false};
    for (int k = 0; k < kStates; k++) {
        message[k] = Priced(x, 0, lane + k * kWarp).score(x, prices);
        found.grow(message[k]);
    }
    for (int t = 1; t < x.length; t++) {
        for (int k = 0; k < kStates; k++) coming[k] = Priced(x, t, lane + k * kWarp);
        __syncwarp();
        for (int k = 0, s = lane; s < C; k++, s += kWarp) room.message[s] = message[k];
        __syncwarp();
        const SCORE *step = x.step(t);
        if (kCheck) {
            int its = room.best[t - 1], to = room.best[t];
            REAL least = add_up(room.message[its], real(step[its * C + to])) - near;
            for (int k = 0, s = lane; s < C; k++, s += kWarp)
                if (s != its && add_up(message[k], real(step[s * C + to])) >= least) found.tied = true;
        }
        for (int k = 0, to = lane; to < C; k++, to += kWarp) {
            int from;
            REAL most = add_up(arrive(room.message, weights, step, to, from), coming[k].score(x, prices));
            message[k] = most;
            room.choices[t * C + to] = static_cast<unsigned char>(from);
            found.grow(most);
        }
    }
    for (int k = 0, s = lane; s < C; k++, s += kWarp)
        if (message[k] > found.most) found.most = message[k], found.state = s;
    best_of_warp(found.most, found.state);
    found.size = largest_in_warp(found.size);
    for (int k = 0, s = lane; kCheck && s < C; k++, s += kWarp)
        if (s != room.best[x.length - 1] && message[k] >= found.most - near) found.tied = true;
    found.tied = __ballot_sync(~0u, found.tied) != 0;
    return found;
}

// From the last state back to the first; returns the tally of the labelling.
__device__ inline int trace(const Sentence &x, const Room &room, int state, int lane) {
    __syncwarp();
    for (int t = x.length - 1; lane == 0 && t >= 0; t--) {
        room.path[t] = static_cast<unsigned char>(state);
        state = t ? room.choices[t * C + state] : 0;
    }
    __syncwarp();
    double tally = 0;
    for (int t = lane; t < x.length; t += kWarp) tally += x.shift(t, room.path[t]);
    return int(sum_of_warp(tally));
}
