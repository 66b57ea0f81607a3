// The hot loops of matrices of labels, compiled once per instruction set. Every entry is added up in the same order on
// all of them.
#pragma once

#include <cstdint>

namespace tallytree {

struct MatrixKernels {
    // out[r * stride + j] = sum over i < rows of a[r * stride + i] * m[i * stride + j], for r < count, and for j < n
    // rounded up to whole vectors, which must be there.
    void (*rows_times)(const double *a, std::int64_t count, std::int64_t rows, const double *m, std::int64_t stride,
                       double *out, std::int64_t n);

    // out[i * stride + j] += sum over t < count of a[t * stride + i] * b[t * stride + j], for i < rows, j likewise.
    void (*add_outer)(const double *a, const double *b, std::int64_t count, std::int64_t rows, std::int64_t stride,
                      double *out, std::int64_t n);

    // out[j] = sum over k < count of values[k] * m[columns[k] * n + j], for exactly j < n.
    void (*sparse_row)(const std::int32_t *columns, const double *values, std::int64_t count, const double *m,
                       double *out, std::int64_t n);

    // out[l] = sum over k < count of f[k] * x[k][l], for l < n rounded up to whole vectors, which must be there.
    void (*mix_rows)(const double *const *x, const double *f, std::int64_t count, double *out, std::int64_t n);

    // out[k] = sum over l < n of x[k][l] * y[l], in eight parts; there are zeros in y up to the next multiple of eight,
    // and finite numbers in every x.
    void (*dot_rows)(const double *const *x, const double *y, std::int64_t count, double *out, std::int64_t n);
};

}  // namespace tallytree
