#include "kernels/chain_pass.h"

#include "kernels/tree_step.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

INLINE void price(const ChainStretch &c, Int t, Int k, Real *to) {
    store(to + k, load(c.message + k) + load(c.prices + c.kinds[t] * c.width + k));
}

// One number of a row, everywhere.
template <int S>
INLINE Vector lane(Vector v) {
    if constexpr (W == 8) return __builtin_shufflevector(v, v, S, S, S, S, S, S, S, S);
    else if constexpr (W == 4) return __builtin_shufflevector(v, v, S, S, S, S);
    else return __builtin_shufflevector(v, v, S, S);
}

constexpr int kPieces = 8 / W;  // of a row of 8

// The most from some states of a row on, before END, and the first of them that it comes from.
template <int S, int END>
INLINE void most_of(const Vector *row, const Real *link, Vector *most, Bits *from) {
    if constexpr (S < END) {
        const Vector x = lane<S % W>(row[S / W]);
        for (int k = 0; k < kPieces; k++) {
            const Vector sum = x + load(link + 8 * S + k * W);
            from[k] = sum > most[k] ? Bits{} + S : from[k];
            most[k] = max(most[k], sum);
        }
        most_of<S + 1, END>(row, link, most, from);
    }
}

// Rows of 8 numbers: the message stays in registers, and where the most comes from is found on the side.
template <int STATES>
void pass_eight(const ChainStretch &c) {
    constexpr int HALF = (STATES + 1) / 2;
    Vector message[kPieces];
    for (int k = 0; k < kPieces; k++) message[k] = load(c.message + k * W);
    for (Int t = 0; t < c.count; t++) {
        Vector row[kPieces], most[kPieces], other[kPieces];
        Bits from[kPieces], later[kPieces];
        for (int k = 0; k < kPieces; k++) {
            row[k] = message[k] + load(c.prices + c.kinds[t] * 8 + k * W);
            store(c.priced + 8 * t + k * W, row[k]);
            most[k] = other[k] = nothing();
            from[k] = later[k] = Bits{};
        }
        most_of<0, HALF>(row, c.links[t], most, from);
        most_of<HALF, STATES>(row, c.links[t], other, later);
        for (int k = 0; k < kPieces; k++) {
            from[k] = other[k] > most[k] ? later[k] : from[k];
            message[k] = max(most[k], other[k]) + load(c.late + t * c.late_stride + k * W);
            *reinterpret_cast<Bytes *>(c.from + 8 * t + k * W) = __builtin_convertvector(from[k], Bytes);
        }
    }
    for (int k = 0; k < kPieces; k++) store(c.message + k * W, message[k]);
}

// Rows of 8·B numbers stay in registers.
template <int STATES>
void pass_rows(const ChainStretch &c) {
    constexpr int B = (STATES + 7) / 8, K = 8 * B / W;
    const Int width = 8 * B;
    Vector message[K];
    for (int k = 0; k < K; k++) message[k] = load(c.message + k * W);
    for (Int t = 0; t < c.count; t++) {
        Real *row = c.priced + t * width;
        const Real *link = c.links[t], *late = c.late + t * c.late_stride, *prices = c.prices + c.kinds[t] * width;
        for (int k = 0; k < K; k++) store(row + k * W, message[k] + load(prices + k * W));
        Vector even[K], odd[K];
        for (int k = 0; k < K; k++) even[k] = odd[k] = nothing();
#pragma GCC unroll 12
        for (int s = 0; s + 1 < STATES; s += 2, link += 2 * width) {
            const Vector x = splat(row[s]), y = splat(row[s + 1]);
            for (int k = 0; k < K; k++) {
                even[k] = max(even[k], x + load(link + k * W));
                odd[k] = max(odd[k], y + load(link + width + k * W));
            }
        }
        if constexpr (STATES % 2) {
            const Vector x = splat(row[STATES - 1]);
            for (int k = 0; k < K; k++) even[k] = max(even[k], x + load(link + k * W));
        }
        for (int k = 0; k < K; k++) message[k] = max(even[k], odd[k]) + load(late + k * W);
    }
    for (int k = 0; k < K; k++) store(c.message + k * W, message[k]);
}

// Unrolled for the number of states, which is at least this one.
template <int STATES>
void pass_unrolled(const ChainStretch &c) {
    if constexpr (STATES < 24)
        if (c.states > STATES) return pass_unrolled<STATES + 1>(c);
    if constexpr (STATES <= 8) pass_eight<STATES>(c);
    else pass_rows<STATES>(c);
}

// Any width, 8 numbers at a time.
void pass_any(const ChainStretch &c) {
    constexpr int K = 8 / W;
    for (Int t = 0; t < c.count; t++) {
        Real *row = c.priced + t * c.width;
        for (Int k = 0; k < c.width; k += W) price(c, t, k, row);
        for (Int at = 0; at < c.width; at += 8) {
            Vector best[K];
            for (int k = 0; k < K; k++) best[k] = nothing();
            for (Int s = 0; s < c.states; s++) {
                const Vector x = splat(row[s]);
                for (int k = 0; k < K; k++) best[k] = max(best[k], x + load(c.links[t] + s * c.width + at + k * W));
            }
            for (int k = 0; k < K; k++)
                store(c.message + at + k * W, best[k] + load(c.late + t * c.late_stride + at + k * W));
        }
    }
}

void pass(const ChainStretch &c) {
    switch (c.width) {
        case 8:
            return pass_unrolled<1>(c);
        case 16:
        case 24:
            return pass_unrolled<9>(c);
        default:
            return pass_any(c);
    }
}

INLINE Real largest_of(const Real *x) {
    Real a[4];
    for (int i = 0; i < 4; i++) a[i] = x[i] > x[i + 4] ? x[i] : x[i + 4];
    const Real b = a[0] > a[1] ? a[0] : a[1], c = a[2] > a[3] ? a[2] : a[3];
    return b > c ? b : c;
}

// The largest number of a vector, everywhere.
template <class V>
INLINE V most_everywhere(V v) {
    if constexpr (W == 8) {
        v = max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
        v = max(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
        return max(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6));
    } else if constexpr (W == 4) {
        v = max(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
        return max(v, __builtin_shufflevector(v, v, 1, 0, 3, 2));
    } else {
        return max(v, __builtin_shufflevector(v, v, 1, 0));
    }
}

// From the last position to the first, in parts that need not wait for each other: each begins with any state behind
// it, and is put right afterwards, down to where both ways meet. That is soon, as a rule.
template <class Step>
INLINE void back_in_parts(const ChainBack &c, const Step &step) {
    constexpr Int kParts = 4;
    const Int part = c.count / kParts;
    Int next = c.next, nexts[kParts] = {};
    for (Int t = c.count; t-- > kParts * part;) c.states[t] = static_cast<std::int32_t>(next = step(t, next));
    nexts[kParts - 1] = next;
    for (Int i = 1; i <= part; i++)
        for (Int j = 0; j < kParts; j++) {
            const Int t = (j + 1) * part - i;
            c.states[t] = static_cast<std::int32_t>(nexts[j] = step(t, nexts[j]));
        }
    for (Int j = kParts - 1; j > 0 && part > 0; j--) {
        next = c.states[j * part];
        for (Int t = j * part; t-- > 0;) {
            next = step(t, next);
            if (c.states[t] == next) break;
            c.states[t] = static_cast<std::int32_t>(next);
        }
    }
}

constexpr Int kAhead = 8;  // rows

// Rows of 8·B numbers stay in registers, and nothing has to be foreseen.
template <int B>
void back_rows(const ChainBack &c) {
    constexpr int K = 8 * B / W;
    const Int width = 8 * B;
    back_in_parts(c, [&](Int t, Int next) __attribute__((always_inline)) {
        const Real *x = c.priced + t * width, *link = c.links[t] + next * width;
        for (int b = 0; b < B; b++)
            __builtin_prefetch(x - kAhead * width + 8 * b);  // there may be more than the cache holds
        Vector sums[K], most = nothing();
        for (int k = 0; k < K; k++) {
            sums[k] = load(x + k * W) + load(link + k * W);
            most = max(most, sums[k]);
        }
        most = most_everywhere(most);
        Int found = width;
        for (int k = K; k-- > 0;) {
            const std::uint64_t equal = bytes_of(sums[k] == most);
            const Int first = k * W + __builtin_ctzll(equal | std::uint64_t{1} << 63) / 8;
            Int there = -static_cast<Int>(equal != 0);
            HIDE(there);  // or the compiler makes a branch of it
            found ^= (found ^ first) & there;
        }
        return found;
    });
}

// Eight numbers at a time; which of them it is, without a branch that could not be foreseen.
void back_any(const ChainBack &c) {
    const Int width = c.width;
    back_in_parts(c, [&](Int t, Int next) __attribute__((always_inline)) {
        const Real *x = c.priced + t * width, *link = c.links[t] + next * width;
        Real best = -static_cast<Real>(__builtin_inf()), chosen[8], sums[8];
        for (int i = 0; i < 8; i++) chosen[i] = best;
        Int from = 0;
        for (Int at = 0; at < width; at += 8) {
            for (int i = 0; i < 8; i += W) store(sums + i, load(x + at + i) + load(link + at + i));
            const Real most = largest_of(sums);
            const bool better = most > best;
            best = better ? most : best;
            from = better ? at : from;
            if (better)
                for (int i = 0; i < 8; i += W) store(chosen + i, load(sums + i));
        }
        unsigned equal = 0;
        for (unsigned i = 0; i < 8; i++) equal |= static_cast<unsigned>(chosen[i] == best) << i;
        return from + __builtin_ctz(equal);
    });
}

void back(const ChainBack &c) {
    switch (c.width) {
        case 16:
            return back_rows<2>(c);
        case 24:
            return back_rows<3>(c);
        default:
            return back_any(c);
    }
}

// ---- reading a model ---------------------------------------------------------------------------------------------

double sizes(const double *rows, Int count, Int stride, Int states) {
    const Real infinity = static_cast<Real>(__builtin_inf());
    Real sum = 0;
    for (Int t = 0; t < count; t++, rows += stride) {
        Vector most{};
        Int s = 0;
        for (; s + W <= states; s += W) {
            const Vector x = load(rows + s), size = max(x, -x);
            most = max(most, size < infinity ? size : Vector{});
        }
        Real largest = 0;
        for (; s < states; s++) {
            const Real size = __builtin_fabs(rows[s]), there = size < infinity ? size : 0;
            largest = largest > there ? largest : there;
        }
        if (states >= W)
            for (int k = 0; k < W; k++) largest = largest > most[k] ? largest : most[k];
        sum += largest;
    }
    return sum;
}

void digest(const ChainCounts &c, const std::uint64_t *odd, std::uint64_t *sums) {
    for (Int t = 0; t < c.count; t++) {
        const std::int64_t *row = c.counts + t * c.stride;
        std::uint64_t sum = 0;
        for (Int s = 0; s < c.states; s++) sum += static_cast<std::uint64_t>(row[s]) * odd[s];
        sums[t] += sum;
    }
}

bool same(const ChainCounts &c, const std::int32_t *numbers, const std::int64_t *rows, Int apart) {
    std::int64_t other = 0;
    for (Int t = 0; t < c.count; t++) {
        const std::int64_t *row = c.counts + t * c.stride, *known = rows + numbers[t] * apart;
        for (Int s = 0; s < c.states; s++) other |= row[s] ^ known[s];
    }
    return other == 0;
}

// ---- bands -------------------------------------------------------------------------------------------------------

Int settled(const ChainSettled &c) {
    const Int width = c.width;
    Int next = c.next;
    for (Int t = c.count; t-- > 0;) {
        const Real *x = c.priced + t * width, *link = c.links[t] + next * width;
        const Int best = c.best[t];
        const Vector floor = splat(x[best] + link[best] - c.room);
        Bits there{};  // minus the number of states within the room, in lanes
        for (Int at = 0; at < width; at += W) there += load(x + at) + load(link + at) >= floor;
        Int sum = 0;
        for (int k = 0; k < W; k++) sum += there[k];
        if (sum != -1) return c.count - 1 - t;
        next = best;
    }
    return c.count;
}

// Each lane notes the position of its least regret; which state that is follows at the end.
ChainOther second(const ChainSettled &c) {
    const Real infinity = static_cast<Real>(__builtin_inf());
    Bits lanes{};
    for (int k = 0; k < W; k++) lanes[k] = k;
    Vector least = splat(infinity);
    Bits where{};
    for (Int t = c.count, next = c.next; t-- > 0; next = c.best[t]) {
        const Real *x = c.priced + t * c.width, *link = c.links[t] + next * c.width;
        const Int best = c.best[t];
        Vector most = nothing();
        for (Int at = 0; at < c.width; at += W) {
            const Vector sum = load(x + at) + load(link + at);
            most = max(most, lanes + at == Bits{} + best ? nothing() : sum);
        }
        const Vector regret = splat(x[best] + link[best]) - most;
        where = regret < least ? Bits{} + t : where;
        least = regret < least ? regret : least;
    }
    ChainOther found{infinity, -1, -1};
    for (int k = 0; k < W; k++)
        if (least[k] < found.regret || (least[k] == found.regret && where[k] > found.position))
            found = {least[k], where[k], -1};
    if (!(found.regret < infinity)) return {infinity, -1, -1};
    const Int t = found.position, best = c.best[t], next = t + 1 < c.count ? c.best[t + 1] : c.next;
    const Real *x = c.priced + t * c.width, *link = c.links[t] + next * c.width;
    for (Int s = c.width; s-- > 0;)
        if (s != best && x[best] + link[best] - (x[s] + link[s]) == found.regret) found.state = s;
    return found;
}

}  // namespace

extern const ChainKernels chains;
const ChainKernels chains{pass, back, sizes, digest, same, settled, second, down, along, choose, add, ends};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
