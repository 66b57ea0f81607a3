// What a loss counts on the variables of a model, in tables that serve all truths over one set of labels.
//
// A loss sees a variable by its kind: what of the truth is there. A kind says which label each state of the variable
// stands for, and what the statistics count in it; on chains, two neighbouring kinds say which states may follow each
// other, and what is counted then. The tables of all kinds are made once, those of an item by the thread that needs
// them.
#pragma once

#include <memory>

#include "bounds/link_counts.h"
#include "bulk/workspace.h"

namespace tallytree {

struct TruthTables {
    Index kinds = 0, states = 0, statistics = 0;
    Index links = 0;                   // tables of neighbours; 0: states are labels, and all may follow each other
    std::vector<std::int32_t> labels;  // [kind][state]; -1 for a state that no labelling takes
    std::vector<std::int64_t> given;   // [statistic][kind][state]
    std::vector<std::int32_t> pairs;   // [kind][kind]: the table of two neighbours; -1 where they never are
    std::vector<std::uint8_t> fits;    // [table][state][state]
    std::vector<std::int64_t> moved;   // [statistic][table][state][state]
    // What follows from these:
    using Range = std::pair<std::int64_t, std::int64_t>;
    std::vector<Range> given_range, moved_range;  // [statistic][kind], [statistic][table]: the least and the most
    // As a search by bounds has them, where there are few statistics: [kind][statistic][state] and [kind][state].
    std::vector<std::int32_t> kind_counts;
    std::vector<Index> kind_keys;
    // What most states before a state count together with it, [table][statistic][state], and the rest of it: [table].
    std::vector<std::int32_t> link_usual;
    std::vector<bounds::LinkCounts> link_counts;

    void prepare();
    void prepare_kinds();
    void prepare_links(Index table);
    std::int32_t pair(Index before, Index after) const { return pairs[before * kinds + after]; }
};

// The truth of an item, and what is made from it.
class Truth {
  public:
    Truth() = default;
    Truth(std::shared_ptr<const TruthTables> tables, std::span<const std::int64_t> kinds,
          std::span<const std::int64_t> labels, std::span<const double> fold)
        : labels(labels), fold(fold), tables_(std::move(tables)), kinds_(kinds) {}

    std::span<const std::int64_t> labels;  // what is right
    std::span<const double> fold;          // what each statistic adds to the scores, which then are all that counts
    std::size_t unary = 0;                 // the block of scores of single variables, which it is added to

    explicit operator bool() const { return tables_ != nullptr; }
    const TruthTables &tables() const { return *tables_; }
    std::span<const std::int64_t> kinds() const { return kinds_; }

    // The tables of statistics, none where they are folded into the scores, as a request without limits of tallies.
    const LayoutRequest &request(Mode mode, double memory_limit, Workspace &space) const;
    // What the steps of its program count at least and at most.
    const StepRanges &step_ranges(const Skeleton &skeleton, Workspace &space) const;
    // The scores of states; those of labels where they are the same.
    const std::vector<TableBlock<double>> &scores(const std::vector<TableBlock<double>> &of_labels,
                                                  Workspace &space) const;
    // The scores of the states at a position; and of those there after those at the position before, in rows of some
    // width.
    void put_scores(const TableBlock<double> &emissions, Index m, double *to) const;
    void put_links(const TableBlock<double> &of_labels, Index labels, Index m, double *to, Index width) const;
    // Whether the tables of scores are made here, over states of its own.
    bool has_states() const { return tables_->links > 0; }
    // Adds what was found for the entries of these tables to those of labels: the places of each of their blocks.
    void add_entries(std::span<const double> unary, std::span<const double> links,
                     const std::vector<TableBlock<double>> &of_labels, std::span<double *const> to) const;
    // What the statistics count in a labelling.
    std::vector<std::int64_t> tally(std::span<const std::int64_t> states) const;
    // Puts labels in the places of states.
    void relabel(std::span<std::int64_t> states) const;

    // What there is at a position: the labels of its states, what they count, and what neighbours do.
    const std::int32_t *labels_at(Index m) const { return tables_->labels.data() + kinds_[m] * tables_->states; }
    const std::int64_t *given_at(Index statistic, Index m) const {
        return tables_->given.data() + (statistic * tables_->kinds + kinds_[m]) * tables_->states;
    }
    Index table_at(Index m) const { return tables_->pair(kinds_[m - 1], kinds_[m]); }  // of m and the one before it
    const std::int64_t *moved_at(Index statistic, Index m) const {
        return tables_->moved.data() + (statistic * tables_->links + table_at(m)) * tables_->states * tables_->states;
    }

  private:
    Index size() const { return static_cast<Index>(kinds_.size()); }
    double state_score(const TableBlock<double> &emissions, Index m, Index state) const;

    std::shared_ptr<const TruthTables> tables_;
    std::span<const std::int64_t> kinds_;
};

}  // namespace tallytree
