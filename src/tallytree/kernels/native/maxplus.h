// The hot loops, compiled once per instruction set and chosen at load time.
#pragma once

#include <cstdint>

namespace tallytree {

// One pair of runs to be convolved: out[l] takes max over i of a[i] + b[l - offset - i].
struct Convolution {
    const double *a;
    std::int64_t na;
    const double *b;  // aligned to 64 bytes, kGuard cells of -inf on both sides
    std::int64_t nb;
    std::int64_t offset;
};

inline constexpr std::int64_t kGuard = 16;

struct MaxPlusKernels {
    const char *name;

    // out[j * js + l] = max over k of x[k][l] + f[k][j * fs], for j < nj and l < n rounded up to whole vectors:
    // every x[k] must be readable, and every out row writable, that far.
    void (*mix)(std::int64_t terms, const double *const *x, const double *const *f, std::int64_t fs, std::int64_t nj,
                double *out, std::int64_t js, std::int64_t n);

    // The same for exactly l < n.
    void (*mix_exact)(std::int64_t terms, const double *const *x, const double *const *f, std::int64_t fs,
                      std::int64_t nj, double *out, std::int64_t js, std::int64_t n);

    // out[r][i] = in[r][i] + value[r * stride], for `rows` rows of n cells side by side.
    void (*offset_rows)(const double *in, const double *value, std::int64_t stride, double *out, std::int64_t rows,
                        std::int64_t n);

    // out[i] += in[i].
    void (*add)(const double *in, double *out, std::int64_t n);

    // largest[i] = max(largest[i], x[i] + f).
    void (*raise)(const double *x, double f, double *largest, std::int64_t n);

    // sum[i] += exp(x[i] + f - largest[i]), nothing where x[i] is -inf. The exponential is our own: the same bits
    // on every instruction set.
    void (*add_exponentials)(const double *x, double f, const double *largest, double *sum, std::int64_t n);

    // out[i] = max(out[i], x[i] + y[i] + z[i] + f); y and z may be null.
    void (*raise_sum)(const double *x, const double *y, const double *z, double f, double *out, std::int64_t n);

    // sum[i] += exp(x[i] + y[i] + z[i] + f - largest[i]), likewise.
    void (*add_exponentials_of_sum)(const double *x, const double *y, const double *z, double f, const double *largest,
                                    double *sum, std::int64_t n);

    // out[l] = max over the pairs, for first <= l < last; both are multiples of 8.
    void (*convolve)(const Convolution *pairs, std::int64_t count, double *out, std::int64_t first, std::int64_t last);

    // The same, quicker where there are many cells of a; they must have kGuard cells of -inf on both sides, too.
    void (*convolve_many)(const Convolution *pairs, std::int64_t count, double *out, std::int64_t first,
                          std::int64_t last);
};

// The table for this machine, or for `name` ("baseline", "v3", "v4"); nullptr where it cannot run.
const MaxPlusKernels *maxplus_kernels(const char *name = nullptr);

}  // namespace tallytree
