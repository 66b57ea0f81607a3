// Plain passes over the sentences of one length, with charges for counted units.
//
// At prices μ no sentence has score - μ·tallies above what the pass finds: a unit that is used n times pays
// μ·min(n, cap), and is charged Σ_t share(t)·μ over the positions where it ends. With shares from 0 to 1 that add up
// to the cap at most, the charge is never more than what is paid. Prices are not negative.
#pragma once

#include "sequences/chain.h"
#include "sequences/histories.h"
#include "sequences/measure.h"

namespace tallytree::sequences {

// The shares of all units at all positions, one row for each position.
struct Split {
    std::vector<std::vector<double>> share;
    double at(Index t, std::int32_t unit) const { return share[t][unit]; }
};

struct Pass {
    Prices prices{};
    std::size_t split = 0;
    double most = kNegativeInfinity;
    std::vector<std::int64_t> labelling;
};

// What one more word makes of a history.
struct Move {
    double regret;  // what is lost against the best continuation
    double charge;
    std::int32_t label, next;
    std::span<const std::int32_t> units;
};

class Messages {
  public:
    Messages(const Sentences &sentences, const Histories &histories);

    // The messages at some prices; they stay until the next call. One pass takes about `operations`.
    double run(const Prices &prices, const Split &split);
    double operations() const { return operations_; }
    std::vector<std::int64_t> best() const;

    // All that can follow a history at a position, with a regret up to a limit, best first.
    void moves(Index t, std::int32_t history, double limit, std::vector<Move> &found) const;
    double cost(Index t, std::int32_t unit) const { return cost_[t][unit]; }

  private:
    double charged(Index t, std::span<const std::int32_t> units) const;
    double after(Index t, std::int32_t history, Index label) const;
    double best_of(Index t, std::int32_t history, Index before, double row_best, Index row_label) const;
    template <class Visit>
    void each(Index t, std::int32_t history, Visit visit) const;
    Index before(Index t, std::int32_t history) const;

    const Sentences &sentences_;
    const Chain &chain_;
    const Histories &histories_;
    double operations_ = 0;
    std::vector<std::vector<double>> beta_;   // by position and history: the best of all from there on
    std::vector<std::vector<double>> alone_;  // by position and label: with nothing special before it
    std::vector<std::vector<double>> cost_;   // by position and unit
};

}  // namespace tallytree::sequences
