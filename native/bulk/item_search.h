// Items of a batch by bounds: models with a truth whose losses stand in a table, or with a constraint, in memory that
// one thread uses for one item after the other.
#pragma once

#include "bounds/graph_messages.h"
#include "bounds/tally_search.h"
#include "bulk/sentence_rows.h"

namespace tallytree {

// A model whose best score is wanted, among the tallies of the window, or those of them that are allowed.
struct ScoreItem {
    const Skeleton &skeleton;
    std::span<const TableBlock<double>> scores;
    const LayoutRequest &request;
    const TallySet *allowed;  // or null
};

// Whether a model is likely to have many labellings that are as good as each other: most scores of single variables, of
// a few that are looked at, occur more than once.
bool has_ties(const Skeleton &skeleton, std::span<const TableBlock<double>> scores);

class alignas(64) ItemSearch {
  public:
    explicit ItemSearch(const MaxPlusKernels &kernels)
        : chains_(kernels.chains),
          tables_(kernels.chains),
          graphs_(kernels.chains, kPasses),
          search_(kernels.tallies) {}
    ItemSearch(const ItemSearch &) = delete;

    // Whether an item can be searched. Tables that wait for the next chain, and can be made again, are forgotten where
    // they take more bytes than they may.
    bool take(const LossItem &item, double may_wait);
    bool take(const ScoreItem &item, double may_wait);
    // What the item takes, about, besides what earlier ones have left.
    double bytes() const { return bytes_; }
    // As TallySearch::run does; prices, one for each statistic, are where it starts from if they are numbers, and are
    // replaced by where it came to.
    bool run(const LossItem &item, Index count, double truth_score, double *prices, bounds::TallySearch::Limits limits,
             Meter &meter);
    bool run(const ScoreItem &item, bounds::TallySearch::Limits limits, Meter &meter);
    const bounds::TallySearch &found() const { return search_; }
    // The memory that waits for the next item, about.
    double kept() const { return chains_.kept() + tables_.kept() + graphs_.kept() + search_.kept(); }

  private:
    static constexpr std::size_t kPasses = 3;  // that are kept: it goes back to some
    bounds::TiedMessages &load(const LossItem &item);
    bounds::TiedMessages *load(const ScoreItem &item);

    SentenceRows chains_;
    bounds::LocalTables tables_;  // of other graphs
    bounds::GraphMessages graphs_;
    bounds::TallySearch search_;
    bool chain_ = false;  // whether the item at hand is one
    std::optional<bounds::PlainChain> plain_;
    bounds::FewBox box_;  // its relevant tallies, where it has a constraint
    double bytes_ = 0;
    bounds::TiedMessages *messages_ = nullptr;
};

}  // namespace tallytree
