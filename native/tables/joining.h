// A single join as a program, for benchmarks and tests of the kernel.
#pragma once

#include "tables/run.h"

namespace tallytree {

// out[s, i + k, j + l] = max over a[s, i, j] + b[s, k, l]; shapes (states, rows, columns), row-major.
void join_boxes(Index states, const double *a, Index a_rows, Index a_columns, const double *b, Index b_rows,
                Index b_columns, double *out, Index repeats, const MaxPlusKernels *kernels, const Poll &poll);

}  // namespace tallytree
