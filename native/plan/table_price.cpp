#include "plan/table_price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace tallytree {
namespace {

// Units of work: an operation, a loop along a row of tallies, and a step.
constexpr double kOperation = 0.07, kLoop = 1.5, kStep = 150;
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

// How many of the statistics are independent: of two states, for example, all but a constant of the one count is the
// other.
class Independent {
  public:
    Independent(const Skeleton &skeleton, const LayoutRequest &request) : count_(std::ssize(request.caps)) {
        std::vector<double> sums, change(count_);
        for (std::size_t t = 0; t < skeleton.steps.size() && std::ssize(basis_) < count_; t++) {
            const auto refs = skeleton.shift_refs[t];
            const Index size = skeleton.steps[t].shift_size;
            if (refs.empty()) continue;
            sums.assign(size * count_, 0);
            for (std::size_t i = 0; i < refs.size(); i++) {
                const std::int64_t *table = request.shifts[refs[i].block].row(refs[i].row);
                double *out = sums.data() + skeleton.statistic_of[refs[i].block] * size;
                walk_factor(skeleton.shift_loops[skeleton.shift_refs.begin[t] + static_cast<Index>(i)],
                            [&](Index at, Index n, Index stride) {
                                for (Index x = 0; x < n; x++) *out++ += static_cast<double>(table[at + x * stride]);
                            });
            }
            for (Index x = 1; x < size && std::ssize(basis_) < count_; x++) {
                for (Index p = 0; p < count_; p++) change[p] = sums[p * size + x] - sums[p * size];
                add(change);
            }
        }
    }

    Index number() const { return std::max<Index>(std::ssize(basis_), std::min<Index>(count_, 1)); }

  private:
    // What is left of a change of the tally without the parts that are known.
    void add(std::vector<double> &change) {
        for (const auto &known : basis_) {
            const auto pivot =
                std::find_if(known.begin(), known.end(), [](double v) { return v != 0; }) - known.begin();
            const double times = change[pivot] / known[pivot];
            for (Index p = 0; p < count_; p++)
                change[p] = std::abs(change[p] - times * known[p]) < 1e-6 ? 0 : change[p] - times * known[p];
        }
        if (std::any_of(change.begin(), change.end(), [](double v) { return v != 0; })) basis_.push_back(change);
    }

    Index count_;
    std::vector<std::vector<double>> basis_;
};

// How many tallies each table has, and how many rows of them.
class Sizes {
  public:
    Sizes(const Skeleton &skeleton, const LayoutRequest &request, Index independent)
        : skeleton_(skeleton), request_(request), count_(std::ssize(request.caps)), independent_(independent) {
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
        widths_.clear();
        for (Index p = 0; p < count_; p++) {
            const Index low = low_[t * count_ + p], high = high_[t * count_ + p];
            const Index least = request_.window.low[p] - constant_[p] - (high_[root * count_ + p] - high);
            const Index most = request_.window.high[p] - constant_[p] - (low_[root * count_ + p] - low);
            const Index cap = request_.caps[p] == kUncapped ? high : std::min(high, low + request_.caps[p]);
            widths_.push_back(static_cast<double>(std::max<Index>(std::min(cap, most) - std::max(low, least) + 1, 1)));
        }
        std::sort(widths_.begin(), widths_.end());
        widths_.resize(independent_);
        tallies[t] = std::accumulate(widths_.begin(), widths_.end(), 1.0, std::multiplies<>());
        rows[t] = tallies[t] / (widths_.empty() ? 1 : widths_.back());
    }

    const Skeleton &skeleton_;
    const LayoutRequest &request_;
    Index count_, independent_;
    std::vector<Index> low_, high_, constant_;
    std::vector<double> widths_;
};

}  // namespace

TablePrice price_of_tables(const Skeleton &skeleton, const LayoutRequest &request) {
    const Index independent = Independent(skeleton, request).number();
    const Sizes sizes(skeleton, request, independent);
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
            loops += kept * std::min(a * sizes.rows[step.b], b * sizes.rows[step.a]);
        } else if (step.verb == Verb::Eliminate) {
            const double ways = kept * static_cast<double>(step.gone.count * step.fresh);
            price.operations += ways * sizes.tallies[step.a];
            loops += ways * sizes.rows[step.a];
        }
    }
    const auto statistics = static_cast<Index>(request.caps.size());
    const double occur = kOccur[std::min<Index>(independent, std::ssize(kOccur) - 1)];
    const auto steps = static_cast<double>(skeleton.steps.size());
    price.work = occur * kLoop * loops + kStep * steps;
    if (rolled(statistics, steps, states, cells) && states < kFewStates * steps)
        price.work += kQuick * price.operations + kSmallRolled * cells;
    else if (rolled(statistics, steps, states, cells)) price.work += kOperation * price.operations + kRolled * cells;
    else
        price.work +=
            occur * (kOperation * price.operations + kCell * cells) + kFresh * std::max(occur * cells - kCached, 0.0);
    return price;
}

}  // namespace tallytree
