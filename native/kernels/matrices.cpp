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

template <int NV>
INLINE void sparse_tile(const std::int32_t *columns, const double *values, Int count, const double *m, double *out,
                        Int n) {
    Vector sum[NV] = {};
    for (Int k = 0; k < count; k++) {
        const Vector f = splat(values[k]);
        const double *row = m + static_cast<Int>(columns[k]) * n;
        for (int v = 0; v < NV; v++) sum[v] = sum[v] + f * load(row + v * W);
    }
    for (int v = 0; v < NV; v++) store(out + v * W, sum[v]);
}

void sparse_row(const std::int32_t *columns, const double *values, Int count, const double *m, double *out, Int n) {
    Int j = 0;
    for (; j + 5 * W <= n; j += 5 * W) sparse_tile<5>(columns, values, count, m + j, out + j, n);
    for (; j + 2 * W <= n; j += 2 * W) sparse_tile<2>(columns, values, count, m + j, out + j, n);
    for (; j + W <= n; j += W) sparse_tile<1>(columns, values, count, m + j, out + j, n);
    for (; j < n; j++) {
        double sum = 0;
        for (Int k = 0; k < count; k++) sum += values[k] * m[static_cast<Int>(columns[k]) * n + j];
        out[j] = sum;
    }
}

}  // namespace

extern const MatrixKernels matrices;
const MatrixKernels matrices = {row_times, add_outer, sparse_row};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
