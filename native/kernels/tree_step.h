// Steps of a pass over a tree or a graph: the best of a variable for each state of the next one, or for rows of states.
#pragma once

#include "kernels/chain_pass.h"
#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

// Vectors of the second variable's states.
template <int K>
INLINE void down_some(const StepTable &c, Int at) {
    Vector best[K];
    for (int k = 0; k < K; k++) best[k] = nothing();
    for (Int s = 0; s < c.states; s++) {
        const Vector x = splat(c.known[s]);
        for (int k = 0; k < K; k++) best[k] = max(best[k], x + load(c.scores + s * c.stride + at + k * W));
    }
    for (int k = 0; k < K; k++) store(c.to + at + k * W, best[k]);
}

void down(const StepTable &c) {
    Int at = 0;
    for (; at + 4 * W <= c.count; at += 4 * W) down_some<4>(c, at);
    for (; at + W <= c.count; at += W) down_some<1>(c, at);
    for (; at < c.count; at++) {
        Real best = -static_cast<Real>(__builtin_inf());
        for (Int s = 0; s < c.states; s++) {
            const Real y = c.known[s] + c.scores[s * c.stride + at];
            best = best > y ? best : y;
        }
        c.to[at] = best;
    }
}

// Lanes change places with those H away.
template <int H>
INLINE Vector crossed(Vector v) {
    if constexpr (W == 8) return __builtin_shufflevector(v, v, 0 ^ H, 1 ^ H, 2 ^ H, 3 ^ H, 4 ^ H, 5 ^ H, 6 ^ H, 7 ^ H);
    else if constexpr (W == 4) return __builtin_shufflevector(v, v, 0 ^ H, 1 ^ H, 2 ^ H, 3 ^ H);
    else return __builtin_shufflevector(v, v, 0 ^ H, 1 ^ H);
}

// The largest lane, by halves.
template <int H = W / 2>
INLINE Real largest(Vector v) {
    if constexpr (H > 0) return largest<H / 2>(max(v, crossed<H>(v)));
    else return v[0];
}

void along(const StepTable &c) {
    for (Int i = 0; i < c.count; i++) {
        const Real *row = c.scores + i * c.stride;
        Vector most = nothing();
        Int s = 0;
        for (; s + W <= c.states; s += W) most = max(most, load(c.known + s) + load(row + s));
        Real best = largest(most);
        for (; s < c.states; s++) {
            const Real y = c.known[s] + row[s];
            best = best > y ? best : y;
        }
        c.to[i] = best;
    }
}

INLINE Real larger(Real x, Real y) { return x >= y ? x : y; }

void choose(const RowChoices &c) {
    const Vector g = splat(c.price), f = splat(c.score), g2 = splat(c.other_price), f2 = splat(c.other_score);
    Int i = 0;
    for (; i + W <= c.count; i += W) {
        const Vector best = max((load(c.known + i) + g) + f, (load(c.other_known + i) + g2) + f2);
        store(c.to + i, c.first ? best : max(load(c.to + i), best));
    }
    for (; i < c.count; i++) {
        const Real best = larger((c.known[i] + c.price) + c.score, (c.other_known[i] + c.other_price) + c.other_score);
        c.to[i] = c.first ? best : larger(c.to[i], best);
    }
}

void add(const Real *a, const Real *b, bool one, Int count, Real *to) {
    const Vector all = splat(*b);
    Int i = 0;
    for (; i + W <= count; i += W) store(to + i, load(a + i) + (one ? all : load(b + i)));
    for (; i < count; i++) to[i] = a[i] + (one ? *b : b[i]);
}

RowEnds ends(const Real *row, Int count) {
    const Real infinity = static_cast<Real>(__builtin_inf());
    Vector least = splat(infinity), most = nothing();
    Int i = 0;
    for (; i + W <= count; i += W) {
        const Vector x = load(row + i);
        most = max(most, x);
        least = -max(-least, x == nothing() ? nothing() : -x);
    }
    RowEnds found{infinity, -infinity};
    const auto take = [&](Real x, Real y) {
        found.most = found.most > x ? found.most : x;
        found.least = found.least < y ? found.least : y;
    };
    for (int k = 0; k < W; k++) take(most[k], least[k]);
    for (; i < count; i++) take(row[i], row[i] == -infinity ? infinity : row[i]);
    return found;
}

}  // namespace
}  // namespace TALLYTREE_ISA
}  // namespace tallytree
