// What is counted is what the kernels do (tables/upward_rows.cpp, upward_cells.cpp): calls, one for each row of tallies
// of the output; terms, the rows of the input that go into them; vectors of 64 bytes, as rows are padded to whole ones;
// and blocks that are written. Constants are nanoseconds, fitted to random tables whose layouts were known; nearly all
// tables take longer than this.
#include "plan/table_price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "plan/tally_spread.h"

namespace tallytree {
namespace {

constexpr double kStep = 50, kScore = 1.2;                              // a step, and an entry of its local scores
constexpr double kCall = 18, kTerm = 1.5, kVector = 0.3, kBlock = 1.2;  // of eliminations; a block that is written
// Of eliminations that read the table below once for each state, where it has more vectors than the first cache.
constexpr double kVectorAgain = 0.55, kFirstCache = 512;
constexpr double kJoinCall = 28, kJoinPair = 1.2, kJoinVector = 0.45;  // of joins
// For each block beyond those that stay in the cache; beyond the memory that is kept from one run to the next; and
// where tables are rolled, but larger than the cache even so.
constexpr double kFar = 3, kCached = 1 << 17, kFresh = 7, kKept = 1 << 20, kRolledFar = 0.3, kNear = 1 << 19;
constexpr double kCell = 0.25, kCellShort = 1.2, kFewStates = 8;   // an operation of tables of cells, along states
constexpr double kLaidStep = 100, kLaidPair = 22, kLaidShift = 8;  // of a layout,
constexpr double kLaidCell = 15;                                   // and a pair of cells

constexpr double kShortRow = 1.5;  // tallies below which tables are of cells (plan/layout.cpp),
constexpr Index kShortRange = 3;   // as they are where all statistics have so few (plan/tally_ranges.cpp)

// The part of the tallies between the least and the largest that occurs, with up to three statistics: of the rows, and
// along each row.
constexpr std::array<double, 4> kRows = {1, 1, 1, 0.7}, kAlong = {1, 1, 0.75, 0.7};
constexpr double kWindowed = 0.75;  // and of each row, where a window cuts the other side off as well

double vectors(double length) { return std::ceil(length / kLanes); }

// Whether tables are rolled (plan/rolling.h): that takes rows much longer than what a segment adds to a tally, and so
// many tables that those of a segment, and one of each, take an eighth of them; they are not all of one size.
double segments_of(double steps) { return std::exp2(std::round(std::log2(std::sqrt(steps)))); }

bool rolled(Index statistics, double steps, double states, double cells) {
    constexpr double kLeast = 2e6, kLong = 3.5, kTimes = 8, kUneven = 1.1;
    const double segments = segments_of(steps);
    return statistics == 1 && steps >= kTimes * kUneven * (steps / segments + segments) && cells >= kLeast &&
           cells >= kLong * std::sqrt(steps) * states;
}

// The tallies of a table.
struct Extent {
    double rows = 1, length = 1;  // rows of them, and how long they are
    double ways = 1;              // by how many a step can move a tally
    double box = 1;               // those between the least and the largest
    double most = 1;              // the ways to choose what all steps below add
};

class Extents {
  public:
    // `limits`: caps and a window, or null.
    Extents(const Skeleton &skeleton, StepRanges added, const LayoutRequest *limits)
        : skeleton_(skeleton),
          limits_(limits),
          count_(skeleton.statistics),
          independent_(added.independent),
          pairs_(added.pairs),
          units_(std::move(added.units)),
          low_(std::move(added.low)),
          high_(std::move(added.high)),
          tables_(skeleton.steps.size()) {
        units_.resize(count_, 1);
        const auto size = static_cast<Index>(skeleton.steps.size());
        for (Index t = 0; t < size; t++) add_inputs(t);
        for (Index p = 0; p < count_; p++) {
            const Index low = low_[(size - 1) * count_ + p], high = high_[(size - 1) * count_ + p];
            all_short_ &= (limits ? std::min(high, limits->caps[p]) : high) - low < kShortRange;
        }
        for (Index t = 0; t < size; t++) measure(t);
    }

    const Extent &operator[](Index t) const { return tables_[t]; }
    bool cells() const { return all_short_ || independent_ < count_; }

  private:
    // From what the step adds to the least and the largest sum below its table.
    void add_inputs(Index t) {
        const Step &step = skeleton_.steps[t];
        double &ways = tables_[t].ways;
        for (Index p = 0; p < count_; p++) {
            Index &low = low_[t * count_ + p], &high = high_[t * count_ + p];
            ways *= tallies(p, low, high);
            for (const auto input : {step.a, step.b}) {
                if (input < 0) continue;
                low += low_[input * count_ + p];
                high += high_[input * count_ + p];
            }
        }
        ways = std::min(ways, static_cast<double>(std::max<Index>(step.shift_size, 1)));
        double &most = tables_[t].most = ways;
        for (const auto input : {step.a, step.b})
            if (input >= 0) most *= tables_[input].most;
    }

    double tallies(Index p, Index low, Index high) const {
        return static_cast<double>(std::max<Index>((high - low) / units_[p] + 1, 1));
    }

    // Those that can still end in the window, and below the caps.
    double width(Index t, Index p) const {
        const Index root = static_cast<Index>(skeleton_.steps.size()) - 1;
        Index low = low_[t * count_ + p], high = high_[t * count_ + p];
        if (limits_) {
            const Index least = limits_->window.low[p] - (high_[root * count_ + p] - high);
            const Index most = limits_->window.high[p] - (low_[root * count_ + p] - low);
            if (limits_->caps[p] != kUncapped) high = std::min(high, low + limits_->caps[p]);
            low = std::max(low, least);
            high = std::min(high, most);
        }
        return tallies(p, low, high);
    }

    // Rows are along the statistic of the widest range. If one depends on the others, they hold one tally each.
    void measure(Index t) {
        widths_.clear();
        for (Index p = 0; p < count_; p++) widths_.push_back(width(t, p));
        std::sort(widths_.begin(), widths_.end());
        Extent &table = tables_[t];
        for (Index i = 0; i < independent_; i++) {
            table.box *= widths_[i];
            table.length = widths_[i];
        }
        const auto many = std::min<std::size_t>(independent_, kRows.size() - 1);
        table.rows = std::max(kRows[many] * table.box / table.length, 1.0);
        const bool windowed = limits_ && !limits_->window.open;
        const double along = many == 2 && !windowed ? pairs_ : kAlong[many];
        table.length = std::max((many > 1 && windowed ? kWindowed : 1) * along * table.length, 1.0);
        if (cells() || std::ranges::any_of(units_, [](Index unit) { return unit > 1; }))
            table.rows *= std::exchange(table.length, 1.0);
        if (table.box <= table.most) return;
        table.box = table.rows = table.most;  // far apart from each other
        table.length = 1;
    }

    const Skeleton &skeleton_;
    const LayoutRequest *limits_;
    const Index count_, independent_;
    const double pairs_;
    std::vector<Index> units_, low_, high_;
    std::vector<Extent> tables_;
    std::vector<double> widths_;
    bool all_short_ = true;
};

// The steps of a program, added up.
class Pricing {
  public:
    Pricing(const Skeleton &skeleton, StepRanges ranges, const LayoutRequest *limits)
        : skeleton_(skeleton),
          extents_(skeleton, std::move(ranges), limits),
          cone_(static_cast<double>(skeleton.steps.size()) / segments_of(static_cast<double>(skeleton.steps.size()))) {
        for (Index t = 0; t < std::ssize(skeleton.steps); t++) {
            const Verb verb = skeleton.steps[t].verb;
            const double pairs = verb == Verb::Join ? join(t) : verb == Verb::Eliminate ? eliminate(t) : 1;
            const Extent &table = extents_[t];
            const auto shifts = static_cast<double>(skeleton.steps[t].shift_size);
            cells_ += skeleton.states[t] * table.rows * table.length;
            states_ += skeleton.states[t];
            blocks_ +=
                skeleton.states[t] * (is_cells(table) ? table.rows / kLanes : table.rows * vectors(table.length));
            price_.layout += kLaidStep + (is_cells(table) ? kLaidCell : kLaidPair) * pairs + kLaidShift * shifts;
            price_.bytes += 8 * (pairs + table.rows * table.ways) + 32 * table.rows + 4 * shifts + kListed;
        }
    }

    TablePrice found() {
        const auto steps = static_cast<double>(skeleton_.steps.size());
        const bool rolls = rolled(skeleton_.statistics, steps, states_, cells_);
        const bool near = rolls && 2 * blocks_ / std::sqrt(steps) <= kNear;
        const double fresh = near ? 0 : rolls ? kRolledFar : blocks_ > kKept ? kFresh : kFar;
        price_.work += kStep * steps + kBlock * blocks_ + fresh * std::max(blocks_ - kCached, 0.0);
        if (rolls) price_.work += again_;
        return price_;
    }

  private:
    static constexpr double kListed = sizeof(TableLayout) + sizeof(StepLayout) + 16;

    bool is_cells(const Extent &table) const { return extents_.cells() || table.length < kShortRow; }
    static double along_states(double states) { return states > kFewStates ? kCell : kCellShort; }

    // Returns how many pairs of rows a layout lists.
    double join(Index t) {
        const Step &step = skeleton_.steps[t];
        const Extent &a = extents_[step.a], &b = extents_[step.b], &out = extents_[t];
        const auto kept = static_cast<double>(step.kept_states);
        const double pairs = std::min(a.rows, b.rows) * std::min(std::max(a.rows, b.rows), out.rows);
        const double fewer = std::min(a.length, b.length);
        const double more = std::min(std::max(a.length, b.length), out.length);
        price_.operations += kept * std::min(a.box, b.box) * std::min(std::max(a.box, b.box), out.box);
        price_.work += is_cells(out)
                           ? along_states(kept) * kept * pairs
                           : kept * (kJoinCall * out.rows + (kJoinPair + kJoinVector * fewer * vectors(more)) * pairs);
        return pairs;
    }

    double eliminate(Index t) {
        const Step &step = skeleton_.steps[t];
        const Extent &in = extents_[step.a], &out = extents_[t];
        const auto kept = static_cast<double>(step.kept_states), fresh = static_cast<double>(step.fresh);
        const auto gone = static_cast<double>(step.gone.count);
        const double rows = std::min(in.rows, out.rows);
        price_.operations += kept * gone * fresh * in.box;
        price_.work += kScore * static_cast<double>(step.score_size);
        if (is_cells(out)) {
            price_.work += along_states(kept * fresh) * kept * gone * fresh * rows;
        } else {
            const double calls = kept * (step.shift_has_fresh ? fresh : 1), along = step.shift_has_fresh ? 1 : fresh;
            const double terms = calls * gone * rows;
            const bool again = calls > 1 && gone * in.rows * vectors(in.length) > kFirstCache;
            const double vector = again ? kVectorAgain : kVector * along;
            const auto taking = [&](double length) {
                return kCall * calls * out.rows + (kTerm + vector * vectors(length)) * terms;
            };
            price_.work += taking(out.length);
            again_ += kStep + taking(std::min(out.length, cone_));
        }
        return rows * out.ways;
    }

    const Skeleton &skeleton_;
    const Extents extents_;
    const double cone_;  // the tallies of a table that a labelling needs where tables are rolled (plan/needed.h)
    TablePrice price_;
    double again_ = 0;  // the work of computing these again
    double cells_ = 0, states_ = 0, blocks_ = 0;
};

}  // namespace

TablePrice price_of_tables(const Skeleton &skeleton, const LayoutRequest &request) {
    const TallyRanges ranges(skeleton, request);
    const auto count = std::ssize(request.caps);
    StepRanges added;
    added.independent = independent(skeleton, request);
    if (added.independent == 2 && count == 2 && request.window.open) added.pairs = part_of_pairs(skeleton, request);
    added.units = units(skeleton, request);
    added.low.assign(skeleton.steps.size() * count, 0);
    added.high = added.low;
    for (Index t = 0; t < std::ssize(skeleton.steps); t++)
        for (const auto ref : skeleton.shift_refs[t]) {
            const Index at = t * count + skeleton.statistic_of[ref.block];
            added.low[at] += ranges.low(ref.block, ref.row);
            added.high[at] += ranges.high(ref.block, ref.row);
        }
    LayoutRequest limits;  // on what the steps add, without constants
    limits.caps = request.caps;
    limits.window = request.window;
    for (const auto ref : skeleton.constant_shifts)
        for (auto *ends : {&limits.window.low, &limits.window.high})
            (*ends)[skeleton.statistic_of[ref.block]] -= ranges.low(ref.block, ref.row);
    return Pricing(skeleton, std::move(added), &limits).found();
}

TablePrice price_of_tables(const Skeleton &skeleton, const StepRanges &ranges) {
    return Pricing(skeleton, ranges, nullptr).found();
}

}  // namespace tallytree
