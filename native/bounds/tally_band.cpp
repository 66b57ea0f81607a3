// Bands of passes: those that prove which labelling is the best, and smaller ones that may find a better value.
#include "bounds/tally_search.h"

namespace tallytree::bounds {

namespace {

constexpr std::size_t kMostCandidates = 64;

}  // namespace

// How large a band of a pass has to be to hold whatever may be the best: the labelling that has been ruled out is in
// it.
double TallySearch::reach(std::size_t pass) const {
    return spreads_[pass].budget + (passes_[pass].most - tops_[pass].most);
}

bool TallySearch::finish() {
    for (std::size_t i = 0; i < passes_.size(); i++)
        if (reach(i) < reach(best_)) best_ = i;
    return look(most_work_ - work_) && keep_candidates(passes_[best_]);
}

// Goes back to a pass, which is made again if its messages are gone.
void TallySearch::recall(const Pass &pass) {
    if (messages_->recall(pass.prices)) return;
    messages_->pass(pass.prices, *meter_);
    work_ += measures_.pass;
}

bool TallySearch::band(double budget, double most_work) {
    const double most = std::min(most_work, most_band_);
    const bool within = messages_->band(budget, std::min(most, room_), *meter_);
    work_ += messages_->work();
    if (!within && room_ < most) throw OutOfRoom();
    return within;
}

// A better value from a band that is too small to prove anything.
bool TallySearch::peek(double budget, double most_work) {
    const Pass at = passes_[best_];
    const double before = value_;
    if (!messages_->recall(at.prices)) return false;
    if (!band(budget, most_work)) return false;
    each_cell(at, [&](const Few<Index> &tally, double score, Index) { meet(score, tally, 4 * tolerance(at)); });
    if (!(value_ > before)) return false;
    cut(best_);
    return true;
}

double TallySearch::slack_of(const Pass &pass, double budget) const {
    return 2 * tolerance(pass) + kUnit * budget * measures_.sums;
}

// The band of the best pass.
bool TallySearch::look(double most_work) {
    const Pass at = passes_[best_];
    if (!(most_work > 0)) return false;
    if (spreads_[best_].budget == kNegativeInfinity) return true;  // nothing lives
    recall(at);
    const double budget = std::max(reach(best_), 0.0), slack = slack_of(at, budget);
    messages_->set_near(2 * slack);
    return band(budget + 4 * slack, most_work);
}

bool TallySearch::keep_candidates(const Pass &at) {
    if (asked_.count > 1) return keep_several(at);
    const double slack = off_ = 4 * tolerance(at);
    double best = asked_.slack ? 0 : kNegativeInfinity;
    bool inside = true;
    for (const bool choose : {false, true}) {
        if (spreads_[best_].budget == kNegativeInfinity) break;  // no band was needed: nothing lives
        each_cell(at, [&](const Few<Index> &tally, double score, Index number) {
            if (!box_.holds(tally)) {
                inside &= asked_.plain();  // every tally has a loss
                return;
            }
            if (asked_.slack && !(asked_.loss(tally) > 0)) return;
            if (!choose) best = std::max(best, asked_.value(tally, score));
            else if (asked_.value(tally, score + slack) >= best) candidates_.push_back({tally, score, number});
        });
    }
    if (!inside || candidates_.size() > kMostCandidates) return false;
    if (!candidates_.empty()) return best > (asked_.slack ? 4 * slack * asked_.largest : kNegativeInfinity);
    return asked_.slack && settle_lossless();
}

bool TallySearch::unique() const {
    if (asked_.count > 1) return true;  // or it would not have found them
    return candidates_.size() == 1 && !messages_->tied(candidates_[0].number);
}

}  // namespace tallytree::bounds
