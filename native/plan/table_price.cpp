#include "plan/table_price.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tallytree {
namespace {

// Units of work: an operation, a loop along a row of tallies, and a step. In wide graphs, rows of several tallies have
// loops of their own, where rows of one are states that follow each other.
constexpr double kOperation = 0.07, kLoop = 1.5, kWideLoop = 6, kStep = 150;
// A cell of tables that are rolled, so that they stay in the cache; one of other tables; and one of them that does not
// fit into the cache any more, and is written to fresh memory.
constexpr double kRolled = 0.25, kCell = 0.4, kFresh = 0.5, kCached = 6e6;
// An operation and a cell of small tables that are rolled: those of chains.
constexpr double kFewStates = 32, kQuick = 0.04, kSmallRolled = 0.12;
// The part of all combinations of the tallies of one, two and three statistics that certainly
// occurs, but for exceptions.
constexpr std::array<double, 4> kOccur = {1, 1, 0.28, 0.14};

// Whether tables are rolled (plan/rolling.h): that takes many of them, and rows much longer than what a segment
// adds to a tally.
bool rolled(Index statistics, double steps, double states, double cells) {
    constexpr double kLeast = 2e6, kLong = 3.5;
    return statistics == 1 && steps >= 256 && cells >= kLeast && cells >= kLong * std::sqrt(steps) * states;
}

// How many tallies each table has, and how many rows of them.
class Sizes {
  public:
    Sizes(const Skeleton &skeleton, const LayoutRequest &request)
        : skeleton_(skeleton), request_(request), count_(static_cast<Index>(request.caps.size())) {
        const TallyRanges ranges(skeleton, request);
        const auto size = static_cast<Index>(skeleton.steps.size());
        low_.assign(size * count_, 0);
        high_.assign(size * count_, 0);
        constant_.assign(count_, 0);
        for (const auto ref : skeleton.constant_shifts)
            constant_[skeleton.statistic_of[ref.block]] += ranges.low(ref.block, ref.row);
        for (Index t = 0; t < size; t++) add(t, ranges);
        tallies.resize(size);
        rows.resize(size);
        for (Index t = 0; t < size; t++) count(t);
    }

    std::vector<double> tallies, rows;

  private:
    // The least and the largest sum below a table.
    void add(Index t, const TallyRanges &ranges) {
        const Step &step = skeleton_.steps[t];
        for (const auto input : {step.a, step.b})
            for (Index p = 0; p < count_ && input >= 0; p++) {
                low_[t * count_ + p] += low_[input * count_ + p];
                high_[t * count_ + p] += high_[input * count_ + p];
            }
        for (const auto ref : skeleton_.shift_refs[t]) {
            const Index p = skeleton_.statistic_of[ref.block];
            low_[t * count_ + p] += ranges.low(ref.block, ref.row);
            high_[t * count_ + p] += ranges.high(ref.block, ref.row);
        }
    }

    // Those that can still end in the window, and below the caps.
    void count(Index t) {
        const Index root = static_cast<Index>(skeleton_.steps.size()) - 1;
        double all = 1, widest = 1;
        for (Index p = 0; p < count_; p++) {
            const Index low = low_[t * count_ + p], high = high_[t * count_ + p];
            const Index least = request_.window.low[p] - constant_[p] - (high_[root * count_ + p] - high);
            const Index most = request_.window.high[p] - constant_[p] - (low_[root * count_ + p] - low);
            const Index cap = request_.caps[p] == kUncapped ? high : std::min(high, low + request_.caps[p]);
            const auto width = static_cast<double>(std::min(cap, most) - std::max(low, least) + 1);
            all *= std::max(width, 1.0);
            widest = std::max(widest, width);
        }
        tallies[t] = all;
        rows[t] = all / widest;
    }

    const Skeleton &skeleton_;
    const LayoutRequest &request_;
    Index count_;
    std::vector<Index> low_, high_, constant_;
};

double loop(const Skeleton &skeleton, double tallies) { return skeleton.width > 1 && tallies > 1 ? kWideLoop : kLoop; }

}  // namespace

TablePrice price_of_tables(const Skeleton &skeleton, const LayoutRequest &request) {
    const Sizes sizes(skeleton, request);
    TablePrice price;
    double loops = 0, cells = 0, states = 0;
    for (std::size_t t = 0; t < skeleton.steps.size(); t++) {
        const Step &step = skeleton.steps[t];
        const auto kept = static_cast<double>(step.kept_states);
        states += skeleton.states[t];
        cells += skeleton.states[t] * sizes.tallies[t];
        if (step.verb == Verb::Join) {
            const double a = sizes.tallies[step.a], b = sizes.tallies[step.b], fewer = std::min(a, b);
            price.operations += kept * fewer * std::min(std::max(a, b), sizes.tallies[t]);
            loops += loop(skeleton, sizes.tallies[t]) * kept * std::min(a * sizes.rows[step.b], b * sizes.rows[step.a]);
        } else if (step.verb == Verb::Eliminate) {
            const double ways = kept * static_cast<double>(step.gone.count * step.fresh);
            price.operations += ways * sizes.tallies[step.a];
            loops += loop(skeleton, sizes.tallies[step.a]) * ways * sizes.rows[step.a];
        }
    }
    const auto statistics = static_cast<Index>(request.caps.size());
    const double occur = kOccur[std::min<Index>(statistics, std::ssize(kOccur) - 1)];
    const auto steps = static_cast<double>(skeleton.steps.size());
    price.work = occur * loops + kStep * steps;
    if (rolled(statistics, steps, states, cells) && states < kFewStates * steps)
        price.work += kQuick * price.operations + kSmallRolled * cells;
    else if (rolled(statistics, steps, states, cells)) price.work += kOperation * price.operations + kRolled * cells;
    else
        price.work +=
            occur * (kOperation * price.operations + kCell * cells) + kFresh * std::max(occur * cells - kCached, 0.0);
    return price;
}

}  // namespace tallytree
