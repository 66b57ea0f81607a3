// Tallies, prices and boxes of tallies for the search by bounds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common.h"

namespace tallytree::bounds {

inline constexpr Index kMostStatistics = 3;  // of losses, sentences and charts
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kUnit = std::numeric_limits<double>::epsilon();

// One number for each of a few statistics; unused ones are 0.
template <class T>
using Few = std::array<T, kMostStatistics>;

// One number for each of any number of statistics. The first few lie in place, since most questions have no more.
template <class T>
class Numbers {
  public:
    Numbers() = default;
    Numbers(const Few<T> &first) : first_(first) {}  // NOLINT: few numbers are numbers
    explicit Numbers(Index size) : more_(std::max<Index>(size - kMostStatistics, 0)) {}

    T &operator[](Index p) { return p < kMostStatistics ? first_[p] : more_[p - kMostStatistics]; }
    const T &operator[](Index p) const { return p < kMostStatistics ? first_[p] : more_[p - kMostStatistics]; }
    Few<T> &first() { return first_; }
    const Few<T> &first() const { return first_; }
    // How many there are behind the first ones.
    Index more() const { return static_cast<Index>(more_.size()); }
    // In the order of the first number in which two differ.
    bool operator==(const Numbers &) const = default;
    auto operator<=>(const Numbers &) const = default;

  private:
    Few<T> first_{};
    std::vector<T> more_;
};

using Tally = Numbers<Index>;
using Prices = Numbers<double>;

// Calls use(p) for the statistics of some numbers: always for the first few, in a loop that the compiler unrolls.
template <class Use>
void each_statistic(Index more, Use use) {
    for (Index p = 0; p < kMostStatistics; p++) use(p);
    for (Index p = kMostStatistics; p < kMostStatistics + more; p++) use(p);
}

inline double paid(const Few<double> &prices, const Few<Index> &tally) {
    double sum = 0;
    for (Index p = 0; p < kMostStatistics; p++) sum += prices[p] * static_cast<double>(tally[p]);
    return sum;
}

inline double paid(const Prices &prices, const Tally &tally) {
    double sum = 0;
    each_statistic(std::min(prices.more(), tally.more()),
                   [&](Index p) { sum += prices[p] * static_cast<double>(tally[p]); });
    return sum;
}

// All tallies between two corners, both included.
struct Box {
    Tally low{}, high{};

    bool empty() const {
        bool empty = false;
        each_statistic(low.more(), [&](Index p) { empty |= low[p] > high[p]; });
        return empty;
    }
    bool holds(const Tally &tally) const {
        bool inside = true;
        each_statistic(low.more(), [&](Index p) { inside &= low[p] <= tally[p] && tally[p] <= high[p]; });
        return inside;
    }
    bool holds(const Few<Index> &tally) const {
        bool inside = true;
        for (Index p = 0; p < kMostStatistics; p++) inside &= low[p] <= tally[p] && tally[p] <= high[p];
        return inside;
    }
    bool single() const { return low == high; }
    Index extent(Index p) const { return high[p] - low[p] + 1; }
    double tallies() const {
        double n = 1;
        each_statistic(low.more(), [&](Index p) { n *= static_cast<double>(extent(p)); });
        return n;
    }
    // The largest size of a tally, priced.
    double reach(const Prices &prices) const {
        double sum = 0;
        each_statistic(std::min(prices.more(), low.more()), [&](Index p) {
            sum += std::abs(prices[p]) * static_cast<double>(std::max(std::abs(low[p]), std::abs(high[p])));
        });
        return sum;
    }
};

// The same for a few statistics.
struct FewBox {
    Few<Index> low{}, high{};

    FewBox() = default;
    explicit FewBox(const Box &box) : low(box.low.first()), high(box.high.first()) {}
    bool holds(const Few<Index> &tally) const {
        bool inside = true;
        for (Index p = 0; p < kMostStatistics; p++) inside &= low[p] <= tally[p] && tally[p] <= high[p];
        return inside;
    }
    double tallies() const {
        double n = 1;
        for (Index p = 0; p < kMostStatistics; p++) n *= static_cast<double>(high[p] - low[p] + 1);
        return n;
    }
};

// Several offsets in one number, so that sums of tallies are sums of numbers: each has its own bits, signed.
class Packing {
  public:
    explicit Packing(Index statistics) : statistics_(statistics), bits_(statistics > 1 ? 63 / statistics : 62) {}

    // Whether there are bits for all offsets of statistics with so many tallies.
    bool holds(double span) const { return bits_ > 1 && span < static_cast<double>(largest()); }

    Index largest() const { return (Index{1} << (bits_ - 1)) - 1; }
    // The key of the offsets that offset(p) returns.
    template <class Offset>
    Index pack(Offset offset) const {
        std::uint64_t key = 0;  // keys of large counts wrap around; their differences are still correct
        for (Index p = 0; p < statistics_; p++)
            key += static_cast<std::uint64_t>(static_cast<Index>(offset(p))) * static_cast<std::uint64_t>(unit(p));
        return static_cast<Index>(key);
    }
    static Index difference(Index key, Index other) {
        return static_cast<Index>(static_cast<std::uint64_t>(key) - static_cast<std::uint64_t>(other));
    }
    static Index sum(Index key, Index other) {
        return static_cast<Index>(static_cast<std::uint64_t>(key) + static_cast<std::uint64_t>(other));
    }
    // Fills the offsets of a key.
    template <class Offsets>
    void unpack(Index key, Offsets &offset) const {
        const Index size = Index{1} << bits_;
        for (Index p = statistics_; p-- > 1;) {
            const Index field = key & (size - 1);
            offset[p] = field >= size / 2 ? field - size : field;
            key = (key - offset[p]) >> bits_;
        }
        offset[0] = key;
    }

  private:
    Index unit(Index p) const { return Index{1} << (bits_ * (statistics_ - 1 - p)); }
    Index statistics_, bits_;
};

// A compensated sum: about twice the precision.
class Sum {
  public:
    void add(double x) {
        const double next = value_ + x, of_x = next - value_;
        lost_ += (value_ - (next - of_x)) + (x - of_x);
        value_ = next;
    }
    void add(const Sum &other) {
        add(other.value_);
        lost_ += other.lost_;
    }
    double total() const { return std::abs(value_) == kInfinity ? value_ : value_ + lost_; }

  private:
    double value_ = 0, lost_ = 0;
};

}  // namespace tallytree::bounds
