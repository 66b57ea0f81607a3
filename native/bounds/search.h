// The search for the best labelling by bounds: prices and a box that rule out nearly everything, then the band.
//
// With v the value of a known labelling, A(λ) the maximum at prices λ, and X a box that holds all tallies that can
// still win, the *budget* is D = A(λ) - min over X of (need(l) + λ·l): every labelling that reaches v with a tally in X
// has a regret of at most D, so the band of D holds it. Prices and box are improved until D is small; a box whose band
// is too large is cut in two.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "bounds/bundle.h"
#include "bounds/messages.h"
#include "bounds/need.h"
#include "bounds/subject.h"

namespace tallytree::bounds {

// A labelling that may be the best; the caller breaks ties.
struct Candidate {
    double score = kNegativeInfinity;
    std::vector<std::int64_t> labelling;
};

// What rules out anything better among the tallies of a box: no labelling with one of them reaches the value unless its
// regret at the prices is within the budget, and all of those have been examined.
struct Proven {
    Pass pass;
    Box box;
    double budget;
    Index cells;
};

// When to stop, even if something better may be left.
struct Stops {
    double work = kInfinity;                                 // in the units of the subject,
    double begun = 0;                                        // of which so much has been done
    std::size_t passes = std::numeric_limits<Index>::max();  // how many
    double gap = 0;                                          // between the bound and the value; see `Search::relax`
    bool bands = true;                                       // otherwise it stops at the least bound that prices give
};

// What is known after a pass.
struct Known {
    std::size_t passes;
    double bound, slack;     // no score is larger; a score that is less by up to twice the slack counts as equal
    const Prices &prices;    // of the pass with this bound
    const Candidate *found;  // the best labelling so far, or null
};
using Report = std::function<void(const Known &)>;

struct Outcome {
    bool finished = false, ended = false;   // ended: by a limit, of work or of memory
    bool impossible = false;                // no labelling has a tally of the box
    std::map<Tally, Candidate> candidates;  // by lexicographic tally
    double value = kNegativeInfinity, bound = kInfinity;
    std::vector<Proven> proven;
    std::vector<Pass> passes;
    Prices prices{};   // of the pass with the least bound, after `relax`
    double slack = 0;  // a value that is below the bound by up to twice as much counts as equal to it
    Index bands = 0, cells = 0;
    double work = 0;
};

class Search {
  public:
    Search(Messages &messages, const Subject &subject, const Need &need, const Stops &stops, const Poll &poll);

    // A labelling to start from.
    void offer(const std::vector<std::int64_t> &labelling);
    Outcome run(std::optional<Prices> start);
    // The score alone: first the least bound that prices give, then the bands; stops as soon as the gap is small
    // enough. Reports what is known after each pass.
    Outcome relax(const Report &report);

  private:
    struct Part {
        Box box;
        double budget = kInfinity;
        int depth = 0;
        bool operator<(const Part &other) const { return budget < other.budget; }
    };
    struct Cut {  // a linear lower bound of the budget as a function of the prices
        double value;
        Prices slope;
    };
    struct Aim {           // of a descent
        double good;       // a budget that is small enough
        double precision;  // how near to the least one
        int rounds;        // at most
        bool cuts;         // whether the box is cut on the way
    };
    struct Bracket {              // around the least budget, for one price
        double step;              // to the next price, until there is one on either side
        double nearest = 0;       // the least size of a slope
        double left = kInfinity;  // the odds that the last step began with, if it ended on the same side
    };
    enum class State { Done, Split, Spent };

    // search.cpp
    State settle(Part &part);
    State first_value(Part &part);
    double larger_budget(double budget);
    State look(Pass pass, double budget, double most_work, bool &within);
    void prove(const Box &box, double budget);
    void keep_candidates(const Pass &pass);
    void offer(const std::vector<std::int64_t> &labelling, const Evaluated &found);
    bool settle_lossless();
    void conclude(std::vector<Part> &left);
    void split(const Part &part, std::vector<Part> &parts) const;

    // prices.cpp
    Prices payable(Prices prices) const;
    const Pass &pass(const Prices &prices);
    void offer_best(const Pass &pass);
    void go_back(Prices prices);
    double tolerance(const Pass &pass) const;
    double budget(const Pass &pass, const Box &box) const;
    std::size_t best_pass(const Box &box, double &budget) const;
    void fixed_point(const Prices &start);
    bool shrink(Box &box);
    bool surely_alive(const Pass &pass, const Box &box) const;
    bool dead(const Box &box, std::size_t from) const;
    double highest_score(const Pass &pass, const Box &box) const;
    bool unreachable(const Box &box) const;
    Prices outside(const Box &box, const Prices &prices, const Tally &tally) const;
    bool separate(const Box &box);
    bool bracket(Box &box);

    // descent.cpp
    bool descend(Box &box);
    void tighten();
    bool useful(Index p, int side, const Box &box) const;
    Cut cut(const Pass &pass, const Box &box) const;
    double odds(const Pass &pass, double slope) const;
    std::optional<double> crossing(const Box &box, double precision, Bracket &known) const;
    bool chords(Box &box, const Aim &aim);
    void fill_bundle(const Box &box, const Prices &centre);
    bool bundle(Box &box, const Aim &aim);

    void note_bound(const Pass &pass);
    void note_band(const Pass &pass, double budget, double slack);
    double most_slack() const;
    bool closed() const { return bound_ - value_ <= std::max(stops_.gap, 2 * outcome_.slack); }
    double aim() const { return value_ == kNegativeInfinity ? 0.0 : value_; }
    double used() const { return work_ + need_.work(); }
    bool spent() const { return used() > stops_.work; }
    bool may_pass() const {
        return used() + messages_.pass_work() <= stops_.work && passes_.size() < stops_.passes && !closed();
    }

    Messages &messages_;
    const Subject &subject_;
    const Need &need_;
    Stops stops_;
    double work_;
    Report report_;
    double bound_ = kInfinity;  // on all scores, if there is a report
    Bundle bundle_;
    Meter meter_;
    Index statistics_;
    double value_ = kNegativeInfinity;
    Tally value_tally_{};
    std::vector<Pass> passes_;
    std::size_t last_ = 0;    // the pass whose messages are there
    std::size_t shrunk_ = 0;  // the box at hand has been cut by the passes before this one, for `shrunk_value_`
    double shrunk_value_ = kNegativeInfinity;
    double span_ = 1;                           // how many tallies a statistic can have
    double bend_ = 1;                           // how far the tally moves when a price does
    double wide_ = 1;                           // the largest that may be thought to be
    double good_ = 0;                           // a budget whose band is small
    double scale_ = 1;                          // about how large scores are
    Index last_cells_ = 0;                      // of the last band
    double grown_budget_ = 0, grown_work_ = 0;  // of the last of bands that grow
    std::size_t most_kept_ = 64;                // candidates, before they are looked through
    Outcome outcome_;
};

}  // namespace tallytree::bounds
