#include "plan/tally_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "plan/sums.h"

namespace tallytree {
namespace {

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

}  // namespace

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

Index independent(const Skeleton &skeleton, const LayoutRequest &request) {
    return Independent(skeleton, request).number();
}

std::vector<Index> units(const Skeleton &skeleton, const LayoutRequest &request) {
    std::vector<Index> found(request.caps.size(), 0);
    for (std::size_t block = 0; block < request.shifts.size(); block++) {
        Index &unit = found[skeleton.statistic_of[block]];
        const auto &tables = request.shifts[block];
        for (Index k = 0; k < tables.count && unit != 1; k++) {
            const std::int64_t *row = tables.row(k);
            for (Index x = 1; x < tables.size && unit != 1; x++) unit = std::gcd(unit, row[x] - row[0]);
        }
    }
    for (Index &unit : found) unit = std::max<Index>(unit, 1);
    return found;
}

}  // namespace tallytree
