// A column of a sentence from left to right, and back: its sums, and the derivatives of the expected loss.
#pragma once
#include "courses.cuh"

// The factors of steps off into a lane's state, or out of it, in registers if all steps share them.
struct Held {
    double row[kOne ? C : 1];
    bool held;

    __device__ Held(const Course &x, int lane, bool into, bool plain) : held(kOne && plain && x.chain.all->shared) {
        if constexpr (kOne) {
#pragma unroll
            for (int i = 0; i < C; i++) {
                int s = into ? i : lane, to = into ? lane : i;
                row[i] = held && lane < C && !x.continues(s, to) ? x.factors[s * C + to] : 0;
            }
        }
    }
    // The sum over all states of pairs times factors, which are a row or a column of a table.
    __device__ Pair<double> sum(const Pair<double> *pairs) const {
        Pair<double> sums[2] = {{0, 0}, {0, 0}};  // independent, for pipelining
        if constexpr (kOne) {
#pragma unroll
            for (int i = 0; i < C; i++) {
                sums[i % 2].mass += pairs[i].mass * row[i];
                sums[i % 2].cost += pairs[i].cost * row[i];
            }
        }
        return sums[0] + sums[1];
    }
};

// What arrives at a state by steps off.
template <class Mode>
__device__ inline Pair<typename Mode::N> arriving(const Course &x, int t, int to, const Lanes<Mode> &lanes, const Held &held) {
    if constexpr (Mode::kPlain)
        if (held.held) return held.sum(lanes.off);
    Pair<typename Mode::N> sum{0, 0};
#pragma unroll 1
    for (int s = 0; s < C; s++)
        if (!x.continues(s, to)) sum = sum + lanes.off[s] * Mode::factor(x, t, s, to);
    return sum;
}

// What goes back to a state from steps off.
template <class Mode>
__device__ inline Pair<typename Mode::N> returning(const Course &x, int t, int s, const Lanes<Mode> &lanes, const Held &held) {
    if constexpr (Mode::kPlain)
        if (held.held) return held.sum(lanes.off_weights);
    Pair<typename Mode::N> sum{0, 0};
#pragma unroll 1
    for (int to = 0; to < C; to++)
        if (!x.continues(s, to)) sum = sum + lanes.off_weights[to] * Mode::factor(x, t, s, to);
    return sum;
}

template <class N>
struct Sums {  // of a lane's states: of labellings in general, and of those that agree with the true chunk
    Pair<N> own[kStates], agreed[kStates];

    template <class Mode>
    __device__ N most() const {
        N most = 0;
        if constexpr (Mode::kPlain)
            for (int k = 0; k < kStates; k++) most = larger(most, larger(own[k].mass + agreed[k].mass, own[k].cost + agreed[k].cost));
        return most;
    }
    __device__ void times(const N &factor) {
        for (int k = 0; k < kStates; k++) {
            own[k] = own[k] * factor;
            if (CHUNKS) agreed[k] = agreed[k] * factor;
        }
    }
};

// The sums of a state at t, from those before.
template <class Mode>
__device__ inline void arrive(const Course &x, int t, int to, int column, const Lanes<Mode> &lanes, const Held &held,
                              Pair<typename Mode::N> &own, Pair<typename Mode::N> &agreed) {
    typedef typename Mode::N N;
    Counts counts = x.at(t, to, column);
    Pair<N> off{1, 0}, on{0, 0}, with{0, 0};
    if (t) off = arriving<Mode>(x, t, to, lanes, held);
    if (t) lanes.each_before(x, to, [&](int s) {
        N factor = Mode::factor(x, t, s, to);
        on = on + lanes.on[s] * factor;
        if (counts.stays) with = with + lanes.agreed[s] * factor;
    });
    N gain = Mode::power(x, t, to);
    off = with_errors(off, counts.off) * (gain * N(counts.factor));
    if (!CHUNKS) {
        own = off;
        return;
    }
    on = with_errors(on, counts.on) * gain;
    own = counts.enters ? on : on + off;
    agreed = counts.enters ? off : with * gain;
}

// Sum up a column; returns whether plain numbers are not enough.
template <class Mode>
__device__ bool forward(const Course &x, int column, Lanes<Mode> &lanes, const Held &held) {
    typedef typename Mode::N N;
    Kept<Mode> kept(x, column);
    Sums<N> now;
    int exponent = 0;
    bool odd = false;
    for (int t = 0; t < x.chain.length; t++) {
        for (int k = 0; k < kStates; k++) {
            int to = lanes.lane + k * kWarp;
            now.own[k] = now.agreed[k] = {0, 0};
            if (to < C) arrive<Mode>(x, t, to, column, lanes, held, now.own[k], now.agreed[k]);
        }
        N most = now.template most<Mode>();
        exponent += Mode::scale(most, [&](double factor) { now.times(N(factor)); });
        __syncwarp();
        for (int k = 0, s = lanes.lane; s < C; k++, s += kWarp) {
            odd |= Mode::is_odd(now.own[k].mass + now.agreed[k].mass);
            kept.put(x, t, s, now.own[k], now.agreed[k]);
            if (t + 1 < x.chain.length)
                lanes.put(x, t + 1, s, now.own[k], now.agreed[k]);
            else
                lanes.off[s] = CHUNKS ? now.own[k] + now.agreed[k] : now.own[k];
        }
        if (lanes.lane == 0) kept.exponents[t] = exponent;
        __syncwarp();
    }
    Pair<N> all{0, 0};
    for (int s = 0; lanes.lane == 0 && s < C; s++) all = all + lanes.off[s];
    if (lanes.lane == 0) {
        Wide mass(all.mass), cost(all.cost);
        double *end = x.ends + column * 4;
        end[0] = mass.part, end[1] = mass.exponent + exponent, end[2] = cost.part, end[3] = cost.exponent + exponent;
    }
    __syncwarp();
    return odd;
}

struct Share {  // how derivatives of a column enter the result: times a factor and a power of 2
    double factor, exponent;

    __device__ double of(const Wide &number) const { return factor * narrow(number, exponent); }
    __device__ double of(double number) const { return number * plain; }
    __device__ void at(double its) { exponent = first + its, plain = scalbn(factor, int(larger(exponent, -4000.0))); }
    double first, plain;
    __device__ Share(double factor, double first) : factor(factor), exponent(first), first(first), plain(0) {}
};

struct Edges {  // derivatives for weights: a table of a warp, or one for each step of all
    double *table;
    int shared;
    double sums[kOne ? C : 1];  // of a lane's column, before the factors

    __device__ Edges(double *table, int shared) : table(table), shared(shared) { clear(); }
    __device__ void clear() {
        for (int s = 0; s < (kOne ? C : 1); s++) sums[s] = 0;
    }
    __device__ double *at(int t) const { return shared ? table : table + int64(t - 1) * C * C; }

    // Steps off, if their factors are held: they come in at the end. Returns whether that is so.
    template <class Mode>
    __device__ bool add_quickly(const Lanes<Mode> &lanes, int to, const Held &held, const Share &share) {
        if constexpr (Mode::kPlain && kOne) {
            if (!held.held) return false;
            Pair<double> rate = lanes.off_weights[to] * share.plain;
#pragma unroll
            for (int s = 0; s < C; s++) sums[s] += product(lanes.off[s], rate);
            return true;
        }
        return false;
    }

    template <class Mode>
    __device__ void add(const Course &x, int t, const Lanes<Mode> &lanes, const Held &held, const Share &share) {
        typedef typename Mode::N N;
        double *its = at(t);
        for (int to = lanes.lane; to < C; to += kWarp) {
            if (!add_quickly<Mode>(lanes, to, held, share))
#pragma unroll 1
                for (int s = 0; s < C; s++)
                    if (!x.continues(s, to)) its[s * C + to] += share.of(product(lanes.off[s], lanes.off_weights[to]) * Mode::factor(x, t, s, to));
            lanes.each_before(x, to, [&](int s) {
                N both = product(lanes.on[s], lanes.on_weights[to]) + product(lanes.agreed[s], lanes.agreed_weights[to]);
                its[s * C + to] += share.of(both * Mode::factor(x, t, s, to));
            });
        }
    }

    __device__ void finish(const Course &x, int lane) {
        if constexpr (kOne)
#pragma unroll
            for (int s = 0; s < C; s++)
                if (shared && lane < C && !x.continues(s, lane)) table[s * C + lane] += sums[s] * x.factors[s * C + lane];
        clear();
        __syncwarp();
    }
};

// The weights of the sums of a state at t - 1, from those of the states at t.
template <class Mode>
__device__ inline void go_back(const Course &x, int t, int s, const Lanes<Mode> &lanes, const Held &held,
                               Pair<typename Mode::N> &own, Pair<typename Mode::N> &agreed) {
    typedef typename Mode::N N;
    Pair<N> off = returning<Mode>(x, t, s, lanes, held), on{0, 0}, with{0, 0};
    lanes.each_after(x, s, [&](int to) {
        N factor = Mode::factor(x, t, s, to);
        on = on + lanes.on_weights[to] * factor;
        with = with + lanes.agreed_weights[to] * factor;
    });
    bool some = is_some(lanes.off[s].mass);  // what nothing leads to has no weight, whatever follows
    own = some ? off + on : Pair<N>{0, 0};
    if (!CHUNKS) return;
    Pair<N> rest = x.goes_on(t) ? with : before_errors(on, x.beyond());
    agreed = some ? before_errors(off, x.cut(t)) + rest : Pair<N>{0, 0};
}

// Put the weights of a state at t where all lanes see them, as they are before what t counts.
template <class Mode>
__device__ inline void put_weights(const Course &x, int t, int s, int column, const Lanes<Mode> &lanes,
                                   const Pair<typename Mode::N> &own, const Pair<typename Mode::N> &agreed) {
    typedef typename Mode::N N;
    Counts counts = x.at(t, s, column);
    N gain = Mode::power(x, t, s);
    lanes.off_weights[s] = before_errors(CHUNKS && counts.enters ? agreed : own, counts.off) * (gain * N(counts.factor));
    if (!CHUNKS) return;
    lanes.on_weights[s] = before_errors(own, counts.on) * gain;
    lanes.agreed_weights[s] = counts.stays ? agreed * gain : Pair<N>{0, 0};
}

// Derivatives of a column; `nodes` gets those of nodes added, or replaced if it is the warp's `first` one.
template <class Mode>
__device__ void backward(const Course &x, int column, Lanes<Mode> &lanes, const Held &held, Share share, Edges &edges, double *nodes, bool first) {
    typedef typename Mode::N N;
    Kept<Mode> kept(x, column);
    Sums<N> weights, sums, before;
    int exponent = 0, last = x.chain.length - 1;
    auto load = [&](int t, Sums<N> &into) {
        for (int k = 0, s = lanes.lane; t >= 0 && s < C; k++, s += kWarp) kept.get(x, t, s, into.own[k], into.agreed[k]);
    };
    for (int k = 0; k < kStates; k++) weights.own[k] = weights.agreed[k] = column ? Pair<N>{0, 1} : Pair<N>{1, 0};
    load(last, sums);
    for (int t = last;; t--) {
        load(t - 1, before);
        share.at(exponent + kept.exponents[t]);
        for (int k = 0, s = lanes.lane; s < C; k++, s += kWarp) {
            N its = product(sums.own[k], weights.own[k]);
            if (CHUNKS) its = its + product(sums.agreed[k], weights.agreed[k]);
            nodes[t * C + s] = (first ? 0 : nodes[t * C + s]) + share.of(its);
        }
        if (t == 0) return;
        __syncwarp();
        for (int k = 0, s = lanes.lane; s < C; k++, s += kWarp) {
            put_weights<Mode>(x, t, s, column, lanes, weights.own[k], weights.agreed[k]);
            lanes.put(x, t, s, before.own[k], before.agreed[k]);
        }
        __syncwarp();
        share.at(exponent + kept.exponents[t - 1]);
        edges.add<Mode>(x, t, lanes, held, share);
        for (int k = 0; k < kStates; k++) {
            weights.own[k] = weights.agreed[k] = {0, 0};
            if (lanes.lane + k * kWarp < C) go_back<Mode>(x, t, lanes.lane + k * kWarp, lanes, held, weights.own[k], weights.agreed[k]);
        }
        N most = weights.template most<Mode>();
        exponent += Mode::scale(most, [&](double factor) { weights.times(N(factor)); });
        sums = before;
    }
}
