// The search for the best labelling among single tallies: those that a constraint allows, or all where the labelling
// that most violates a margin is wanted and the losses of all tallies stand in a table. For sentences, trees and
// images, by the thousand.
//
// The same as search.h with single tallies in place of boxes: each plain pass bounds the score of every
// tally, and a tally *lives* until a pass shows that it cannot reach the best value known. The budget of a
// pass is the largest regret that a labelling with a living tally can have there.
#pragma once

#include <optional>

#include "bounds/bundle.h"
#include "bounds/messages.h"
#include "bounds/tally_goal.h"
#include "kernels/tally_lists.h"

namespace tallytree::bounds {

class TallySearch {
  public:
    explicit TallySearch(const TallyKernels &kernels) : kernels_(kernels) {}

    struct Candidate {
        Few<Index> tally;
        double score;  // up to rounding
        Index number;  // of the band
    };
    struct Limits {
        double work;  // in units of work, about a nanosecond each
        double band;  // the work of one band, which needs memory in proportion
        double room;  // the same, for the memory that there is at the moment: throws OutOfRoom beyond that
        bool equals;  // whether to go on where many labellings are as good as each other
    };
    // Looks for the labellings that may be the best, up to rounding; the messages are used until the next run. False
    // where it has not found them within the limits, or has no proof that there are no others.
    bool run(TiedMessages &messages, const TallyGoal &asked, std::optional<Few<double>> start, Limits limits,
             Meter &meter);
    std::span<const Candidate> candidates() const { return candidates_; }
    // The labelling of a candidate: a state for each variable.
    void decode(std::size_t i, std::int64_t *states) const {
        const auto size = static_cast<std::size_t>(measures_.variables);
        if (asked_.count == 1) messages_->decode(candidates_[i].number, states);
        else std::copy_n(decoded_.begin() + static_cast<std::ptrdiff_t>(i * size), size, states);
    }
    // Whether there is one labelling alone that may be the best.
    bool unique() const;
    // Where the budget was least: a place to start from when the scores have changed a little.
    const Few<double> &prices() const { return prices_; }
    // How far the scores of candidates can be off.
    double tolerance() const { return off_; }
    // The memory that waits for the next run.
    double kept() const;
    // The work of a search over so many tallies, besides loading the model.
    static double least_work(double tallies);
    // What the lists take for each tally.
    static double bytes_each(Index statistics) { return 36 + 8 * static_cast<double>(statistics); }

  private:
    // What bounds all labellings that may be the best, in a pass: the best one there, or the second best where that one
    // is not as good as what is known. How much it is worth, and its tally.
    struct Top {
        double most = 0;
        Few<Index> tally{};
    };
    struct Spread {  // a budget, and the living tally that needs it
        double budget = kNegativeInfinity;
        Few<Index> tally{};
        Index number = -1;  // of the tally, in the lists
    };

    bool begin(const TallyGoal &asked);
    bool met() const { return value_ > kNegativeInfinity; }
    double next_pass() const;  // what another pass takes
    bool spent() const { return passes_.size() >= most_passes_ || work_ + next_pass() > most_work_; }
    void fill(const Pass &pass, double most);
    void fill_line(const Few<Index> &from, double most, double price);
    void fill_allowed(const Few<Index> &from, double most, double price);
    void find_needs();
    double need_of(double loss) const {
        if (!asked_.slack) return value_ - asked_.margin * loss + asked_.truth;
        return loss > 0 ? value_ / loss - asked_.margin + asked_.truth : kInfinity;
    }
    void pass(const Few<double> &prices);
    void meet(double score, const Few<Index> &tally, double slack);
    bool beaten(const Pass &pass) const;
    Top second(const Pass &pass);
    void cut(std::size_t pass);
    void bury();
    TallyLists lists(const Pass &pass, double most);
    Spread spread(std::size_t pass);
    void spread_all();
    std::optional<Few<double>> slope(const Few<Index> &tally) const;
    std::optional<Few<double>> next_prices();
    std::optional<Few<double>> bundle();
    std::optional<Few<double>> bracket();
    void recall(const Pass &pass);
    bool band(double budget, double most_work);
    double slack_of(const Pass &pass, double budget) const;
    double reach(std::size_t pass) const;
    bool finish();
    bool look(double most_work);
    bool peek(double budget, double most_work);
    // Calls use(tally, score, number) for the tallies of the last band, which is of some pass.
    template <class Use>
    void each_cell(const Pass &at, Use use) const {
        const Packing packing(asked_.statistics);
        const auto cells = messages_->tallies();
        for (std::size_t i = 0; i < cells.size(); i++) {
            Few<Index> tally{};
            packing.unpack(cells[i].key, tally);
            for (Index p = 0; p <= last_; p++) tally[p] += at.tally[p];
            use(tally, (at.most - cells[i].regret) - paid(at.prices.first(), tally), static_cast<Index>(i));
        }
    }
    bool settle_losses();
    bool keep_candidates(const Pass &at);
    bool settle_allowed();
    std::optional<Few<double>> towards_allowed();
    Few<double> gap_of(std::size_t pass) const;
    std::optional<std::pair<double, bool>> interpolated() const;
    bool widen();
    bool settle_lossless();
    bool begin_several();
    void meet_one_of_several(double value, const Few<Index> &tally);
    bool meet_several();
    bool several_tied(const Pass &at) const;
    double apart() const;
    bool keep_several(const Pass &at);
    bool decode_lossless(std::size_t place);
    std::int64_t *decoded(std::size_t i) { return decoded_.data() + i * static_cast<std::size_t>(measures_.variables); }
    std::optional<Few<Index>> lossless() const;
    double tolerance(const Pass &pass) const;

    TiedMessages *messages_ = nullptr;
    const TallyKernels &kernels_;
    Measures measures_;
    TallyGoal asked_{};
    Box box_;         // the relevant tallies that there can be
    Index last_ = 0;  // the last statistic
    Meter *meter_ = nullptr;
    double most_work_ = 0, most_band_ = 0, room_ = 0, work_ = 0, scale_ = 1, off_ = 0;
    double value_ = kNegativeInfinity;
    std::optional<Few<Index>> value_tally_, followed_;  // of the value; whose slope was followed
    // The tallies that live, and some that have died, at the beginning of each list: their losses, or the inverses of
    // these, the most that they score by the passes so far, the least that will do (inf for the dead), and what they
    // count.
    Index listed_ = 0, living_ = 0;
    LinedUp weight_, bound_, need_, over_;
    std::array<LinedUp, kMostStatistics> count_;
    std::vector<std::int32_t> numbers_;  // of some of them
    bool cold_ = true;                   // there were no prices to start from
    // The tally that prices favoured last, how much, and how often the budget has hardly changed since.
    std::optional<Few<Index>> bracketed_;
    double reach_ = 0, before_ = 0;
    int stalled_ = 0;
    bool equals_ = false;
    std::size_t most_passes_ = 0;
    double tau_ = 0;       // how far a step goes towards what is allowed,
    double expected_ = 0;  // and the bound that is half as good as it promises
    bool stale_ = false;   // a larger value has been met since needs were computed
    std::vector<Pass> passes_;
    std::vector<Top> tops_;        // of the passes
    std::vector<Spread> spreads_;  // of the passes
    bool renewed_ = true;          // needs, or the numbers of tallies, are not those of the spreads
    Bundle bundle_;
    std::size_t best_ = 0;  // the pass of the least budget
    Few<double> prices_{};
    std::vector<Candidate> candidates_;
    struct Met {
        double value;
        Few<Index> tally;
    };
    std::vector<Met> several_;           // the best that were met, where several are wanted
    std::vector<std::int64_t> decoded_;  // the labellings of the candidates then
};

}  // namespace tallytree::bounds
