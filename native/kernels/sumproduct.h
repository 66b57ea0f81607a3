// The hot loops of sums over splits, compiled once per instruction set. Plain products: the caller has scaled scores
// so that nothing overflows.
#pragma once

#include <cstdint>

namespace tallytree {

// Two rows to be multiplied cell by cell, and the weight of each cell.
struct Product {
    const double *x, *y, *weight;
};

struct SumProductKernels {
    // out[i] = sum over k of x[i] * y[i] * weight[i], for i < n rounded up to whole vectors.
    void (*add_products)(const Product *products, std::int64_t count, double *out, std::int64_t n);

    // out[i] += x[i] * f, likewise.
    void (*add_scaled)(const double *x, double f, double *out, std::int64_t n);

    // The derivatives of a product: with g = above[i] * weight[i],
    //     x_out[i] += g * y[i],  y_out[i] += g * x[i]        for i < n rounded up, above being 0 beyond n.
    void (*share)(const Product &product, const double *above, double *x_out, double *y_out, std::int64_t n);
};

}  // namespace tallytree
