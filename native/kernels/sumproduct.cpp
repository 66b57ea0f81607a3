// Kernels, compiled once per instruction set (see CMakeLists.txt). Each cell is summed in the order of
// the terms, so that the bits do not depend on the width of vectors.
#include "kernels/sumproduct.h"

#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

template <int NV>
INLINE void add_products_tile(const Product *products, Int count, double *out, Int i) {
    Vector sum[NV] = {};
    for (Int k = 0; k < count; k++) {
        const Product &p = products[k];
        for (int v = 0; v < NV; v++)
            sum[v] = sum[v] + load(p.x + i + v * W) * load(p.y + i + v * W) * load(p.weight + i + v * W);
    }
    for (int v = 0; v < NV; v++) store(out + i + v * W, sum[v]);
}

void add_products(const Product *products, Int count, double *out, Int n) {
    Int i = 0;
    for (; i + 3 * W < n; i += 4 * W) add_products_tile<4>(products, count, out, i);
    for (; i < n; i += W) add_products_tile<1>(products, count, out, i);
}

void add_scaled(const double *x, double f, double *out, Int n) {
    for (Int i = 0; i < n; i += W) store(out + i, load(out + i) + load(x + i) * f);
}

// One store after the other: the rows may be the same one, moved.
void share(const Product &p, const double *above, double *x_out, double *y_out, Int n) {
    for (Int i = 0; i < n; i += W) {
        const Vector g = load(above + i) * load(p.weight + i), x = load(p.x + i), y = load(p.y + i);
        store(x_out + i, load(x_out + i) + g * y);
        store(y_out + i, load(y_out + i) + g * x);
    }
}

}  // namespace

extern const SumProductKernels sum_products;
const SumProductKernels sum_products = {add_products, add_scaled, share};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
