// The hot loops, compiled once per instruction set and chosen at load time.
#pragma once

#include <cstdint>

#include "kernels/chain_pass.h"
#include "kernels/columns.h"
#include "kernels/matrices.h"
#include "kernels/sumproduct.h"
#include "kernels/tally_lists.h"

namespace tallytree {

// Everything about tables is there for two kinds of numbers, `Real`: double, and float where single precision is asked
// for. What comes without "Of" is about doubles.

// One pair of stretches to be convolved: out[l] takes max over i of a[i] + b[l - offset - i].
template <class Real>
struct ConvolutionOf {
    const Real *a;
    std::int64_t na;
    const Real *b;  // aligned to 64 bytes, kGuard cells of -inf on both sides
    std::int64_t nb;
    std::int64_t offset;
};
using Convolution = ConvolutionOf<double>;

// out[j * js + l] = max over k < terms of x[k][l] + f[k][j * fs], plus late[j] where that is given, for j < nj.
template <class Real>
struct MixOf {
    std::int64_t terms;
    const Real *const *x, *const *f;
    std::int64_t fs;
    const Real *late;
    std::int64_t nj;
    Real *out;
    std::int64_t js, n;
    bool far = false;  // whether `out` is likely to be out of the cache, so that it is worth asking for early
};

template <class Real>
inline constexpr std::int64_t kGuardOf = 128 / sizeof(Real);  // two of the widest vectors
inline constexpr std::int64_t kGuard = kGuardOf<double>;

template <class Real>
struct KernelsOf {
    // For l < n rounded up to whole vectors: every x[k] must be readable, and every out row writable, that far.
    void (*mix)(const MixOf<Real> &mix);

    // For exactly l < n.
    void (*mix_exact)(const MixOf<Real> &mix);

    // out[l] = max over k of x[k] + f[k * fs + l], plus late[l] where that is given, for l < n rounded up likewise.
    void (*mix_along)(std::int64_t terms, const Real *x, const Real *f, std::int64_t fs, const Real *late, Real *out,
                      std::int64_t n);

    // out[r][i] = in[r][i] + value[r * stride], for `rows` rows of n cells side by side.
    void (*offset_rows)(const Real *in, const Real *value, std::int64_t stride, Real *out, std::int64_t rows,
                        std::int64_t n);

    // out[i] += in[i].
    void (*add)(const Real *in, Real *out, std::int64_t n);

    // out[i] = in[i], rounded as the thread rounds.
    void (*round_all)(const double *in, Real *out, std::int64_t n);

    // out[l] = max over the pairs, for first <= l < last; both are multiples of 64 bytes.
    void (*convolve)(const ConvolutionOf<Real> *pairs, std::int64_t count, Real *out, std::int64_t first,
                     std::int64_t last);

    // The same, quicker where there are many cells of a; they must have kGuard cells of -inf on both sides, too.
    void (*convolve_many)(const ConvolutionOf<Real> *pairs, std::int64_t count, Real *out, std::int64_t first,
                          std::int64_t last);
};

struct SumKernels {
    // largest[i] = max(largest[i], x[i] + f).
    void (*raise)(const double *x, double f, double *largest, std::int64_t n);

    // sum[i] += exp(x[i] + f - largest[i]), nothing where x[i] is -inf. The exponential is our own: the same bits
    // on every instruction set.
    void (*add_exponentials)(const double *x, double f, const double *largest, double *sum, std::int64_t n);

    // part[i] = above[i] * exp(x[i] + f - top[i]), nothing where x[i] is -inf: what goes on to a term of a sum.
    void (*share_exponentials)(const double *x, double f, const double *top, const double *above, double *part,
                               std::int64_t n);

    // out[i] = exp(x[i] - largest).
    void (*exponentials)(const double *x, double largest, double *out, std::int64_t n);

    // out[i] = max(out[i], x[i] + y[i] + z[i] + f); y and z may be null.
    void (*raise_sum)(const double *x, const double *y, const double *z, double f, double *out, std::int64_t n);

    // sum[i] += exp(x[i] + y[i] + z[i] + f - largest[i]), likewise.
    void (*add_exponentials_of_sum)(const double *x, const double *y, const double *z, double f, const double *largest,
                                    double *sum, std::int64_t n);
};

struct MaxPlusKernels : KernelsOf<double>, SumKernels {
    const char *name;
    KernelsOf<float> single;
    SumProductKernels products;
    ChainKernels chains;
    MatrixKernels matrices;
    TallyKernels tallies;
    ColumnKernels columns;

    template <class Real>
    const KernelsOf<Real> &of() const {
        if constexpr (sizeof(Real) == sizeof(double)) return *this;
        else return single;
    }
};

// The table for this machine, or for `name` ("baseline", "v3", "v4"); nullptr where it cannot run.
const MaxPlusKernels *maxplus_kernels(const char *name = nullptr);

}  // namespace tallytree
