// A sparse matrix times a table of labels, on several threads.
#pragma once

#include "bulk/thread_pool.h"
#include "kernels/maxplus.h"

namespace tallytree {

struct SparseRows {
    std::span<const std::int64_t> starts;  // of the rows, and the end of the last one
    std::span<const std::int32_t> columns;
    std::span<const double> values;
};

// out[row][label] = sum over the row's entries of value * table[column][label], in order.
void sparse_times(const SparseRows &rows, const double *table, Index labels, double *out, Index threads,
                  const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside);

}  // namespace tallytree
