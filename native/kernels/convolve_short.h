// Convolutions of short rows, residue class by residue class in registers.
#pragma once

#include "kernels/convolve.h"
#include "kernels/unrolled.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

// Short rows, of up to NP vectors each: residue classes as in convolve.h, but all the vectors of the output that a pair
// comes to are in registers, for R classes at a time. There is almost no work between pairs.
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

}  // namespace
}  // namespace TALLYTREE_ISA
}  // namespace tallytree
