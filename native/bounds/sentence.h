// A sentence with statistics, as the search by bounds sees it. Its labellings are derivations: five numbers for each
// step, top down and left to right (see charts/derivation.h), and rows of -1 behind the last one.
#pragma once

#include "bounds/subject.h"
#include "charts/derivation.h"

namespace tallytree::bounds {

inline constexpr Index kStepNumbers = 5;

// Steps as a labelling of so many numbers.
void write_steps(std::span<const ChartStep> steps, std::int64_t *labelling, Index length);

class Sentence : public Subject {
  public:
    // A plain layout; scores by ChartBlock; counts are [bag][span][statistic]; what a cell of a band takes.
    Sentence(std::shared_ptr<const Layout> layout, std::vector<TableBlock<double>> scores,
             std::vector<std::int32_t> counts, Index statistics, double cell);

    Index statistics() const override { return statistics_; }
    const Box &range() const override { return range_; }
    double magnitude() const override { return magnitude_; }
    double operations() const override { return layout_->operations; }
    double cell() const override { return cell_; }
    Index length() const override { return kStepNumbers * choices(); }
    Index variables() const override { return nodes_; }
    Index choices() const override { return most_choices(spans_.words); }
    double small_budget(double span) const override;
    Evaluated evaluate(const std::int64_t *labelling) const override;

    const std::shared_ptr<const Layout> &layout() const { return layout_; }
    const ChartGrammar &grammar() const { return grammar_; }
    const Spans &spans() const { return spans_; }
    std::span<const TableBlock<double>> scores() const { return scores_; }
    // What a bag of labels adds over a span; null for none.
    const std::int32_t *counts(std::int32_t bag, Index span) const {
        return bag < 0 ? nullptr : counts_.data() + (bag * spans_.count() + span) * statistics_;
    }
    // Of a path: over a single word its bag is another one.
    std::int32_t bag_of(Index path, Index width) const {
        return width == 1 ? grammar_.paths[path].word_bag : grammar_.paths[path].bag;
    }
    // The largest size of the tally of any part of a tree.
    const Prices &reach() const { return reach_; }
    // Whether tallies fit the numbers that the search has for them.
    bool fits() const;
    // Throws std::invalid_argument for what is no derivation of a whole tree.
    void check(std::span<const std::int64_t> labelling) const;

  private:
    void find_magnitude();
    void find_range();
    // The least and the most that one span counts of a statistic.
    std::pair<Index, Index> ends(Index statistic, Index span, Index width) const;

    std::shared_ptr<const Layout> layout_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    std::vector<TableBlock<double>> scores_;
    std::vector<std::int32_t> counts_;
    Index statistics_, nodes_;
    std::array<std::vector<std::int32_t>, 4> bags_;  // of paths: over several words and over one, from open and closed
    Box range_;
    Prices reach_{};
    double magnitude_ = 0, cell_;
};

}  // namespace tallytree::bounds
