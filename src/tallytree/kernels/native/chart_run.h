// One execution of a chart: the tables in one arena, and what is read from them.
#pragma once

#include "chart.h"
#include "run.h"

namespace tallytree {

// Scores of rules: one for each, or one for each over each span.
struct RuleScores {
    const double *data = nullptr;
    Index columns = 1;
    bool anchored() const { return columns > 1; }
    double at(Index rule, Index span) const { return data[rule * columns + (anchored() ? span : 0)]; }
    const double *address(Index rule, Index span) const { return data + rule * columns + (anchored() ? span : 0); }
};

struct ChartScores {
    const double *words = nullptr;  // [word][symbol]
    RuleScores rules, chains;
};

// One step of a derivation: an item made by the lexicon, by a chain or by a rule.
struct ChartStep {
    enum Kind : std::int32_t { Word = 0, Chained = 1, Split = 2 };
    std::int32_t kind, number, start, width, left_width;  // number: of the symbol, chain or rule
};

// What a sum-product pass down the chart gives.
struct ChartExpectations {
    std::vector<double> rules;   // per rule
    std::vector<double> chains;  // [chain][span]
    std::vector<double> words;   // [word][symbol]
};

class ChartRun {
  public:
    ChartRun(std::shared_ptr<const ChartLayout> layout, ChartScores scores, AlgebraKind algebra,
             const MaxPlusKernels *kernels);

    void inside(const Poll &poll);

    Run::Root root() const;

    // The steps of the best tree with the tally of a root cell, top down and left to right.
    std::vector<ChartStep> decode(Index cell, const Poll &poll) const;

    // Of a plain chart: the sum (or the best) of all trees with each item, [layer][span][symbol].
    std::vector<double> marginals(const Poll &poll);
    ChartExpectations expectations(const Poll &poll);

    const ChartLayout &layout() const { return *layout_; }
    const ChartScores &scores() const { return scores_; }
    bool is_max_plus() const { return kind_ == AlgebraKind::MaxPlus; }
    const double *memory() const { return arena_.data(); }
    double *row(Index table, std::int32_t slot) const {
        return arena_.data() + layout_->tables[table].base + slot * layout_->tables[table].stride;
    }
    Index root_table() const { return static_cast<Index>(layout_->tables.size()) - 1; }

  private:
    friend class PlainChart;
    friend class TallyChart;

    void plain_inside(const Poll &poll);  // spans of one width side by side
    void tally_inside(const Poll &poll);  // rows of tallies

    std::shared_ptr<const ChartLayout> layout_;
    const ChartGrammar &grammar_;
    ChartScores scores_;
    AlgebraKind kind_;
    const MaxPlusKernels *kernels_;
    Arena arena_;
};

}  // namespace tallytree
