// Kernels of sums of exponentials, and maxima of sums of rows, compiled once per instruction set (see CMakeLists.txt).
#include <cstdint>

#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

// ---- log-sum-exp ---------------------------------------------------------------------------------------------------

void raise(const double *x, double f, double *largest, Int n) {
    const Vector add = splat(f);
    Int i = 0;
    for (; i + W <= n; i += W) store(largest + i, max(load(x + i) + add, load(largest + i)));
    for (; i < n; i++) {
        const double v = x[i] + f;
        largest[i] = v > largest[i] ? v : largest[i];
    }
}

// exp of non-positive numbers: 2^k times a polynomial on |r| <= ln 2 / 2, with v = k ln 2 + r. To about one unit in
// the last place; zero below -708 (and for -inf and nan), where the result would not be normal.
INLINE Vector exponential(Vector v) {
    const Vector shift = splat(0x1.8p52);
    const Vector rounded = v * splat(0x1.71547652b82fep0) + shift;
    const Vector k = rounded - shift;
    const Vector r = (v - k * splat(0x1.62e42fefa38p-1)) - k * splat(0x1.ef35793c7673p-45);
    constexpr double c[] = {
        1.0,        1.0,         0.5,          1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
        1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
    Vector p = splat(c[13]);
    for (int i = 12; i >= 0; i--) p = p * r + splat(c[i]);
    // Without signs: for numbers far below, whose result is dropped, the sum wraps.
    using Exponents = std::uint64_t __attribute__((vector_size(sizeof(Vector))));
    const auto scaled =
        reinterpret_cast<Vector>(reinterpret_cast<Exponents>(p) + (reinterpret_cast<Exponents>(rounded) << 52));
    return v > splat(-708.0) ? scaled : Vector{};
}

void add_exponentials(const double *x, double f, const double *largest, double *sum, Int n) {
    const Vector add = splat(f);
    Int i = 0;
    for (; i + W <= n; i += W) store(sum + i, load(sum + i) + exponential(load(x + i) + add - load(largest + i)));
    if (i == n) return;
    double rest[W], top[W];
    for (int l = 0; l < W; l++) {
        rest[l] = i + l < n ? x[i + l] + f : -__builtin_inf();
        top[l] = i + l < n ? largest[i + l] : 0;
    }
    double part[W];
    store(part, exponential(load(rest) - load(top)));
    for (int l = 0; i + l < n; l++) sum[i + l] += part[l];
}

// What each cell of a sum owes to one of its terms, x[i] + f, where the sums are `top`.
void share_exponentials(const double *x, double f, const double *top, const double *above, double *part, Int n) {
    const Vector add = splat(f);
    Int i = 0;
    for (; i + W <= n; i += W) store(part + i, load(above + i) * exponential(load(x + i) + add - load(top + i)));
    if (i == n) return;
    double rest[W];
    for (int l = 0; l < W; l++) rest[l] = i + l < n ? x[i + l] + f - top[i + l] : -__builtin_inf();
    store(rest, exponential(load(rest)));
    for (int l = 0; i + l < n; l++) part[i + l] = above[i + l] * rest[l];
}

void exponentials(const double *x, double largest, double *out, Int n) {
    const Vector top = splat(largest);
    Int i = 0;
    for (; i + W <= n; i += W) store(out + i, exponential(load(x + i) - top));
    if (i == n) return;
    double rest[W];
    for (int l = 0; l < W; l++) rest[l] = i + l < n ? x[i + l] - largest : -__builtin_inf();
    store(rest, exponential(load(rest)));
    for (int l = 0; i + l < n; l++) out[i + l] = rest[l];
}

// ---- sums of two rows ----------------------------------------------------------------------------------------------

template <bool Y, bool Z>
INLINE Vector sum_of(const double *x, const double *y, const double *z, Vector f, Int i) {
    Vector v = load(x + i);
    if (Y) v = v + load(y + i);
    if (Z) v = v + load(z + i);
    return v + f;
}

// In the same order as the vectors, so that a cell does not depend on where it lies.
template <bool Y, bool Z>
INLINE double single_sum(const double *x, const double *y, const double *z, double f, Int i) {
    double v = x[i];
    if (Y) v += y[i];
    if (Z) v += z[i];
    return v + f;
}

template <bool Y, bool Z>
INLINE void raise_any(const double *x, const double *y, const double *z, double f, double *out, Int n) {
    const Vector add = splat(f);
    Int i = 0;
    for (; i + W <= n; i += W) store(out + i, max(sum_of<Y, Z>(x, y, z, add, i), load(out + i)));
    for (; i < n; i++) {
        const double v = single_sum<Y, Z>(x, y, z, f, i);
        out[i] = v > out[i] ? v : out[i];
    }
}

void raise_sum(const double *x, const double *y, const double *z, double f, double *out, Int n) {
    if (y && z) raise_any<true, true>(x, y, z, f, out, n);
    else if (y) raise_any<true, false>(x, y, z, f, out, n);
    else if (z) raise_any<false, true>(x, y, z, f, out, n);
    else raise_any<false, false>(x, y, z, f, out, n);
}

template <bool Y, bool Z>
INLINE void add_exponentials_any(const double *x, const double *y, const double *z, double f, const double *largest,
                                 double *sum, Int n) {
    const Vector add = splat(f);
    Int i = 0;
    for (; i + W <= n; i += W)
        store(sum + i, load(sum + i) + exponential(sum_of<Y, Z>(x, y, z, add, i) - load(largest + i)));
    if (i == n) return;
    double rest[W], part[W];
    for (int l = 0; l < W; l++)
        rest[l] = i + l < n ? single_sum<Y, Z>(x, y, z, f, i + l) - largest[i + l] : -__builtin_inf();
    store(part, exponential(load(rest)));
    for (int l = 0; i + l < n; l++) sum[i + l] += part[l];
}

void add_exponentials_of_sum(const double *x, const double *y, const double *z, double f, const double *largest,
                             double *sum, Int n) {
    if (y && z) add_exponentials_any<true, true>(x, y, z, f, largest, sum, n);
    else if (y) add_exponentials_any<true, false>(x, y, z, f, largest, sum, n);
    else if (z) add_exponentials_any<false, true>(x, y, z, f, largest, sum, n);
    else add_exponentials_any<false, false>(x, y, z, f, largest, sum, n);
}

}  // namespace

extern const SumKernels sums;
const SumKernels sums = {raise, add_exponentials, share_exponentials, exponentials, raise_sum, add_exponentials_of_sum};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
