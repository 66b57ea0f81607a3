// What is counted is what the kernels do (tables/upward_rows.cpp, upward_cells.cpp): calls, one for each row of tallies
// of the output; terms, the rows of the input that go into them; vectors of 64 bytes, as rows are padded to whole ones;
// and blocks that are written. Constants are nanoseconds, fitted to random tables whose layouts were known; nearly all
// tables take longer than this.
#include "plan/table_price.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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

// Local tables with more entries are not looked at: those of an order that is too wide may have thousands of millions.
constexpr Index kManyEntries = 1 << 16;

// What a step adds to the tally: for each statistic, for each entry of its local table.
void add_up(const Skeleton &skeleton, const LayoutRequest &request, Index t, std::vector<double> &sums) {
    const Index size = skeleton.steps[t].shift_size;
    sums.assign(size * std::ssize(request.caps), 0);
    each_counted(skeleton, request.shifts, t, [&](Index p, auto each) {
        each([&](Index x, std::int64_t count) { sums[p * size + x] += static_cast<double>(count); });
    });
}

struct Ends {
    double low = kLarge, high = kSmall;
    void meet(double x) {
        low = std::min(low, x);
        high = std::max(high, x);
    }
};

// The part of the pairs between the least and the largest tallies of two statistics that may occur: their sum and their
// difference have ends, too. Two states of a variable are never counted both, for example. From some of the steps.
double part_of_pairs(const Skeleton &skeleton, const LayoutRequest &request) {
    constexpr Index kSome = 64, kPlaces = 32;
    const Index steps = std::ssize(skeleton.steps), every = std::max<Index>(steps / kSome, 1);
    std::array<Ends, 4> all;  // of both, the sum and the difference
    all.fill({0, 0});
    std::vector<double> sums;
    for (Index t = 0; t < steps; t++) {
        const Index size = skeleton.steps[t].shift_size;
        if (t % every != 0 || skeleton.shift_refs[t].empty() || size > kManyEntries) continue;
        add_up(skeleton, request, t, sums);
        std::array<Ends, 4> here;
        for (Index x = 0; x < size; x++) {
            const double a = sums[x], b = sums[size + x];
            const std::array<double, 4> both{a, b, a + b, a - b};
            for (std::size_t i = 0; i < both.size(); i++) here[i].meet(both[i]);
        }
        for (std::size_t i = 0; i < all.size(); i++) {
            all[i].low += here[i].low;
            all[i].high += here[i].high;
        }
    }
    const auto &[a, b, sum, difference] = all;
    if (!(a.high > a.low) || !(b.high > b.low)) return 1;
    double part = 0;
    for (Index i = 0; i < kPlaces; i++) {
        const double x = a.low + (a.high - a.low) * (static_cast<double>(i) + 0.5) / kPlaces;
        const double low = std::max({b.low, sum.low - x, x - difference.high});
        const double high = std::min({b.high, sum.high - x, x - difference.low});
        part += std::max(high - low, 0.0) / (b.high - b.low) / kPlaces;
    }
    return part;
}

// How many of the statistics are independent: of two states, for example, all but a constant of the one count is the
// other.
class Independent {
  public:
    Independent(const Skeleton &skeleton, const LayoutRequest &request) : count_(std::ssize(request.caps)) {
        std::vector<double> sums, change(count_);
        for (Index t = 0; t < std::ssize(skeleton.steps) && std::ssize(basis_) < count_; t++) {
            const Index size = skeleton.steps[t].shift_size;
            if (skeleton.shift_refs[t].empty()) continue;
            if (size > kManyEntries) {
                skipped_ = true;
                continue;
            }
            add_up(skeleton, request, t, sums);
            for (Index x = 1; x < size && std::ssize(basis_) < count_; x++) {
                for (Index p = 0; p < count_; p++) change[p] = sums[p * size + x] - sums[p * size];
                add(change);
            }
        }
    }

    Index number() const { return skipped_ ? count_ : std::max<Index>(std::ssize(basis_), std::min<Index>(count_, 1)); }

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
    bool skipped_ = false;  // whether there are steps that were not looked at
    std::vector<std::vector<double>> basis_;
};

// The tallies of a table.
struct Extent {
    double rows = 1, length = 1;  // rows of them, and how long they are
    double ways = 1;              // by how many a step can move a tally
    double box = 1;               // those between the least and the largest
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
          low_(std::move(added.low)),
          high_(std::move(added.high)),
          tables_(skeleton.steps.size()) {
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
            ways *= static_cast<double>(high - low + 1);
            for (const auto input : {step.a, step.b}) {
                if (input < 0) continue;
                low += low_[input * count_ + p];
                high += high_[input * count_ + p];
            }
        }
        ways = std::min(ways, static_cast<double>(std::max<Index>(step.shift_size, 1)));
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
        return static_cast<double>(std::max<Index>(high - low + 1, 1));
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
        if (cells()) table.rows *= std::exchange(table.length, 1.0);
    }

    const Skeleton &skeleton_;
    const LayoutRequest *limits_;
    const Index count_, independent_;
    const double pairs_;
    std::vector<Index> low_, high_;
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
    added.independent = Independent(skeleton, request).number();
    if (added.independent == 2 && count == 2 && request.window.open) added.pairs = part_of_pairs(skeleton, request);
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
