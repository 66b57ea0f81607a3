// Tallies, prices and boxes of tallies for the search by bounds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "common.h"

namespace tallytree::bounds {

inline constexpr Index kMostStatistics = 3;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kUnit = std::numeric_limits<double>::epsilon();

using Tally = std::array<Index, kMostStatistics>;    // unused entries are 0
using Prices = std::array<double, kMostStatistics>;  // one for each statistic

inline double paid(const Prices &prices, const Tally &tally) {
    double sum = 0;
    for (Index p = 0; p < kMostStatistics; p++) sum += prices[p] * static_cast<double>(tally[p]);
    return sum;
}

// All tallies between two corners, both included.
struct Box {
    Tally low{}, high{};

    bool empty() const {
        for (Index p = 0; p < kMostStatistics; p++)
            if (low[p] > high[p]) return true;
        return false;
    }
    bool holds(const Tally &tally) const {
        for (Index p = 0; p < kMostStatistics; p++)
            if (tally[p] < low[p] || tally[p] > high[p]) return false;
        return true;
    }
    bool single() const { return low == high; }
    Index extent(Index p) const { return high[p] - low[p] + 1; }
    double tallies() const {
        double n = 1;
        for (Index p = 0; p < kMostStatistics; p++) n *= static_cast<double>(extent(p));
        return n;
    }
    // The largest size of a tally, priced.
    double reach(const Prices &prices) const {
        double sum = 0;
        for (Index p = 0; p < kMostStatistics; p++)
            sum += std::abs(prices[p]) * static_cast<double>(std::max(std::abs(low[p]), std::abs(high[p])));
        return sum;
    }
};

// Several offsets in one number, so that sums of tallies are sums of numbers: each has its own bits, signed.
class Packing {
  public:
    explicit Packing(Index statistics) : statistics_(statistics), bits_(statistics > 1 ? 63 / statistics : 62) {}

    Index largest() const { return (Index{1} << (bits_ - 1)) - 1; }
    template <class Offsets>
    Index pack(const Offsets &offset) const {
        std::uint64_t key = 0;  // keys of large counts wrap around; their differences are still correct
        for (Index p = 0; p < statistics_; p++)
            key += static_cast<std::uint64_t>(static_cast<Index>(offset[p])) * static_cast<std::uint64_t>(unit(p));
        return static_cast<Index>(key);
    }
    static Index difference(Index key, Index other) {
        return static_cast<Index>(static_cast<std::uint64_t>(key) - static_cast<std::uint64_t>(other));
    }
    Tally unpack(Index key) const {
        Tally offset{};
        const Index size = Index{1} << bits_;
        for (Index p = statistics_; p-- > 1;) {
            const Index field = key & (size - 1);
            offset[p] = field >= size / 2 ? field - size : field;
            key = (key - offset[p]) >> bits_;
        }
        offset[0] = key;
        return offset;
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
