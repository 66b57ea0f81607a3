// Products with matrices of labels, compiled once per instruction set (see CMakeLists.txt).
#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

template <int NV>
INLINE void row_times_tile(const double *a, Int rows, const double *m, Int stride, double *out) {
    Vector sum[NV] = {};
    for (Int i = 0; i < rows; i++) {
        const Vector f = splat(a[i]);
        for (int v = 0; v < NV; v++) sum[v] = sum[v] + f * load(m + i * stride + v * W);
    }
    for (int v = 0; v < NV; v++) store(out + v * W, sum[v]);
}

void row_times(const double *a, Int rows, const double *m, Int stride, double *out, Int n) {
    Int j = 0;
    for (; j + 5 * W < n; j += 6 * W) row_times_tile<6>(a, rows, m + j, stride, out + j);
    for (; j + 2 * W < n; j += 3 * W) row_times_tile<3>(a, rows, m + j, stride, out + j);
    for (; j < n; j += W) row_times_tile<1>(a, rows, m + j, stride, out + j);
}

template <int NV>
INLINE void add_outer_tile(const double *a, const double *b, Int count, Int stride, double *out) {
    Vector sum[NV];
    for (int v = 0; v < NV; v++) sum[v] = load(out + v * W);
    for (Int t = 0; t < count; t++) {
        const Vector f = splat(a[t * stride]);
        for (int v = 0; v < NV; v++) sum[v] = sum[v] + f * load(b + t * stride + v * W);
    }
    for (int v = 0; v < NV; v++) store(out + v * W, sum[v]);
}

void add_outer(const double *a, const double *b, Int count, Int rows, Int stride, double *out, Int n) {
    for (Int i = 0; i < rows; i++) {
        Int j = 0;
        for (; j + 5 * W < n; j += 6 * W) add_outer_tile<6>(a + i, b + j, count, stride, out + i * stride + j);
        for (; j + 2 * W < n; j += 3 * W) add_outer_tile<3>(a + i, b + j, count, stride, out + i * stride + j);
        for (; j < n; j += W) add_outer_tile<1>(a + i, b + j, count, stride, out + i * stride + j);
    }
}

// NV vectors, of which the last one begins at `last`: it may overlap with the one before.
template <int NV>
INLINE void sparse_tile(const std::int32_t *columns, const double *values, Int count, const double *m, double *out,
                        Int n, Int last) {
    Vector sum[NV] = {};
    for (Int k = 0; k < count; k++) {
        const Vector f = splat(values[k]);
        const double *row = m + static_cast<Int>(columns[k]) * n;
        for (int v = 0; v < NV; v++) sum[v] = sum[v] + f * load(row + (v + 1 < NV ? v * W : last));
    }
    for (int v = 0; v < NV; v++) store(out + (v + 1 < NV ? v * W : last), sum[v]);
}

void sparse_few(const std::int32_t *columns, const double *values, Int count, const double *m, double *out, Int n) {
    for (Int j = 0; j < n; j++) {
        double sum = 0;
        for (Int k = 0; k < count; k++) sum += values[k] * m[static_cast<Int>(columns[k]) * n + j];
        out[j] = sum;
    }
}

void sparse_row(const std::int32_t *columns, const double *values, Int count, const double *m, double *out, Int n) {
    if (n < W) return sparse_few(columns, values, count, m, out, n);
    Int j = 0;
    for (; n - j > 4 * W; j += 4 * W) sparse_tile<4>(columns, values, count, m + j, out + j, n, 3 * W);
    const Int last = n - j - W;
    if (last > 2 * W) return sparse_tile<4>(columns, values, count, m + j, out + j, n, last);
    if (last > W) return sparse_tile<3>(columns, values, count, m + j, out + j, n, last);
    if (last > 0) return sparse_tile<2>(columns, values, count, m + j, out + j, n, last);
    sparse_tile<1>(columns, values, count, m + j, out + j, n, last);  // where last < 0, once more with those before
}

template <int NV>
INLINE void mix_rows_tile(const double *const *x, const double *f, Int count, double *out, Int l) {
    Vector sum[NV] = {};
    for (Int k = 0; k < count; k++) {
        const Vector by = splat(f[k]);
        for (int v = 0; v < NV; v++) sum[v] = sum[v] + by * load(x[k] + l + v * W);
    }
    for (int v = 0; v < NV; v++) store(out + l + v * W, sum[v]);
}

void mix_rows(const double *const *x, const double *f, Int count, double *out, Int n) {
    Int l = 0;
    for (; l + 5 * W < n; l += 6 * W) mix_rows_tile<6>(x, f, count, out, l);
    for (; l + 2 * W < n; l += 3 * W) mix_rows_tile<3>(x, f, count, out, l);
    for (; l < n; l += W) mix_rows_tile<1>(x, f, count, out, l);
}

constexpr int kParts = 8;

template <int K>
INLINE void dot_rows_tile(const double *const *x, const double *y, double *out, Int n) {
    constexpr int NV = kParts / W;
    Vector sum[K][NV] = {};
    for (Int l = 0; l < n; l += kParts)
        for (int v = 0; v < NV; v++) {
            const Vector with = load(y + l + v * W);
            for (int k = 0; k < K; k++) sum[k][v] = sum[k][v] + load(x[k] + l + v * W) * with;
        }
    for (int k = 0; k < K; k++) {
        double parts[kParts];
        for (int v = 0; v < NV; v++) store(parts + v * W, sum[k][v]);
        out[k] = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    }
}

void dot_rows(const double *const *x, const double *y, Int count, double *out, Int n) {
    Int k = 0;
    for (; k + 4 <= count; k += 4) dot_rows_tile<4>(x + k, y, out + k, n);
    for (; k < count; k++) dot_rows_tile<1>(x + k, y, out + k, n);
}

}  // namespace

extern const MatrixKernels matrices;
const MatrixKernels matrices = {row_times, add_outer, sparse_row, mix_rows, dot_rows};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
