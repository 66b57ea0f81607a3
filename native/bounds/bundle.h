// Steps between prices: the proximal bundle method.
//
// A convex function of the prices is known by *cuts*, linear functions that are nowhere above it. The next step is the
// least of their maximum plus |x|² / (2·tau), as a weighted sum of the slopes of a few cuts.
#pragma once

#include <numeric>
#include <span>

#include "bounds/tally.h"

namespace tallytree::bounds {

inline double inner(const Few<double> &x, const Few<double> &y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}
inline double norm(const Few<double> &x) { return std::sqrt(inner(x, x)); }
inline Few<double> plus(const Few<double> &x, const Few<double> &y, double times = 1) {
    Few<double> sum;
    for (Index p = 0; p < kMostStatistics; p++) sum[p] = x[p] + times * y[p];
    return sum;
}

// Its memory is used again.
class Bundle {
  public:
    // Forgets all cuts.
    void begin(Index prices);
    // The function is at least value + slope·x.
    template <class Slope>
    void add(double value, const Slope &slope) {
        values_.push_back(value);
        for (Index p = 0; p < size_; p++) slopes_.push_back(slope[p]);
        is_cut_.push_back(1);
    }
    // The step may not make side·x[p] larger than the room there is.
    void limit(Index p, double side, double room);

    // One number for each price, until the next step.
    std::span<const double> step(double tau);
    // The maximum of the cuts after that step.
    double model() const { return level_; }

  private:
    const double *slope(Index i) const { return slopes_.data() + i * size_; }
    double product(const double *x, const double *y) const {
        double sum = 0;
        for (Index p = 0; p < size_; p++) sum += x[p] * y[p];
        return sum;
    }
    void find_sum();
    Index most_above(double tau);
    bool balance(double tau);
    bool solve(double tau);

    Index size_ = 0;              // how many prices
    std::vector<double> values_;  // of cuts, and of limits, where the room is a value below 0
    std::vector<double> slopes_;
    std::vector<char> is_cut_;
    std::vector<Index> active_;  // those with a weight
    std::vector<double> weights_, wanted_, sum_, move_, matrix_;
    double level_ = 0;
};

}  // namespace tallytree::bounds
