// Truths at the border to Python: what the items of a batch count, and what they choose by.
#pragma once

#include "bind/checks.h"
#include "bulk/batch.h"

namespace tallytree {

using Prices = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The truths of several items, one after the other in long arrays.
struct PyTruths {
    std::shared_ptr<const TruthTables> tables;
    Ints kinds, labels;
    std::vector<PyLossTable> losses;
    Doubles2 folds;  // what each statistic adds to the scores of each item; nothing where losses do not fold
    Index count;
    Strategy strategy;
    std::optional<Prices> prices;  // of each item: where bounds start, and where they ended

    // Gives items their truths, in order; all that is used as an index is checked.
    void attach(std::span<BatchItem> items) const;
};

}  // namespace tallytree
