// Which items are part of a tree, and how many rows and groups of rules that takes.
//
// Only whether a score is -inf matters, so the items of one symbol and width are the bits of a row, one for each start:
// a rule over a split is applied to 64 starts at once.
#pragma once

#include "charts/layout.h"

namespace tallytree {

struct ChartItems {
    std::vector<std::uint8_t> live;  // [layer][span][symbol]
    double rows = 0;                 // that a plain pass goes over: of two children, or of the source of a path

    // The memory that it takes to find them.
    static double bytes(const ChartGrammar &grammar, Index words);
};

ChartItems find_items(const ChartGrammar &grammar, Index words, const std::vector<TableBlock<double>> &scores,
                      const Poll &poll);

// How many groups of rules can be used over each split of each span: [span][width of the left part].
std::vector<std::int32_t> groups_by_split(const ChartGrammar &grammar, const Spans &spans,
                                          std::span<const std::uint8_t> items);

}  // namespace tallytree
