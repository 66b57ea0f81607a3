// Kernels, compiled once per instruction set and kind of number (see CMakeLists.txt).
//
// Everything is one recurrence, out[l] = max over terms of x[l] + f, held in registers:
//   mix            a term is a row of the input table (or of the factor), f is a factor's (or message's) entry
//   convolve       a term is the second operand moved by one more cell, f is a cell of the first
//   convolve_many  as convolve, the first operand split by residue so that every load is aligned
#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

constexpr bool kManyRegisters = TALLYTREE_VECTOR_BYTES == 64;

template <int I>
struct Constant {
    constexpr operator int() const { return I; }
};

// f(0), f(1), …, f(N - 1) as constants: arrays that they index stay in registers, whatever branches lie between.
template <int N, int I = 0, class F>
INLINE void unrolled(const F &f) {
    if constexpr (I < N) {
        f(Constant<I>{});
        unrolled<N, I + 1>(f);
    }
}
#define EACH(i) [&](auto i) __attribute__((always_inline))

// ---- mix -----------------------------------------------------------------------------------------------------

// NV vectors of NJ outputs in registers; there is at least one term. FS is the distance between the entries of
// neighbouring outputs where it is known, or else 0.
template <int NJ, int NV, int FS>
INLINE void mix_tile(const MixOf<Real> &m, Int j, Int l) {
    const Int fs = FS ? FS : m.fs;
    Vector best[NJ][NV];
    const auto term = [&](Int k, auto first) __attribute__((always_inline)) {
        const Real *row = m.x[k] + l, *entry = m.f[k] + j * fs;
        HIDE(row);  // or the compiler keeps an address for each number, more than it has registers for
        HIDE(entry);
        Vector part[NV];
        for (int v = 0; v < NV; v++) part[v] = load(row + v * W);
        for (int u = 0; u < NJ; u++) {
            const Vector add = splat(entry[u * fs]);
            for (int v = 0; v < NV; v++) best[u][v] = first ? part[v] + add : max(best[u][v], part[v] + add);
        }
    };
    if (m.far) {
        const Real *to = m.out + j * m.js + l;
        HIDE(to);
        for (int u = 0; u < NJ; u++, to += m.js)
            for (int v = 0; v < NV; v++) __builtin_prefetch(to + v * W, 1);
    }
    term(0, Constant<1>{});
    for (Int k = 1; k < m.terms; k++) term(k, Constant<0>{});
    if (m.late)
        for (int u = 0; u < NJ; u++)
            for (int v = 0; v < NV; v++) best[u][v] = best[u][v] + splat(m.late[j + u]);
    Int js = m.js;
    Real *out = m.out + j * js + l;
    HIDE(js);
    HIDE(out);
    for (int u = 0; u < NJ; u++, out += js)
        for (int v = 0; v < NV; v++) store(out + v * W, best[u][v]);
}

// As many outputs at once as the registers hold with NV vectors of each.
constexpr int most_outputs(int vectors) { return vectors > (kManyRegisters ? 3 : 1) ? 5 : 8; }

// The next strip of `rest` outputs: the last two are evened out, as one of one costs as much.
INLINE Int strip_of(Int rest, Int most) {
    return rest >= 2 * most || rest == most ? most : rest < most ? rest : (rest + 1) / 2;
}

// NV vectors of all outputs: what is read of the input stays near for the next strip.
template <int NV, int FS>
INLINE void mix_column(const MixOf<Real> &m, Int l) {
    constexpr int kMost = most_outputs(NV);
    for (Int j = 0, strip; j < m.nj; j += strip) {
        strip = strip_of(m.nj - j, kMost);
        unrolled<kMost>(EACH(u) {
            if (strip == u + 1) mix_tile<u + 1, NV, FS>(m, j, l);
        });
    }
}

// Columns as wide as the registers hold.
template <int FS>
INLINE void mix_columns(const MixOf<Real> &m, Int vectors) {
    constexpr int kWide = kManyRegisters ? 4 : 2;
    const bool wide = !kManyRegisters || strip_of(m.nj, most_outputs(kWide - 1)) <= most_outputs(kWide);
    Int l = 0;
    if (wide)
        for (; vectors >= kWide; vectors -= kWide, l += kWide * W) mix_column<kWide, FS>(m, l);
    for (; vectors >= kWide - 1; vectors -= kWide - 1, l += (kWide - 1) * W) mix_column<kWide - 1, FS>(m, l);
    if constexpr (kWide > 2) {
        if (vectors == 2) mix_column<2, FS>(m, l);
        if (vectors == 1) mix_column<1, FS>(m, l);
    }
}

// Without terms there is nothing, late or not.
void mix_nothing(const MixOf<Real> &m, Int n) {
    for (Int j = 0; j < m.nj; j++)
        for (Int l = 0; l < n; l++) m.out[j * m.js + l] = -static_cast<Real>(__builtin_inf());
}

void mix(const MixOf<Real> &m) {
    const Int vectors = (m.n + W - 1) / W;
    if (m.terms == 0) return mix_nothing(m, vectors * W);
    if (m.fs == 1) mix_columns<1>(m, vectors);
    else mix_columns<0>(m, vectors);
}

void mix_exact(const MixOf<Real> &m) {
    if (m.terms == 0) return mix_nothing(m, m.n);
    const Int whole = m.n / W;
    if (m.fs == 1) mix_columns<1>(m, whole);
    else mix_columns<0>(m, whole);
    for (Int l = whole * W; l < m.n; l++)
        for (Int j = 0; j < m.nj; j++) {
            Real best = -__builtin_inf();
            for (Int k = 0; k < m.terms; k++) {
                const Real v = m.x[k][l] + m.f[k][j * m.fs];
                best = v > best ? v : best;
            }
            m.out[j * m.js + l] = m.late ? best + m.late[j] : best;
        }
}

// Four sums in flight, so that none waits for the one before.
template <int NV>
INLINE void along_tile(Int terms, const Real *x, const Real *f, Int fs, const Real *late, Real *out) {
    constexpr int U = NV > 2 ? 2 : 4;
    Vector best[U][NV];
    for (int u = 0; u < U; u++)
        for (int v = 0; v < NV; v++) best[u][v] = nothing();
    Int k = 0;
    for (; k + U <= terms; k += U)
        for (int u = 0; u < U; u++) {
            const Vector add = splat(x[k + u]);
            for (int v = 0; v < NV; v++) best[u][v] = max(best[u][v], load(f + (k + u) * fs + v * W) + add);
        }
    for (; k < terms; k++) {
        const Vector add = splat(x[k]);
        for (int v = 0; v < NV; v++) best[0][v] = max(best[0][v], load(f + k * fs + v * W) + add);
    }
    for (int v = 0; v < NV; v++) {
        Vector top = best[0][v];
        for (int u = 1; u < U; u++) top = max(top, best[u][v]);
        store(out + v * W, late ? top + load(late + v * W) : top);
    }
}

void mix_along(Int terms, const Real *x, const Real *f, Int fs, const Real *late, Real *out, Int n) {
    constexpr int NV = TALLYTREE_VECTOR_BYTES == 16 ? 2 : 4;
    Int l = 0;
    const auto from = [&](Int at) { return late ? late + at : nullptr; };
    for (; l + (NV - 1) * W < n; l += NV * W) along_tile<NV>(terms, x, f + l, fs, from(l), out + l);
    if (l + 2 * W < n) along_tile<3>(terms, x, f + l, fs, from(l), out + l);
    else if (l + W < n) along_tile<2>(terms, x, f + l, fs, from(l), out + l);
    else if (l < n) along_tile<1>(terms, x, f + l, fs, from(l), out + l);
}

// ---- local scores ------------------------------------------------------------------------------------------------

// Whole vectors run into the next row, which is written after; the last row ends where it ends.
void offset_rows(const Real *in, const Real *value, Int stride, Real *out, Int rows, Int n) {
    for (Int r = 0; r < rows; r++, in += n, out += n) {
        const Vector add = splat(value[r * stride]);
        const Int whole = (rows - r - 1) * n >= W ? n : n - n % W;
        Int i = 0;
        for (; i < whole; i += W) store(out + i, load(in + i) + add);
        for (; i < n; i++) out[i] = in[i] + value[r * stride];
    }
}

void add(const Real *in, Real *out, Int n) {
    Int i = 0;
    for (; i + W <= n; i += W) store(out + i, load(out + i) + load(in + i));
    for (; i < n; i++) out[i] += in[i];
}

void round_all(const double *in, Real *out, Int n) {
    for (Int i = 0; i < n; i++) out[i] = static_cast<Real>(in[i]);
}

// ---- convolve --------------------------------------------------------------------------------------------------

// A tile of NV vectors of the output; 4 cells of `a` are in flight so that no sum waits for the one before.
template <int NV>
INLINE void convolve_tile(const ConvolutionOf<Real> *pairs, Int count, Real *out, Int l) {
    constexpr int U = 4;
    Vector best[U][NV];
    for (int u = 0; u < U; u++)
        for (int v = 0; v < NV; v++) best[u][v] = nothing();
    for (Int p = 0; p < count; p++) {
        const ConvolutionOf<Real> &c = pairs[p];
        const Int at = l - c.offset;                        // out cell l is cell `at - i` of b
        Int i = at - (c.nb - 1) > 0 ? at - (c.nb - 1) : 0;  // cells of a that touch the tile
        const Int end = at + NV * W < c.na ? at + NV * W : c.na;
        const Real *a = c.a, *b = c.b + at;
        for (; i + U <= end; i += U)
            for (int u = 0; u < U; u++) {
                const Vector add = splat(a[i + u]);
                for (int v = 0; v < NV; v++) best[u][v] = max(best[u][v], load(b - i - u + v * W) + add);
            }
        for (; i < end; i++) {
            const Vector add = splat(a[i]);
            for (int v = 0; v < NV; v++) best[0][v] = max(best[0][v], load(b - i + v * W) + add);
        }
    }
    for (int v = 0; v < NV; v++) store(out + l + v * W, max(max(best[0][v], best[1][v]), max(best[2][v], best[3][v])));
}

void convolve(const ConvolutionOf<Real> *pairs, Int count, Real *out, Int first, Int last) {
    constexpr int NV = 2;
    Int l = first;
    for (; l + NV * W <= last; l += NV * W) convolve_tile<NV>(pairs, count, out, l);
    for (; l < last; l += W) convolve_tile<1>(pairs, count, out, l);
}

// With a[W p + r] in residue class r, out[W q + r + lane] takes a[W p + r] + b[W (q - p) + lane]: each vector of b is
// loaded aligned and used W times. NV neighbouring output vectors keep enough sums in flight.
constexpr int kTile = W < 8 ? 8 / W : 1, kShift = __builtin_ctz(W);

template <int R>
INLINE void convolve_block(Vector (&best)[W][kTile], const Real *a, const Real *b) {
    Vector part[kTile];
    for (int v = 0; v < kTile; v++) part[v] = load(b + v * W);
    for (int r = 0; r < R; r++) {
        const Vector add = splat(a[r]);
        for (int v = 0; v < kTile; v++) best[r][v] = max(best[r][v], part[v] + add);
    }
}

// Vectors q to q + kTile - 1 of the output, residue class by residue class.
INLINE void convolve_classes(const ConvolutionOf<Real> *pairs, Int count, Int q, Vector (&best)[W][kTile]) {
    for (int r = 0; r < W; r++)
        for (int v = 0; v < kTile; v++) best[r][v] = nothing();
    for (Int i = 0; i < count; i++) {
        const ConvolutionOf<Real> &c = pairs[i];
        const Int lead = c.offset & (W - 1), at = q - (c.offset >> kShift);  // a begins `lead` cells into its vector
        const Int cells = c.na + lead, whole = cells >> kShift, rest = cells & (W - 1);
        const Int first = at - ((c.nb - 1) >> kShift);
        Int p = first > 0 ? first : 0;
        const Int end = at + kTile < whole ? at + kTile : whole;
        const Real *a = c.a - lead + p * W, *b = c.b + (at - p) * W;
        for (; p < end; p++, a += W, b -= W) convolve_block<W>(best, a, b);
        if (rest == 0 || p != whole || p >= at + kTile) continue;
        if (rest <= W / 2) convolve_block<W / 2>(best, a, b);
        else convolve_block<W>(best, a, b);
    }
}

// The vector that begins r cells before the end of `before` and goes on with `now`.
INLINE Vector behind(Vector before, Vector now, int r) {
    Bits lanes;
    for (int i = 0; i < W; i++) lanes[i] = W - r + i;
    return __builtin_shuffle(before, now, lanes);
}

// Short rows, of up to NP vectors each: residue classes as above, but all the vectors of the output that a pair comes
// to are in registers, for R classes at a time. There is next to nothing to do between pairs.
template <int NP, int R>
struct ShortRows {
    static constexpr int kReach = 2 * NP - 1;
    Vector best[R][kReach];

    // The first vectors of a, from number P on, with all NQ of b.
    template <int NQ, int P>
    INLINE void take(const Real *a, Int vectors, const Vector (&part)[NQ]) {
        unrolled<R>(EACH(r) {
            const Vector add = splat(a[P * W + r]);
            unrolled<NQ>(EACH(v) { best[r][P + v] = max(best[r][P + v], part[v] + add); });
        });
        if constexpr (P + 1 < NP)
            if (P + 1 < vectors) take<NQ, P + 1>(a, vectors, part);
    }

    template <int NQ>
    INLINE void take(const Real *a, Int vectors, const Real *b, Int vectors_b) {
        if constexpr (NQ > 1)
            if (vectors_b < NQ) return take<NQ - 1>(a, vectors, b, vectors_b);
        Vector part[NQ];
        unrolled<NQ>(EACH(v) { part[v] = load(b + v * W); });
        take<NQ, 0>(a, vectors, part);
    }

    // Classes `first` to first + R - 1 of all pairs.
    INLINE void take_all(const ConvolutionOf<Real> *pairs, Int count, int first) {
        unrolled<R>(EACH(r) { unrolled<kReach>(EACH(v) { best[r][v] = nothing(); }); });
        for (const ConvolutionOf<Real> *c = pairs; c < pairs + count; c++) {
            const Int vectors = (c->offset + c->na - first + W - 1) >> kShift;
            if (vectors > 0) take<NP>(c->a - c->offset + first, vectors, c->b, (c->nb + W - 1) >> kShift);
        }
    }
};

template <int NP, int R>
INLINE void convolve_short(const ConvolutionOf<Real> *pairs, Int count, Real *out, Int vectors) {
    constexpr int kReach = ShortRows<NP, R>::kReach;
    alignas(64) Vector sums[W][kReach + 2];  // between vectors of nothing
    unrolled<W / R>(EACH(group) {
        ShortRows<NP, R> rows;
        rows.take_all(pairs, count, group * R);
        unrolled<R>(EACH(r) {
            Vector *to = sums[group * R + r];
            to[0] = to[kReach + 1] = nothing();
            unrolled<kReach>(EACH(v) { to[v + 1] = rows.best[r][v]; });
        });
    });
    const Int some = vectors < kReach + 1 ? vectors : kReach + 1;
    for (Int q = 0; q < some; q++) {
        Vector top = sums[0][q + 1];
        unrolled<W - 1>(EACH(r) { top = max(top, behind(sums[r + 1][q], sums[r + 1][q + 1], r + 1)); });
        store(out + q * W, top);
    }
    for (Int q = some; q < vectors; q++) store(out + q * W, nothing());
}

// The vectors that each operand of a pair takes at most, or a large number where one begins before the output.
INLINE Int longest(const ConvolutionOf<Real> *pairs, Int count) {
    Int cells = 0;
    for (const ConvolutionOf<Real> *c = pairs; c < pairs + count; c++) {
        const Int a = c->offset + c->na;
        cells = a > cells ? a : cells;
        cells = c->nb > cells ? c->nb : cells;
        if (c->offset < 0 || c->offset > kGuardOf<Real>) return 1 << 30;
    }
    return (cells + W - 1) >> kShift;
}

void convolve_many(const ConvolutionOf<Real> *pairs, Int count, Real *out, Int first, Int last) {
    if constexpr (kManyRegisters)
        if (first == 0) {
            const Int vectors = longest(pairs, count);
            if (vectors <= 1) return convolve_short<1, 8>(pairs, count, out, last / W);
            if (vectors == 2) return convolve_short<2, 4>(pairs, count, out, last / W);
            if (vectors == 3) return convolve_short<3, 4>(pairs, count, out, last / W);
            if (vectors == 4) return convolve_short<4, 4>(pairs, count, out, last / W);
        }
    Vector before[W];
    for (int r = 0; r < W; r++) before[r] = nothing();
    Int q = first / W;
    for (Int i = 0; i < count; i++)
        if (pairs[i].offset < first) q = first / W - kTile;  // what reaches over from the vectors before
    for (; q < last / W; q += kTile) {
        Vector best[W][kTile];
        convolve_classes(pairs, count, q, best);
        for (int v = 0; v < kTile && q * W >= first; v++) {
            Vector top = best[0][v];
            for (int r = 1; r < W; r++) top = max(top, behind(v ? best[r][v - 1] : before[r], best[r][v], r));
            store(out + (q + v) * W, top);
        }
        for (int r = 0; r < W; r++) before[r] = best[r][kTile - 1];
    }
}

}  // namespace

extern const KernelsOf<Real> TALLYTREE_KERNELS;
const KernelsOf<Real> TALLYTREE_KERNELS = {mix, mix_exact, mix_along, offset_rows,
                                           add, round_all, convolve,  convolve_many};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
