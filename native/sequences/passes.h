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
    Index positions = 0, units = 0;
    std::vector<double> share;

    Split() = default;
    Split(Index length, std::size_t count, double all)
        : positions(length), units(static_cast<Index>(count)), share(static_cast<std::size_t>(length) * count, all) {}
    const double *row(Index t) const { return share.data() + t * units; }
    double *row(Index t) { return share.data() + t * units; }
    double at(Index t, std::int32_t unit) const { return row(t)[unit]; }
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
    Messages(const Sentences &sentences, const Histories &histories, const ChainKernels &kernels);

    // The messages at some prices; they stay until the next call. One pass takes about `operations`.
    double run(const Prices &prices, const Split &split);
    double operations() const { return operations_; }
    std::vector<std::int64_t> best() const;

    // Add all that can follow a history at a position, with a regret up to a limit, best first.
    void moves(Index t, std::int32_t history, double limit, std::vector<Move> &found) const;
    // The same in any order: visit(regret, the history that follows, units).
    template <class Visit>
    void next(Index t, std::int32_t history, double limit, Visit visit) const {
        const double most = most_after(t, history);
        each(t, history, [&](double x, Index, std::int32_t word, const Histories::Special *special) {
            const double regret = std::max(0.0, most - x);
            if (x == kNegativeInfinity || !(regret <= limit)) return;
            if (special) visit(regret, special->next, std::span<const std::int32_t>(special->units));
            else visit(regret, word, histories_.alone(word));
        });
    }

  private:
    double charged(Index t, std::span<const std::int32_t> units) const;
    Index before(Index t, std::int32_t history) const;
    double most_after(Index t, std::int32_t history) const;
    double special(Index t, Index before, Index label, const Histories::Special &special) const;
    double best_of(Index t, std::int32_t history, Index before, double row_best) const;
    void charge(Index t, const double *share);
    void values(Index t);
    // Scores of a position's labels after one before it; null at the first position.
    const double *pairs(Index t, Index before) const {
        return t ? chain_.pair[t].data() + before * chain_.labels[t] : nullptr;
    }
    // All labels at a position after a history, in order of words: those with something special as such.
    template <class Visit>
    void each(Index t, std::int32_t history, Visit visit) const {
        const std::int32_t *label_of = sentences_.label_of(t);
        const auto specials = histories_.specials(history);
        const Index from = before(t, history);
        const double *pair = pairs(t, from), *value = value_.data() + begin_[t];
        std::size_t at = 0;
        for (std::int32_t w = 0; w < chain_.words; w++) {
            const Index label = label_of[w];
            if (label < 0) continue;
            while (at < specials.size() && specials[at].word < w) at++;
            if (at < specials.size() && specials[at].word == w)
                visit(special(t, from, label, specials[at]), label, w, &specials[at]);
            else visit(pair ? pair[label] + value[label] : value[label], label, w, nullptr);
        }
    }

    const Sentences &sentences_;
    const Chain &chain_;
    const Histories &histories_;
    const ChainKernels &kernels_;
    double operations_ = 0, most_ = kNegativeInfinity;
    bool continues_ = false;                                     // whether any history has specials
    std::vector<std::pair<std::int32_t, std::int32_t>> single_;  // units of one word, and the word
    std::vector<double> price_;                                  // of each unit
    std::vector<double> cost_;                                   // by position and unit, where histories have specials
    std::vector<Index> begin_;                                   // where the labels of each position begin; by them:
    std::vector<double> value_;   // the label and all from there on, with nothing special before it
    std::vector<double> charge_;  // of the word alone
    std::vector<double> rest_;    // the best of all after it, where that is nothing special
    std::vector<double> beta_;    // by position and history with specials: the best of all from there on
};

}  // namespace tallytree::sequences
