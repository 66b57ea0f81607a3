// Passes and bands along a chain whose variables all have the same number of states: rows in order, no tables of steps.
#pragma once

#include "bounds/local_tables.h"
#include "bounds/messages.h"
#include "kernels/chain_pass.h"
#include "tables/run.h"

namespace tallytree::bounds {

class ChainMessages : public Messages {
  public:
    ChainMessages(const LocalTables &tables, const ChainKernels &kernels);

    // Whether the program is that of such a chain, and rows and links fit the memory.
    static bool fits(const LocalTables &tables, double memory_limit);
    static double bytes(const LocalTables &tables);

    Pass pass(const Prices &prices, Meter &meter) override;
    bool recall(const Prices &prices) override;
    double best(std::int64_t *labelling) const override;
    bool band(double budget, double most_work, Meter &meter) override;
    std::span<const Cell> tallies() const override { return tallies_; }
    void decode(Index number, std::int64_t *labelling) const override;
    Index cells() const override { return static_cast<Index>(cells_.size()); }

  private:
    // Going down the chain: the tally of what has been decided, and the cell before.
    struct Joined {
        Index key;
        double regret;
        std::int32_t from;
    };
    // The cells of one state at one position.
    struct Node {
        std::int32_t state;
        bool same;  // the cells of the node before: nothing else could be chosen
        Index begin, end;
        double least;  // regret
    };
    struct Edge {
        Index node;
        double regret;
    };

    void copy_links();
    void copy_rows();
    void sum_stretches();
    const double *row(Index t) const { return kept_[current_].priced + t * width_; }
    // What each state at a position would make of a state of the next one; returns the best.
    double weigh(Index t, Index next);
    Index key_of(Index t, Index state) const;
    void find_best(Pass &pass);
    Index best_key(Index t) const { return key_of(t, kept_[current_].states[t]); }
    bool step_down(Index t, double budget, Index first);
    void fill(Index t, Index state, double budget);
    void end_band();

    const LocalTables &tables_;
    const ChainKernels &kernels_;
    Packing packing_;
    Index length_, states_, width_;
    std::vector<std::vector<double>> forward_, backward_;  // links, and with the next position's state first
    std::vector<std::int32_t> link_of_;
    std::vector<const double *> links_, back_links_;
    std::vector<std::int32_t> variable_;  // at each position
    struct Kept {                         // of a pass
        bool there = false;
        Prices prices{};
        double *priced = nullptr;          // messages with the prices of the position's counts
        std::vector<std::int32_t> states;  // of the best labelling
    };
    std::array<Kept, 4> kept_;  // the last few, in turns
    std::size_t current_ = 0;
    Arena memory_;  // of all rows: theirs, and the next two
    double *late_ = nullptr;
    std::int32_t *counts_ = nullptr;
    struct Share {  // of a stretch: what its local numbers add to messages, and their roundings
        double largest = 0, roundings = 0;
        Prices reach{};
    };
    std::vector<Share> shares_;
    std::vector<double> weighed_;
    std::vector<Joined> cells_;
    std::vector<Node> nodes_;
    std::vector<Index> first_;  // node of each position; those of the last position come first
    std::vector<std::vector<Edge>> into_;
    std::vector<Index> reached_;
    std::vector<Cell> tallies_;
    std::vector<Index> origin_;  // of each of them, in cells_
    Merger<Joined> merger_;
};

}  // namespace tallytree::bounds
