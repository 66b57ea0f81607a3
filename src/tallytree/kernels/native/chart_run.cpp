#include "chart_run.h"

namespace tallytree {

ChartRun::ChartRun(std::shared_ptr<const ChartLayout> layout, ChartScores scores, AlgebraKind algebra,
                   const MaxPlusKernels *kernels)
    : layout_(std::move(layout)),
      grammar_(*layout_->grammar),
      scores_(scores),
      kind_(algebra),
      kernels_(kernels),
      arena_(layout_->arena + kLanes) {}

void ChartRun::inside(const Poll &poll) {
    if (layout_->plain) plain_inside(poll);
    else tally_inside(poll);
}

std::vector<Index> ChartLayout::root_tallies() const {
    const ChartRuns runs(*this, static_cast<Index>(tables.size()) - 1);
    std::vector<Index> rows;
    for (Index r = 0; r < runs.count; r++)
        for (Index c = 0; c < runs.length[r]; c++) {
            rows.insert(rows.end(), runs.prefix + r * prefix_size, runs.prefix + (r + 1) * prefix_size);
            if (statistics) rows.push_back(runs.low[r] + c);
        }
    return rows;
}

Run::Root ChartRun::root() const {
    const ChartRuns runs(*layout_, root_table());
    const auto slot = layout_->slot_of(root_table(), grammar_.root);
    const auto tallies = layout_->root_tallies();
    const Index p = layout_->statistics;
    Run::Root root;
    Index cell = 0;
    for (Index r = 0; slot >= 0 && r < runs.count; r++)
        for (Index c = 0; c < runs.length[r]; c++, cell++) {
            const double value = row(root_table(), slot)[runs.start[r] + c];
            if (value == kNegativeInfinity) continue;
            root.cells.push_back(cell);
            root.values.push_back(value);
            root.tallies.insert(root.tallies.end(), tallies.begin() + cell * p, tallies.begin() + (cell + 1) * p);
        }
    return root;
}

}  // namespace tallytree
