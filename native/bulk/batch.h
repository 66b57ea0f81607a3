// Many problems at once: each is laid out, run and, if requested, decoded by one of several threads.
#pragma once

#include "bulk/loss_table.h"
#include "bulk/thread_pool.h"
#include "bulk/item_search.h"
#include "bulk/truth_tables.h"
#include "walk/evaluate.h"

namespace tallytree {

enum class Chooser {
    Score,   // the best score, of the tallies that are allowed
    Losses,  // the best score together with a loss of the tally
    Ask,     // chosen by Batch::Choose
};

enum class Strategy : int {
    Auto = 0,    // by bounds if that is likely to be faster, with the answer of the full table
    Full = 1,    // by full tables
    Bounds = 2,  // by bounds if they are supported
};

struct BatchItem {
    std::shared_ptr<const Skeleton> skeleton;
    std::vector<TableBlock<double>> scores;  // of labels: separate tables, or parts of long arrays

    LayoutRequest request;                    // what is counted: given tables,
    Truth truth;                              // or, if there is one, what is made from a truth
    std::shared_ptr<const TallySet> allowed;  // the tallies to choose from by score; null: all

    Chooser chooser = Chooser::Score;
    std::shared_ptr<const LossTable> losses;  // of tallies, where there is a truth
    Index count = 1;                          // how many of the best tallies are decoded

    Strategy strategy = Strategy::Full;
    double *prices = nullptr;  // by bounds: where to start, and where it ended; or null

    std::vector<ScopeBlock> shown_scopes;  // further integer tables that are summed up for a labelling
    std::vector<TableBlock<std::int64_t>> shown;
};

struct Labelling {
    double promised = 0;                          // its score, as the messages have it
    double value = 0, loss = 0, truth_score = 0;  // where there are losses
    bool certified = false;                       // whether score and tally are what the messages promise
    std::vector<std::int64_t> tally, labels;      // the tally as the messages have it
    Evaluation evaluation;                        // of the labels; sums of the tables that are counted, then of `shown`
};

struct BatchAnswer {
    bool refused = false;               // the plan does not fit its memory limit,
    double bytes = 0;                   // but needs so much, or more
    Run::Root root;                     // if nothing was to be chosen from it
    std::vector<Labelling> labellings;  // the best first
    bool bounded = false;               // whether they were found by bounds
};

class Batch {
  public:
    // Which rows of an item's root, which has some, to decode. Called from several threads.
    using Choose = std::function<std::vector<Index>(Index item, const Run::Root &root)>;
    struct Decoding {
        bool wanted = false;  // or else roots are kept
        Choose choose = {};
    };

    Batch(Mode mode, double memory_limit) : mode(mode), memory_limit_(memory_limit) {}

    void add(BatchItem item) { items_.push_back(std::move(item)); }
    // Bytes that answers will take: what is left of the memory limit is for the runs.
    void hold(double bytes) {
        memory_limit_ -= bytes;
        for (auto &item : items_) item.request.memory_limit = memory_limit_;
    }
    double memory_limit() const { return memory_limit_; }
    Index size() const { return static_cast<Index>(items_.size()); }
    const BatchItem &item(Index i) const { return items_[i]; }

    // The costliest first, so that no thread is left alone with a large one at the end. Answers do not depend on the
    // number of threads.
    std::vector<BatchAnswer> run(Index threads, const MaxPlusKernels *kernels, const Decoding &decoding,
                                 const Poll &poll, const Inside &inside) const;

    const Mode mode;  // of tables that are made from truths

  private:
    double memory_limit_;
    std::vector<BatchItem> items_;
};

}  // namespace tallytree
