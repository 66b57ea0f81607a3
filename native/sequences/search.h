// The search for the sentence that maximises a loss together with its score, by bounds: no machine is compiled, and
// only beginnings of sentences that can still win are made.
//
// For each length: passes at prices give bounds for every box of tallies; a box whose band is small is searched,
// one whose band is large is cut in two. BLEU is 0 where no n-gram of the longest kind is right: those sentences have
// all the loss there is, whatever else they count, so the best of them is found by one pass that forbids these n-grams.
#pragma once

#include <memory>

#include "bounds/bundle.h"
#include "sequences/band.h"

namespace tallytree::sequences {

enum class Kind { Bleu, RougeN, RougeL };

struct Problem {
    const Chain *chain;
    const ChainKernels *kernels;
    References references;  // words as numbers, -1 for those that no label stands for
    Kind kind;
    Index order;  // the longest n-grams of BLEU, the n-grams of ROUGE-N
    bool clip;
    double beta;
    Objective objective;
    std::vector<std::vector<std::int64_t>> starts;
};

// What rules out anything better among the sentences of one length with tallies in a box.
struct Part {
    Index length;
    std::size_t split;  // of the shares, in the outcome's list
    Prices prices;
    double most;
    Box box;
    double budget;
    Index cells;
};

struct Outcome {
    bool finished = false;
    double value = kNegativeInfinity, bound = -kNegativeInfinity, score = kNegativeInfinity;
    std::vector<std::int64_t> labelling;
    Tallies reached{};  // by the labelling
    Index tallies = 0;
    std::vector<Part> parts, passes;  // of passes: no box
    std::vector<Unit> units;
    std::vector<Split> splits;
    Index cells = 0;
    double bytes = 0;
};

// What counts, for sentences of any length.
struct Counted {
    GramCounter::Ends ends;
    Histories histories;
    explicit Counted(const Problem &problem);
};

struct Limits {
    double cells, bytes;
    Index few;  // cells of a box that is looked through before it is cut in two
};

// Shared by all lengths: the best so far, and the remaining work.
struct Incumbent {
    double value = kNegativeInfinity, score = kNegativeInfinity;
    std::vector<std::int64_t> labelling;
    Tallies reached{};
};

class LengthSearch {
  public:
    LengthSearch(const Problem &problem, const Counted &counted, Index length, Incumbent &best, Outcome &outcome,
                 const Limits &limits, Meter &meter);
    // The most of the first pass: without prices, or at those where the loss is level.
    double first();
    // False where the limits ended it; then `bound` says what is left.
    bool run();
    double bound() const { return bound_; }
    void offer(const std::vector<std::int64_t> &labelling);

  private:
    struct Todo {
        Box box;
        Index limit;
        double budget;
        double met = -kNegativeInfinity;  // the budget with which a beam went through it
    };
    // search.cpp
    void add(Split split);
    const Split &split(std::size_t number) const { return outcome_.splits[first_split_ + number]; }
    std::size_t splits() const { return outcome_.splits.size() - first_split_; }
    Box whole() const;
    bool without_longest();
    bool settle(Todo todo, std::vector<Todo> &left);
    bool halve(const Todo &todo, const Pass &pass, double budget, std::vector<Todo> &left) const;
    void record(const Pass &pass, const Box &box, double budget, Index cells);
    BandResult look(const Pass &pass, const Box &box, const BandLimits &limits);
    double value_of(const Pass &pass, const Box &box) const;

    // prices.cpp
    const Pass &pass(Prices prices, std::size_t split);
    double tolerance(const Pass &pass) const;
    double budget(const Pass &pass, const Box &box, Tallies *at = nullptr) const;
    bool dead(const Box &box) const;
    bool shrink(Box &box) const;
    std::size_t best_pass(const Box &box, double &budget) const;
    std::size_t improve(const Box &box, double &budget, int passes);
    void fixed_point();
    Prices charged(const Pass &pass, std::size_t split) const;
    Prices proximal(const Box &box, const Pass &center, double step);

    // shares.cpp
    bool better_shares(const Box &box);
    Split played(const Pass &center, const Box &box);

    const Problem &problem_;
    const Histories &histories_;
    Sentences sentences_;
    Measure measure_;
    std::unique_ptr<Counter> counter_;
    Messages messages_;
    Incumbent &best_;
    Outcome &outcome_;
    const Limits &limits_;
    Meter &meter_;
    Need need_;
    Band band_;
    bounds::Bundle bundle_;
    double sizes_, unit_;  // of scores; what rounding can do to a sum of size 1
    double most_price_;
    Box whole_;
    bool chain_;  // whether tallies of longer n-grams are no larger
    std::vector<Pass> passes_;
    std::vector<Prices> charged_;  // of the labelling of each pass
    std::size_t first_split_;      // in the outcome's list
    std::size_t messages_at_ = 0;
    int share_searches_ = 0, steps_played_ = 0;
    std::vector<double> used_;  // by position and unit: how often late sentences had it
    Tallies best_tallies_{};
    double best_value_ = kNegativeInfinity;  // of this length
    double bound_ = kNegativeInfinity;
};

Outcome search(const Problem &problem, const Limits &limits, const Poll &poll);

}  // namespace tallytree::sequences
