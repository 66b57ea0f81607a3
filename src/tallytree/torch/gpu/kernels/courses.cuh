// Passes over a sentence for expected losses that are quotients of counts: sums of weights, and of weights times errors.
//
// Such a loss is errors(y) / (c + k(y)). Errors add up over the positions of a labelling, and so does k, which counts nodes or chunks.
// Numbers x, w with sum w x^k = 1 / (c + k) for each possible k turn its mean into sums over plain chains, one for each x:
// sum w sum_y p(y) errors(y) x^k(y). Everything is positive, so nothing cancels.
//
// Chunks: a step is "on" if it continues a chunk, and else "off", with an x if it begins one. Labellings that agree with the
// true chunk from its first position on are summed up apart: what is wrong with their last chunk is not known yet.
#pragma once
#include "factors.cuh"
#include "looking.cuh"
#include "wide.cuh"

constexpr bool kSmall = C <= 32;  // tables of derivatives for weights are in shared memory
constexpr int kKept = CHUNKS ? 4 : 2;  // numbers of a state that are kept for the way back

struct Quotient {          // how a loss counts
    const double *errors;  // of each label, for each true tag; unused for chunks
    const int *counted;    // the same for k, 0 or 1
    const int *marks;      // CHUNKS: as in `Batch`
    const int *types;      // CHUNKS: the type of each label, -1 outside
    const unsigned *goes_on;
    double missed;       // CHUNKS: the error of a true chunk that is missed; that of a wrong one is 1
    const double *rules;  // rows: the number of x, all x, all w
    const int *which;     // the row of each sentence
    int width;            // of a row
};

// What is known about a label at a position, as bits: whether it is counted in k; whether steps off begin to agree with the true
// chunk, whether agreeing steps on go on with it, whether either is so; and for all labels, whether a true chunk begins, has ended
// just before, or goes on.
constexpr int kCounted = 1, kEnters = 2, kStays = 4, kAgrees = 8, kBegins = 16, kCut = 32, kGoesOn = 64;

template <class N>
struct alignas(16) Pair {  // the sum of weights, and of weights times errors; or the weight of each of the two in a result
    N mass, cost;
};
template <class N>
__device__ inline Pair<N> operator+(const Pair<N> &a, const Pair<N> &b) { return {a.mass + b.mass, a.cost + b.cost}; }
template <class N>
__device__ inline Pair<N> operator*(const Pair<N> &a, const N &b) { return {a.mass * b, a.cost * b}; }
template <class N>  // with more errors
__device__ inline Pair<N> with_errors(const Pair<N> &a, double count) { return {a.mass, a.cost + a.mass * N(count)}; }
template <class N>  // the weights of sums that are given more errors
__device__ inline Pair<N> before_errors(const Pair<N> &a, double count) { return {a.mass + a.cost * N(count), a.cost}; }
template <class N>
__device__ inline N product(const Pair<N> &a, const Pair<N> &b) { return a.mass * b.mass + a.cost * b.cost; }

struct Course {  // one sentence
    Chain chain;
    const Quotient *counts;
    const int64 *tags;
    const int *marks;
    const double *rule;
    double *powers, *factors;  // exponentials of nodes and weights, relative to the largest
    double *errors;            // of each label at each position, for steps off
    int *flags;                // of the same
    double *kept, *ends;       // of each column: what is kept of its positions, and its sums

    __device__ int columns() const { return 1 + int(rule[0]); }  // the first one has x = 1
    __device__ double x(int column) const { return column ? rule[column] : 1; }
    __device__ double weight(int column) const { return rule[columns() - 1 + column]; }
    __device__ double *factors_of(int t) const { return chain.all->shared ? factors : factors + int64(t - 1) * C * C; }
    __device__ bool continues(int s, int to) const { return CHUNKS && counts->goes_on[s * ((C + 31) / 32) + to / 32] >> to % 32 & 1; }

    // The errors of agreeing labellings whose last chunk is cut, and of those whose last chunk goes on beyond the true one;
    // of a true chunk that begins and is missed.
    __device__ double cut(int flags) const { return flags & kCut ? 0 : 1 + counts->missed; }
    __device__ double beyond() const { return 1 + counts->missed; }
    __device__ double missed(int flags) const { return flags & kBegins ? counts->missed : 0; }

    __device__ void note(int t, int s) const {
        int place = t * C + s;
        if (!CHUNKS) {
            int tag = unsigned(tags[t]) < unsigned(C) ? int(tags[t]) : 0;  // others are an error, told elsewhere
            errors[place] = counts->errors[tag * C + s], flags[place] = counts->counted[tag * C + s];
            return;
        }
        const int *its = marks + t * (1 + CHUNKS);
        bool begins = its[0] & 1, inside = its[1] >= 0, agrees = false, some = counts->types[s] >= 0;
        for (int i = 0; i < CHUNKS; i++) agrees |= its[1 + i] == s;
        int all = (begins ? kBegins : 0) | (its[0] & 2 ? kCut : 0) | (inside && !begins ? kGoesOn : 0);
        int own = (some ? kCounted : 0) | (!agrees ? 0 : begins ? kAgrees | kEnters : kAgrees | kStays);
        errors[place] = own & kEnters ? 0 : missed(all) + some, flags[place] = own | all;
    }
};

// Plain products, scaled at each position, unless numbers are odd: see factors.cuh.
struct Plain {
    typedef double N;
    static constexpr bool kPlain = true;

    static __device__ double factor(const Course &x, int t, int s, int to) { return x.factors_of(t)[s * C + to]; }
    static __device__ double power(const Course &x, int t, int s) { return x.powers[t * C + s]; }
    // Scale by a power of 2, by a warp; returns the exponent that is taken off. `most`: the largest number of a lane.
    template <class Each>
    static __device__ int scale(double most, Each each) {
        int exponent = largest_exponent(most);
        if (exponent < -1022) return 0;
        each(power_of_two(-exponent));
        return exponent;
    }
    static __device__ bool is_odd(double number) { return is_small(number); }
};

// Numbers of any size.
struct Careful {
    typedef Wide N;
    static constexpr bool kPlain = false;

    static __device__ Wide factor(const Course &x, int t, int s, int to) { return wide_power(double(x.chain.step(t)[s * C + to])); }
    static __device__ Wide power(const Course &x, int t, int s) { return wide_power(x.chain.node(t, s)); }
    template <class Each>
    static __device__ int scale(const Wide &, Each) { return 0; }
    static __device__ bool is_odd(const Wide &) { return false; }
};

template <class Mode>
struct Place {  // a label at a position, read before it is needed
    typename Mode::N power = 0;
    double errors = 0;
    int flags = 0;

    Place() = default;
    __device__ Place(const Course &x, int t, int s) {
        if (unsigned(t) >= unsigned(x.chain.length) || s >= C) return;
        power = Mode::power(x, t, s), errors = x.errors[t * C + s], flags = x.flags[t * C + s];
    }
};

template <class Mode>
struct Lanes {  // shared memory of a warp: what all lanes have, for steps off, steps on, and steps on of agreeing labellings
    typedef Pair<typename Mode::N> Its;
    Its *off, *on, *agreed;                    // before a step
    Its *off_weights, *on_weights, *agreed_weights;  // after it
    unsigned before = 0, after = 0;  // kOne: the labels before and after the lane's own in steps on
    int lane;

    __device__ Lanes(unsigned char *memory, const Course &x, int lane) : lane(lane) {
        off = reinterpret_cast<Its *>(memory), off_weights = off + C;
        on = off_weights + C, on_weights = on + C, agreed = on_weights + C, agreed_weights = agreed + C;
        for (int s = 0; CHUNKS && kOne && lane < C && s < C; s++) {
            before |= unsigned(x.continues(s, lane)) << s;
            after |= unsigned(x.continues(lane, s)) << s;
        }
    }
    static constexpr int kBytes = (CHUNKS ? 6 : 2) * C * 32;

    // Put the sums of a state where all lanes see them, for a step into a position with some flags.
    __device__ void put(const Course &x, int flags, int s, const Its &own, const Its &agreeing) {
        off[s] = CHUNKS ? own + with_errors(agreeing, x.cut(flags)) : own;
        if (!CHUNKS) return;
        on[s] = flags & kGoesOn ? own : own + with_errors(agreeing, x.beyond());
        agreed[s] = agreeing;
    }
    template <class Visit>
    __device__ void each_before(const Course &x, int to, Visit visit) const {
        if (kOne)
            for (unsigned rest = before; rest; rest &= rest - 1) visit(__ffs(rest) - 1);
        else
            for (int s = 0; CHUNKS && s < C; s++)
                if (x.continues(s, to)) visit(s);
    }
    template <class Visit>
    __device__ void each_after(const Course &x, int s, Visit visit) const {
        if (kOne)
            for (unsigned rest = after; rest; rest &= rest - 1) visit(__ffs(rest) - 1);
        else
            for (int to = 0; CHUNKS && to < C; to++)
                if (x.continues(s, to)) visit(to);
    }
};

template <class Mode>
struct Kept {  // what a column keeps of a position, by lane
    typedef Pair<typename Mode::N> Its;
    Its *places;
    double *exponents;

    __device__ Kept(const Course &x, int column) {
        int positions = x.chain.all->positions;
        double *first = x.kept + int64(column) * positions * (2 * kKept * C + 2);
        exponents = first + 2 * kKept * C * positions;
        places = reinterpret_cast<Its *>(first);
    }
    __device__ void put(int flags, int t, int s, const Its &own, const Its &agreeing) const {
        places[t * (kKept / 2) * C + s] = own;
        if (CHUNKS && flags & kAgrees) places[(t * (kKept / 2) + 1) * C + s] = agreeing;
    }
    __device__ void get(int flags, int t, int s, Its &own, Its &agreeing) const {
        own = places[t * (kKept / 2) * C + s];
        agreeing = {0, 0};
        if (CHUNKS && flags & kAgrees) agreeing = places[(t * (kKept / 2) + 1) * C + s];
    }
};
