// Kernels, compiled once per instruction set and kind of number (see CMakeLists.txt).
//
// Everything is one recurrence, out[l] = max over terms of x[l] + f, held in registers:
//   mix            a term is a row of the input table (or of the factor), f is a factor's (or message's) entry
//   convolve       a term is the second operand moved by one more cell, f is a cell of the first
//   convolve_many  as convolve, the first operand split by residue so that every load is aligned
#include "kernels/mix.h"
#include "kernels/convolve.h"
#include "kernels/convolve_short.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

// ---- local scores ------------------------------------------------------------------------------------------------

// Whole vectors run into the next row, which is written after; the last row ends where it ends.
void offset_rows(const Real *in, const Real *value, Int stride, Real *out, Int rows, Int n) {
    for (Int r = 0; r < rows; r++, in += n, out += n) {
        const Vector add = splat(value[r * stride]);
        const Int whole = (rows - r - 1) * n >= W ? n : n - n % W;
        Int i = 0;
        for (; i < whole; i += W) store(out + i, load(in + i) + add);
        for (; i < n; i++) out[i] = in[i] + value[r * stride];
    }
}

void add(const Real *in, Real *out, Int n) {
    Int i = 0;
    for (; i + W <= n; i += W) store(out + i, load(out + i) + load(in + i));
    for (; i < n; i++) out[i] += in[i];
}

void round_all(const double *in, Real *out, Int n) {
    for (Int i = 0; i < n; i++) out[i] = static_cast<Real>(in[i]);
}

// ---- convolve, where there are many cells ------------------------------------------------------------------------

// The vectors that each operand of a pair takes at most, or a large number where one begins before the output.
INLINE Int longest(const ConvolutionOf<Real> *pairs, Int count) {
    Int cells = 0;
    for (const ConvolutionOf<Real> *c = pairs; c < pairs + count; c++) {
        const Int a = c->offset + c->na;
        cells = a > cells ? a : cells;
        cells = c->nb > cells ? c->nb : cells;
        if (c->offset < 0 || c->offset > kGuardOf<Real>) return 1 << 30;
    }
    return (cells + W - 1) >> kShift;
}

void convolve_many(const ConvolutionOf<Real> *pairs, Int count, Real *out, Int first, Int last) {
    if constexpr (kManyRegisters)
        if (first == 0) {
            const Int vectors = longest(pairs, count);
            if (vectors <= 1) return convolve_short<1, 8>(pairs, count, out, last / W);
            if (vectors == 2) return convolve_short<2, 4>(pairs, count, out, last / W);
            if (vectors == 3) return convolve_short<3, 4>(pairs, count, out, last / W);
            if (vectors == 4) return convolve_short<4, 4>(pairs, count, out, last / W);
        }
    Vector before[W];
    for (int r = 0; r < W; r++) before[r] = nothing();
    Int q = first / W;
    for (Int i = 0; i < count; i++)
        if (pairs[i].offset < first) q = first / W - kTile;  // what reaches over from the vectors before
    for (; q < last / W; q += kTile) {
        Vector best[W][kTile];
        convolve_classes(pairs, count, q, best);
        for (int v = 0; v < kTile && q * W >= first; v++) {
            Vector top = best[0][v];
            for (int r = 1; r < W; r++) top = max(top, behind(v ? best[r][v - 1] : before[r], best[r][v], r));
            store(out + (q + v) * W, top);
        }
        for (int r = 0; r < W; r++) before[r] = best[r][kTile - 1];
    }
}

}  // namespace

extern const KernelsOf<Real> TALLYTREE_KERNELS;
const KernelsOf<Real> TALLYTREE_KERNELS = {mix, mix_exact, mix_along, offset_rows,
                                           add, round_all, convolve,  convolve_many};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
