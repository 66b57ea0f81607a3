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

// out[j * js + l] = max over k < terms of x[k][l] + f[k][j * fs], plus late[j] where that is given, for j < nj.
struct Mix {
    std::int64_t terms;
    const double *const *x, *const *f;
    std::int64_t fs;
    const double *late;
    std::int64_t nj;
    double *out;
    std::int64_t js, n;
    std::int64_t ahead = 0;  // what will be written next lies this far behind `out`; 0 where that is not worth a hint
};

inline constexpr std::int64_t kGuard = 16;

struct MaxPlusKernels {
    const char *name;

    // For l < n rounded up to whole vectors: every x[k] must be readable, and every out row writable, that far.
    void (*mix)(const Mix &mix);

    // For exactly l < n.
    void (*mix_exact)(const Mix &mix);

    // out[l] = max over k of x[k] + f[k * fs + l], plus late[l] where that is given, for l < n rounded up likewise.
    void (*mix_along)(std::int64_t terms, const double *x, const double *f, std::int64_t fs, const double *late,
                      double *out, std::int64_t n);

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
