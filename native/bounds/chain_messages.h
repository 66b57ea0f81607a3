// Passes and bands along a chain, whose variables have about the same number of states: rows in order, no tables of
// steps.
#pragma once

#include "bounds/chain_rows.h"
#include "bounds/messages.h"
#include "kernels/chain_pass.h"

namespace tallytree::bounds {

class ChainMessages : public TiedMessages {
  public:
    explicit ChainMessages(const ChainKernels &kernels) : kernels_(kernels), merger_(cells_) {}

    // What a program takes.
    static double bytes(const LocalTables &tables, const ChainTables &chain);
    // The same for a chain with this many kinds of counts, and how many kinds fit in memory.
    static double bytes(const PlainChain &chain, double kinds);
    static double most_kinds(const PlainChain &chain, double memory_limit);

    // To be filled before `begin`. The memory is reused for the next chain.
    ChainRows &rows() { return rows_; }
    void begin();

    Measures measures() const override;
    Pass pass(const Prices &prices, Meter &meter) override;
    double pass_work() const override { return pass_work_; }
    // What it took to load the chain.
    double load_work() const;
    bool recall(const Prices &prices) override;
    void hold(const Prices &prices) override { held_ = prices; }
    double best(std::int64_t *labelling) const override;
    bool band(double budget, double most_work, Meter &meter) override;
    std::span<const Cell> tallies() const override { return tallies_; }
    double decode(Index number, std::int64_t *labelling) const override;
    Index cells() const override { return static_cast<Index>(cells_.size()); }
    const ChainKernels &kernels() const { return kernels_; }
    // Releases the messages; returns the bytes kept for the next chain.
    double rest();
    // The memory kept for the next band.
    double kept() const { return static_cast<double>(cells_.capacity() * sizeof(Joined)); }
    std::optional<Second> second(const Pass &pass) override;
    void set_near(double near) override { merger_.near = near; }
    bool tied(Index number) const override { return ties_[number]; }

  private:
    // On the way down the chain: the tally decided so far, and the previous cell.
    struct Joined {
        Index key;
        double regret;
        std::int32_t from;
        bool tied;  // with another way to the same tally
    };
    // The cells of one state at one position.
    struct Node {
        std::int32_t state;
        bool same;  // the cells of the previous node, because there is no choice
        Index begin, end;
        double least;  // regret
    };
    struct Level {  // a position with states other than the best
        Index position, node;
    };
    struct Edge {
        Index node;
        double regret;
        Index key;
    };

    double find_pass_work() const;
    double own_tables() const;  // positions whose table is not that of the one before
    void price_kinds(const Prices &prices);
    void price_links(const Prices &prices);
    const double *row(Index t) const { return kept_[current_].priced + t * rows_.width; }
    // What each state at a position would make of a state of the next one; returns the best.
    double weigh(Index t, Index next);
    Index choose(Index t, Index next);
    // Whether a position counts something together with the next one.
    bool linked(Index t) const { return t < std::ssize(rows_.link_kind); }
    const LinkKind &link_at(Index t) const { return rows_.link_kinds[rows_.link_kind[t]]; }
    // What a state counts at a position, with the state of the next one.
    Index key_of(Index t, Index state, Index next) const;
    Index count_of(Index t, Index p, Index state, Index next) const;
    double score_of(Index t, Index state, Index next) const;
    void find_best(Pass &pass);
    Index next_best(Index t) const { return t + 1 < rows_.length ? kept_[current_].states[t + 1] : 0; }
    Index best_key(Index t) const { return key_of(t, kept_[current_].states[t], next_best(t)); }
    bool step_down(Index t, double budget, Index first);
    bool fill(Index t, Index state, double budget);
    double band_bytes() const;
    bool skip(Index t, double budget, Index &first, Index &passed);
    bool end_band(Index first);

    ChainRows rows_;
    const ChainKernels &kernels_;
    Packing packing_{1};
    double pass_work_ = 0, many_ = 0, far_ = 0;  // tables of single positions beyond a few; and beyond the cache
    bool keys_add_up_ = false;                   // whether the keys of all positions, added up, are that of the tally
    struct Kept {                                // of a pass
        bool there = false;
        Prices prices{};
        double *priced = nullptr;          // messages with the prices of the position's counts
        std::vector<std::int32_t> states;  // of the best labelling
    };
    std::vector<Kept> kept_;  // the last few, in turns
    std::size_t current_ = 0;
    Prices held_{};                 // of the pass that is to stay
    Arena memory_;                  // of all rows
    LinedUp kind_prices_;           // for each kind: a row, at the prices of the last pass
    std::optional<Prices> linked_;  // those of the tables of neighbours that count
    LinedUp message_, weighed_;
    std::vector<std::uint8_t> from_;  // for each position, in rows of 8: the best state before each next one
    std::vector<Joined> cells_, ends_;
    std::vector<Node> nodes_;
    std::vector<Level> levels_;  // with the first of their nodes; the last position comes first
    std::vector<std::vector<Edge>> into_;
    std::vector<Index> reached_;
    std::vector<Cell> tallies_;
    std::vector<Index> origin_;  // of each of them, in cells_
    std::vector<bool> ties_;     // for each of them
    Merger<Joined> merger_;
    Merger<Joined> end_merger_{ends_};
};

}  // namespace tallytree::bounds
