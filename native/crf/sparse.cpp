#include "crf/sparse.h"

#include <algorithm>
#include <numeric>

namespace tallytree {

void sparse_times(const SparseRows &rows, const double *table, Index labels, double *out, Index threads,
                  const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    constexpr Index kEntries = 1 << 16;  // of one part
    const auto count = static_cast<Index>(rows.starts.size()) - 1;
    std::vector<Index> cuts{0};  // parts of about as many entries
    for (Index i = 0; i < count; i++)
        if (i + 1 == count || rows.starts[i + 1] - rows.starts[cuts.back()] >= kEntries) cuts.push_back(i + 1);
    const Work work = [&](Worker &worker, Index part) {
        worker.poll();
        for (Index i = cuts[part]; i < cuts[part + 1]; i++) {
            const Index first = rows.starts[i], size = rows.starts[i + 1] - first;
            kernels->matrices.sparse_row(rows.columns.data() + first, rows.values.data() + first, size, table,
                                         out + i * labels, labels);
        }
    };
    std::vector<Index> order(cuts.size() - 1);
    std::iota(order.begin(), order.end(), 0);
    share_out(order, threads, work, poll, inside);
}

}  // namespace tallytree
