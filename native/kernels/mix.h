// mix: out[l] = max over terms of x[l] + f, where a term is a row of the input table (or of the factor), and f is a
// factor's (or message's) entry.
#pragma once

#include "kernels/unrolled.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

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

// NV vectors of all outputs: the input stays in the cache for the next strip.
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

// Without terms the result is -inf, with or without a late factor.
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

// Four sums in flight, so that they do not wait for each other.
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

}  // namespace
}  // namespace TALLYTREE_ISA
}  // namespace tallytree
