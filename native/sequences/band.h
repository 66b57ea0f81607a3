// The cells within a budget: those that remain once prices and a box of tallies are chosen.
//
// A cell is a beginning of sentences: its history, its tallies, and what its counter remembers; of all beginnings that
// agree in these, the one with the highest score. Its *regret* is how much the bound has fallen on the way to it. A
// beginning whose regret is above its own budget, for the tallies that it can still end with, leads to nothing better.
#pragma once

#include "sequences/counters.h"

namespace tallytree::sequences {

struct Question {
    const Pass &pass;
    const Split &split;
    Box box;
    double value;      // to be beaten
    double tolerance;  // what rounding can do to a regret
    bool chain;        // whether tallies of longer n-grams are no larger
};

struct BandLimits {
    Index cells;  // in all
    double bytes;
    Index beam = 0;  // keep the best of each position alone; 0: all
};

struct BandResult {
    bool complete = false;  // all cells within the budget were looked at
    Index cells = 0;
    double bytes = 0;                     // at most, at a time
    std::vector<std::int64_t> labelling;  // the best that was met and is better than the value; or empty
};

class Band {
  public:
    Band(const Sentences &sentences, const Histories &histories, const Messages &messages, Counter &counter,
         const Measure &measure, const Objective &objective, Meter &meter);
    BandResult run(const Question &question, const BandLimits &limits);

  private:
    struct Cell {
        double regret, score, credit, budget;
        std::int32_t history, parent, label;
        Tallies tallies;
    };
    struct Layer {
        std::vector<Cell> cells;
        std::vector<std::uint64_t> bits;
        std::vector<std::int32_t> table;  // places of cells by their hash
        void clear(std::size_t expected);
    };
    struct Trace {
        std::int32_t parent, label;
    };
    // What has been found of a history at a position: moves with a regret up to a limit.
    struct Found {
        double limit = kNegativeInfinity;
        std::size_t first = 0, last = 0;
    };
    struct Known {
        std::uint64_t tallies;
        Index position = -1;
        double budget;
    };

    std::span<const Move> moves_of(Index t, std::int32_t history, double limit);
    double budget(Index t, const Tallies &tallies);
    double budget_of(Index t, const Tallies &tallies) const;
    std::vector<Counter::Bits> sweep(double budget);
    void expand(Index t, std::int32_t from);
    void put(const Cell &cell, const std::uint64_t *bits);
    std::uint64_t hash(const Cell &cell, const std::uint64_t *bits) const;
    bool same(const Cell &a, std::int32_t b, const std::uint64_t *bits) const;
    void rehash(std::size_t size);
    double regret_of(Index some) const;
    void thin(Index beam);
    std::vector<std::int64_t> traced(std::int32_t last) const;
    std::int32_t winner(double value) const;

    const Sentences &sentences_;
    const Histories &histories_;
    const Messages &messages_;
    Counter &counter_;
    const Measure &measure_;
    const Objective &objective_;
    Need need_;
    Meter &meter_;
    const Question *question_ = nullptr;
    std::vector<Move> moves_;
    std::vector<Found> found_;    // by history, at one position
    std::vector<Known> budgets_;  // by their hash
    std::size_t budgets_known_ = 0;
    Layer now_, next_;
    double enough_ = 0;  // cells with a larger regret are not in the beam
    std::vector<Trace> traces_;
    std::vector<std::size_t> traces_at_;      // where those of a position begin
    std::vector<std::int32_t> order_, kept_;  // of cells that are compared
    std::vector<std::uint64_t> made_;         // the bits of the cell that is being made
    Prices most_per_word_{};                  // how much one word can add to a tally
};

}  // namespace tallytree::sequences
