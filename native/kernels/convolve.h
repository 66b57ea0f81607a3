// convolve: out[l] = max over i of a[i] + b[l - i], where a term is the second operand moved by one more cell, and f is
// a cell of the first; and what convolve_many needs to split the first operand by residue, so that loads are aligned.
#pragma once

#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

// A tile of NV vectors of the output; 4 cells of `a` are in flight, so that sums do not wait for each other.
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

}  // namespace
}  // namespace TALLYTREE_ISA
}  // namespace tallytree
