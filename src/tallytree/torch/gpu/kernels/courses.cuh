// Passes over a sentence for expected losses that are quotients of counts: sums of weights, and of weights times errors.
//
// Such a loss is errors(y) / (c + k(y)). Errors add up over the positions of a labelling, and so does k, which counts nodes or chunks.
// Numbers x, w with sum w x^k = 1 / (c + k) for each possible k turn its mean into sums over plain chains, one for each x:
// sum w sum_y p(y) errors(y) x^k(y). Everything is positive, so nothing cancels.
//
// Chunks: a step is "on" if it continues a chunk, and else "off", with an x if it begins one. Labellings that agree with the
// true chunk from its first position on are summed up apart: what is wrong with their last chunk is not known yet.
#pragma once
#include "looking.cuh"
#include "wide.cuh"

constexpr int kStates = (C + kWarp - 1) / kWarp;  // states of one lane: lane, lane + 32, ...
constexpr bool kOne = kStates == 1;
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

struct Counts {  // what a position counts for a label: for steps off, and for steps on
    double factor, off, on;
    bool enters, stays;  // whether steps off begin to agree with the true chunk, and whether it goes on here
};

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
    double *kept, *ends;       // of each column: what is kept of its positions, and its sums

    __device__ int columns() const { return 1 + int(rule[0]); }  // the first one has x = 1
    __device__ double x(int column) const { return column ? rule[column] : 1; }
    __device__ double weight(int column) const { return rule[columns() - 1 + column]; }
    __device__ double *factors_of(int t) const { return chain.all->shared ? factors : factors + int64(t - 1) * C * C; }

    __device__ int mark(int t) const { return marks[t * (1 + CHUNKS)]; }
    __device__ bool begins(int t) const { return CHUNKS && mark(t) & 1; }
    __device__ bool ended(int t) const { return CHUNKS && mark(t) & 2; }
    __device__ bool is_inside(int t) const { return CHUNKS && marks[t * (1 + CHUNKS) + 1] >= 0; }
    __device__ bool goes_on(int t) const { return is_inside(t) && !begins(t); }
    __device__ bool continues(int s, int to) const { return CHUNKS && counts->goes_on[s * ((C + 31) / 32) + to / 32] >> to % 32 & 1; }
    __device__ bool is_of_type(int t, int s) const {
        for (int i = 0; i < CHUNKS; i++)
            if (marks[t * (1 + CHUNKS) + 1 + i] == s) return true;
        return false;
    }

    __device__ Counts at(int t, int s, int column) const {
        if (!CHUNKS) {
            int tag = unsigned(tags[t]) < unsigned(C) ? int(tags[t]) : 0, place = tag * C + s;  // others are an error, told elsewhere
            return {counts->counted[place] ? x(column) : 1, counts->errors[place], 0, false, false};
        }
        bool first = begins(t), agrees = is_of_type(t, s), some = counts->types[s] >= 0, enters = first && agrees;
        double missed = first ? counts->missed : 0;
        return {some ? x(column) : 1, enters ? 0 : missed + some, missed, enters, agrees && !first};
    }
    // The errors of agreeing labellings whose last chunk is cut before t, and of those whose last chunk goes on beyond the true one.
    __device__ double cut(int t) const { return ended(t) ? 0 : 1 + counts->missed; }
    __device__ double beyond() const { return 1 + counts->missed; }
};

// Plain products, scaled at each position. What is not 0 must stay far from underflow: `odd` says otherwise.
struct Plain {
    typedef double N;
    static constexpr bool kPlain = true;
    static constexpr double kLeast = 1e-120, kMostSpread = 300;  // exp(-300) * 1e-120 is 1e-250

    static __device__ double factor(const Course &x, int t, int s, int to) { return x.factors_of(t)[s * C + to]; }
    static __device__ double power(const Course &x, int t, int s) { return x.powers[t * C + s]; }
    // Scale by a power of 2, by a warp; returns the exponent that is taken off. `most`: the largest number of a lane.
    template <class Each>
    static __device__ int scale(double most, Each each) {
        most = largest_in_warp(most);
        int exponent = most > 0 ? ilogb(most) : 0;
        each(scalbn(1.0, -exponent));
        return exponent;
    }
    static __device__ bool is_odd(double number) { return number > 0 && number < kLeast; }
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

    // Put the sums of a state where all lanes see them, for the step into t.
    __device__ void put(const Course &x, int t, int s, const Its &own, const Its &agreeing) {
        off[s] = CHUNKS ? own + with_errors(agreeing, x.cut(t)) : own;
        if (!CHUNKS) return;
        on[s] = x.goes_on(t) ? own : own + with_errors(agreeing, x.beyond());
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
    __device__ void put(const Course &x, int t, int s, const Its &own, const Its &agreeing) const {
        places[t * (kKept / 2) * C + s] = own;
        if (CHUNKS && x.is_of_type(t, s)) places[(t * (kKept / 2) + 1) * C + s] = agreeing;
    }
    __device__ void get(const Course &x, int t, int s, Its &own, Its &agreeing) const {
        own = places[t * (kKept / 2) * C + s];
        agreeing = {0, 0};
        if (CHUNKS && x.is_of_type(t, s)) agreeing = places[(t * (kKept / 2) + 1) * C + s];
    }
};
