// A column of a sentence from left to right, and back: its sums, and the derivatives of the expected loss.
#pragma once
#include "courses.cuh"

// The factors of steps off into a lane's state, or out of it.
__device__ inline Held held_of(const Course &x, int lane, bool into, bool plain) {
    return Held(plain && x.chain.all->shared ? x.factors : nullptr, into, lane, [&](int s, int to) { return x.continues(s, to); });
}

// What arrives at a state by steps off.
template <class Mode>
__device__ inline Pair<typename Mode::N> arriving(const Course &x, int t, int to, const Lanes<Mode> &lanes, const Held &held) {
    if constexpr (Mode::kPlain)
        if (held.held) return held.sum<2>(lanes.off);
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
        if (held.held) return held.sum<2>(lanes.off_weights);
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

// The sums of a state at t, from those before; `x_of`: the x of the column.
template <class Mode>
__device__ inline void arrive(const Course &x, int t, int to, double x_of, const Lanes<Mode> &lanes, const Held &held,
                              const Place<Mode> &place, Pair<typename Mode::N> &own, Pair<typename Mode::N> &agreed) {
    typedef typename Mode::N N;
    Pair<N> off{1, 0}, on{0, 0}, with{0, 0};
    if (t) off = arriving<Mode>(x, t, to, lanes, held);
    if (t) lanes.each_before(x, to, [&](int s) {
        N factor = Mode::factor(x, t, s, to);
        on = on + lanes.on[s] * factor;
        if (place.flags & kStays) with = with + lanes.agreed[s] * factor;
    });
    off = with_errors(off, place.errors) * (place.power * N(place.flags & kCounted ? x_of : 1));
    if (!CHUNKS) {
        own = off;
        return;
    }
    on = with_errors(on, x.missed(place.flags)) * place.power;
    own = place.flags & kEnters ? on : on + off;
    agreed = place.flags & kEnters ? off : with * place.power;
}

// Write down the sums of a column.
template <class Mode>
__device__ inline void end(const Course &x, int column, const Lanes<Mode> &lanes, int exponent) {
    Pair<typename Mode::N> all{0, 0};
    if (lanes.lane) return;
    for (int s = 0; s < C; s++) all = all + lanes.off[s];
    Wide mass(all.mass), cost(all.cost);
    double *its = x.ends + column * 4;
    its[0] = mass.part, its[1] = mass.exponent + exponent, its[2] = cost.part, its[3] = cost.exponent + exponent;
}

// Sum up a column; returns whether plain numbers are not enough.
template <class Mode>
__device__ bool forward(const Course &x, int column, Lanes<Mode> &lanes, const Held &held) {
    typedef typename Mode::N N;
    Kept<Mode> kept(x, column);
    Sums<N> now;
    Place<Mode> places[kStates], next[kStates];
    int exponent = 0;
    double x_of = x.x(column);
    bool odd = false;
    for (int k = 0; k < kStates; k++) next[k] = Place<Mode>(x, 0, lanes.lane + k * kWarp);
    for (int t = 0; t < x.chain.length; t++) {
        for (int k = 0; k < kStates; k++) {
            int to = lanes.lane + k * kWarp;
            places[k] = next[k], next[k] = Place<Mode>(x, t + 1, to);
            now.own[k] = now.agreed[k] = {0, 0};
            if (to < C) arrive<Mode>(x, t, to, x_of, lanes, held, places[k], now.own[k], now.agreed[k]);
        }
        N most = now.template most<Mode>();
        exponent += Mode::scale(most, [&](double factor) { now.times(N(factor)); });
        __syncwarp();
        for (int k = 0, s = lanes.lane; s < C; k++, s += kWarp) {
            odd |= Mode::is_odd(now.own[k].mass + now.agreed[k].mass);
            kept.put(places[k].flags, t, s, now.own[k], now.agreed[k]);
            lanes.put(x, t + 1 < x.chain.length ? next[k].flags : kCut, s, now.own[k], now.agreed[k]);  // a true chunk ends there
        }
        if (lanes.lane == 0) kept.exponents[t] = exponent;
        __syncwarp();
    }
    end<Mode>(x, column, lanes, exponent);
    __syncwarp();
    return odd;
}

struct Share {  // how derivatives of a column enter the result: times a factor and a power of 2
    double factor, first;      // the power
    double exponent, plain;  // with that of a position, and both as one number

    __device__ Share(double factor, double first) : factor(factor), first(first), exponent(first), plain(0) {}
    __device__ double of(const Wide &number) const { return factor * narrow(number, exponent); }
    __device__ double of(double number) const { return number * plain; }
    __device__ void at(double its) {
        exponent = first + its;
        plain = factor * power_of_two(int(exponent < -1022 ? -1022 : exponent));
    }
};

struct Edges {  // derivatives for weights: a table of a warp, or one for each step of all
    double *table;
    int shared;
    double sums[kOne ? C : 1];  // of a lane's column, before the factors

    __device__ Edges(double *table, int shared) : table(table), shared(shared) {
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

    // Without steps, factors are not known.
    __device__ void finish(const Course &x, int lane) {
        const bool steps = shared && x.chain.all->positions > 1;
        if constexpr (kOne)
#pragma unroll
            for (int s = 0; s < C; s++)
                if (steps && lane < C && !x.continues(s, lane)) table[s * C + lane] += sums[s] * x.factors[s * C + lane];
        __syncwarp();
    }
};

// The weights of the sums of a state at t - 1, from those of the states at t.
template <class Mode>
__device__ inline void go_back(const Course &x, int t, int s, int flags, const Lanes<Mode> &lanes, const Held &held,
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
    Pair<N> rest = flags & kGoesOn ? with : before_errors(on, x.beyond());
    agreed = some ? before_errors(off, x.cut(flags)) + rest : Pair<N>{0, 0};
}

// Put the weights of a state at t where all lanes see them, as they are before what t counts.
template <class Mode>
__device__ inline void put_weights(const Course &x, int s, double x_of, const Place<Mode> &place, const Lanes<Mode> &lanes,
                                   const Pair<typename Mode::N> &own, const Pair<typename Mode::N> &agreed) {
    typedef typename Mode::N N;
    N gain = place.power * N(place.flags & kCounted ? x_of : 1);
    lanes.off_weights[s] = before_errors(CHUNKS && place.flags & kEnters ? agreed : own, place.errors) * gain;
    if (!CHUNKS) return;
    lanes.on_weights[s] = before_errors(own, x.missed(place.flags)) * place.power;
    lanes.agreed_weights[s] = place.flags & kStays ? agreed * place.power : Pair<N>{0, 0};
}

// Derivatives of a column; `nodes` gets those of nodes added, or replaced if it is the warp's `first` one.
template <class Mode>
__device__ void backward(const Course &x, int column, Lanes<Mode> &lanes, const Held &held, Share share, Edges &edges, double *nodes, bool first) {
    typedef typename Mode::N N;
    Kept<Mode> kept(x, column);
    Sums<N> weights, sums, before, next;  // of t, and of the two positions before, read a step ahead
    Place<Mode> here[kStates], prior[kStates];
    int flags[kStates];  // of the position before these
    int exponent = 0, last = x.chain.length - 1;
    double x_of = x.x(column);
    auto load = [&](int t, int k, int s, int flags, Sums<N> &into) {
        if (t >= 0 && s < C) kept.get(flags, t, s, into.own[k], into.agreed[k]);
    };
    auto flags_at = [&](int t, int s) { return CHUNKS && t >= 0 && s < C ? x.flags[t * C + s] : 0; };
    for (int k = 0; k < kStates; k++) {
        int s = lanes.lane + k * kWarp;
        here[k] = Place<Mode>(x, last, s), prior[k] = Place<Mode>(x, last - 1, s), flags[k] = flags_at(last - 2, s);
        weights.own[k] = weights.agreed[k] = column ? Pair<N>{0, 1} : Pair<N>{1, 0};
        load(last, k, s, here[k].flags, sums), load(last - 1, k, s, prior[k].flags, before);
    }
    for (int t = last;; t--) {
        double before_it = t ? kept.exponents[t - 1] : 0;
        share.at(exponent + kept.exponents[t]);
        for (int k = 0, s = lanes.lane; s < C; k++, s += kWarp) {
            load(t - 2, k, s, flags[k], next);
            N its = product(sums.own[k], weights.own[k]);
            if (CHUNKS) its = its + product(sums.agreed[k], weights.agreed[k]);
            nodes[t * C + s] = (first ? 0 : nodes[t * C + s]) + share.of(its);
        }
        if (t == 0) return;
        __syncwarp();
        for (int k = 0, s = lanes.lane; s < C; k++, s += kWarp) {
            put_weights<Mode>(x, s, x_of, here[k], lanes, weights.own[k], weights.agreed[k]);
            lanes.put(x, here[k].flags, s, before.own[k], before.agreed[k]);
        }
        __syncwarp();
        share.at(exponent + before_it);
        edges.add<Mode>(x, t, lanes, held, share);
        for (int k = 0; k < kStates; k++) {
            int s = lanes.lane + k * kWarp, its = here[k].flags;
            here[k] = prior[k], prior[k] = Place<Mode>(x, t - 2, s), flags[k] = flags_at(t - 3, s);
            weights.own[k] = weights.agreed[k] = {0, 0};
            if (s < C) go_back<Mode>(x, t, s, its, lanes, held, weights.own[k], weights.agreed[k]);
        }
        N most = weights.template most<Mode>();
        exponent += Mode::scale(most, [&](double factor) { weights.times(N(factor)); });
        sums = before, before = next;
    }
}
