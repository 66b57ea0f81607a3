// Many problems at once: each is laid out, run and, if asked for, decoded by one of several threads.
#pragma once

#include "walk/evaluate.h"
#include "bulk/loss_table.h"
#include "bulk/thread_pool.h"

namespace tallytree {

// Statistics that compare each variable with a truth: one entry for each of them, whether states that are right are
// counted or those that are not. The background never is.
struct NodeCounts {
    std::vector<bool> right;
    Index background = -1;
    LayoutRequest request;  // but for the tables, which are made by the thread that needs them
};

struct BatchItem {
    std::shared_ptr<const Skeleton> skeleton;
    LayoutRequest request;
    std::vector<TableBlock<double>> scores;
    std::vector<ScopeBlock> shown_scopes;  // further integer tables that are summed up for the labelling
    std::vector<TableBlock<std::int64_t>> shown;
    bool asks = false;                        // whether `choose` has the choice; otherwise the best score is taken,
    std::shared_ptr<const LossTable> losses;  // or, where there are losses, the best together with them,
    std::span<const std::int64_t> truth;      // compared with the score of this labelling
    std::shared_ptr<const NodeCounts> nodes;  // in the place of `request`
};

struct BatchAnswer {
    bool refused = false;  // the plan does not fit its memory limit
    Run::Root root;        // if nothing was to be chosen from it
    bool decoded = false;
    double score = 0;                             // of the row that was decoded, as the messages have it
    double value = 0, loss = 0, truth_score = 0;  // where there are losses
    std::vector<std::int64_t> tally, assignment;
    Evaluation evaluation;
};

class Batch {
  public:
    // Which row of an item's root, which has some, to decode; negative for none. Called from several threads.
    using Choose = std::function<Index(Index item, const Run::Root &root)>;

    void add(BatchItem item) { items_.push_back(std::move(item)); }
    Index size() const { return static_cast<Index>(items_.size()); }
    const BatchItem &item(Index i) const { return items_[i]; }

    // The costliest first, so that no thread is left alone with a large one at the end. Answers do not depend on the
    // number of threads.
    std::vector<BatchAnswer> run(Index threads, const MaxPlusKernels *kernels, const Choose &choose, const Poll &poll,
                                 const Inside &inside) const;

  private:
    std::vector<BatchItem> items_;
};

}  // namespace tallytree
