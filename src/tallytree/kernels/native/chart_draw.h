// Trees drawn from a sum-product chart, and what is expected of them. Both go from the root down by shares: the share
// of one way to make a cell is its part of the cell's sum, exp(value of the way - value of the cell).
#pragma once

#include "chart_run.h"

namespace tallytree {

// The most choices that one derivation takes: over each of its spans a split or a word, and two chains.
inline Index most_choices(Index words) { return 3 * (2 * words - 1); }

// One derivation for each root cell, with its own row of `most_choices` numbers drawn from [0, 1).
Ragged<ChartStep> draw_trees(const ChartRun &run, std::span<const Index> cells, const double *uniforms,
                             const Poll &poll);

// How often steps are expected when the root cell is drawn with these probabilities, one for each.
ChartExpectations expect_steps(const ChartRun &run, std::span<const double> probabilities, const Poll &poll);

}  // namespace tallytree
