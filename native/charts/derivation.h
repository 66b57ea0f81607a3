// Results read from the tables of a chart: trees, and sums over all of them.
#pragma once

#include "charts/layout.h"
#include "walk/choices.h"

namespace tallytree {

// One step of a derivation: an item made by the lexicon, by a path or by a rule.
struct ChartStep {
    enum Kind : std::int32_t { Word = 0, Unary = 1, Split = 2 };
    std::int32_t kind, number, start, width, left_width;  // number: of the symbol, path or rule
};
ChartStep chart_step(const Layout &layout, const Visit &visit);

// The steps of the best tree with the tally of a root cell, top down and left to right.
std::vector<ChartStep> chart_decode(Run &run, Index cell, const Poll &poll);

// The most choices that one derivation takes: over each of its spans a split or a word, and two paths.
inline Index most_choices(Index words) { return 3 * (2 * words - 1); }

// The steps of a tree drawn given that tally, with numbers from [0, 1) for its choices.
std::vector<ChartStep> chart_sample(Run &run, Index cell, const double *uniforms, const Poll &poll);

// Of a plain chart: the sum (or the best) of all trees with each item, [layer][span][symbol].
std::vector<double> chart_marginals(Run &run, const Poll &poll);

// The expected count of each step.
struct ChartExpectations {
    std::vector<double> rules;  // per rule
    std::vector<double> paths;  // [path][span]
    std::vector<double> words;  // [word][symbol]
};
ChartExpectations chart_expectations(Run &run, const Poll &poll);  // of a plain chart
// When the root cell is drawn with these probabilities, one for each.
ChartExpectations chart_expectations_of(Run &run, std::span<const double> probabilities, const Poll &poll);

}  // namespace tallytree
