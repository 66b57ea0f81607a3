// Bindings of truths: what the items of a batch count, and the values they are compared by.
#pragma once

#include "bind/checks.h"
#include "bulk/batch.h"

namespace tallytree {

using Prices = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The tallies that a constraint allows.
struct PyTallySet {
    std::shared_ptr<const TallySet> set;
};

// The truths of several items, concatenated in long arrays.
struct PyTruths {
    std::shared_ptr<const TruthTables> tables;
    Ints kinds, labels;
    std::vector<PyLossTable> losses;
    Doubles2 folds;  // what each statistic adds to the scores of each item; empty if losses do not fold
    Index count;
    Strategy strategy;
    std::optional<Prices> prices;  // of each item: where bounds start, and where they ended

    // Assigns truths to items, in order; everything used as an index is checked.
    void attach(std::span<BatchItem> items) const;
};

}  // namespace tallytree
