// Products with matrices of labels, compiled once per instruction set (see CMakeLists.txt).
#include "kernels/unrolled.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

constexpr int kRows = kManyRegisters ? 4 : 2;  // times up to six vectors: so many sums stay in registers

// R rows side by side, so that a vector of the matrix is loaded once for all of them.
template <int R, int NV>
INLINE void rows_times_tile(const double *a, Int rows, const double *m, Int stride, double *out) {
    Vector sum[R][NV] = {};
    for (Int i = 0; i < rows; i++)
        for (int v = 0; v < NV; v++) {
            const Vector with = load(m + i * stride + v * W);
            for (int r = 0; r < R; r++) sum[r][v] = sum[r][v] + splat(a[r * stride + i]) * with;
        }
    for (int r = 0; r < R; r++)
        for (int v = 0; v < NV; v++) store(out + r * stride + v * W, sum[r][v]);
}

template <int R>
INLINE void rows_times_block(const double *a, Int rows, const double *m, Int stride, double *out, Int n) {
    Int j = 0;
    for (; j + 5 * W < n; j += 6 * W) rows_times_tile<R, 6>(a, rows, m + j, stride, out + j);
    for (; j + 2 * W < n; j += 3 * W) rows_times_tile<R, 3>(a, rows, m + j, stride, out + j);
    for (; j < n; j += W) rows_times_tile<R, 1>(a, rows, m + j, stride, out + j);
}

void rows_times(const double *a, Int count, Int rows, const double *m, Int stride, double *out, Int n) {
    Int r = 0;
    for (; r + kRows <= count; r += kRows)
        rows_times_block<kRows>(a + r * stride, rows, m, stride, out + r * stride, n);
    for (; r + 2 <= count; r += 2) rows_times_block<2>(a + r * stride, rows, m, stride, out + r * stride, n);
    for (; r < count; r++) rows_times_block<1>(a + r * stride, rows, m, stride, out + r * stride, n);
}

template <int R, int NV>
INLINE void add_outer_tile(const double *a, const double *b, Int count, Int stride, double *out) {
    Vector sum[R][NV];
    for (int r = 0; r < R; r++)
        for (int v = 0; v < NV; v++) sum[r][v] = load(out + r * stride + v * W);
    for (Int t = 0; t < count; t++)
        for (int v = 0; v < NV; v++) {
            const Vector with = load(b + t * stride + v * W);
            for (int r = 0; r < R; r++) sum[r][v] = sum[r][v] + splat(a[t * stride + r]) * with;
        }
    for (int r = 0; r < R; r++)
        for (int v = 0; v < NV; v++) store(out + r * stride + v * W, sum[r][v]);
}

template <int R>
INLINE void add_outer_block(const double *a, const double *b, Int count, Int stride, double *out, Int n) {
    Int j = 0;
    for (; j + 5 * W < n; j += 6 * W) add_outer_tile<R, 6>(a, b + j, count, stride, out + j);
    for (; j + 2 * W < n; j += 3 * W) add_outer_tile<R, 3>(a, b + j, count, stride, out + j);
    for (; j < n; j += W) add_outer_tile<R, 1>(a, b + j, count, stride, out + j);
}

void add_outer(const double *a, const double *b, Int count, Int rows, Int stride, double *out, Int n) {
    Int i = 0;
    for (; i + kRows <= rows; i += kRows) add_outer_block<kRows>(a + i, b, count, stride, out + i * stride, n);
    for (; i + 2 <= rows; i += 2) add_outer_block<2>(a + i, b, count, stride, out + i * stride, n);
    for (; i < rows; i++) add_outer_block<1>(a + i, b, count, stride, out + i * stride, n);
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
const MatrixKernels matrices = {rows_times, add_outer, sparse_row, mix_rows, dot_rows};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
