// Steps between prices.
#pragma once

#include <numeric>

#include "bounds/tally.h"

namespace tallytree::bounds {

inline double inner(const Prices &x, const Prices &y) { return std::inner_product(x.begin(), x.end(), y.begin(), 0.0); }
inline double norm(const Prices &x) { return std::sqrt(inner(x, x)); }
inline Prices plus(const Prices &x, const Prices &y, double times = 1) {
    Prices sum;
    for (Index p = 0; p < kMostStatistics; p++) sum[p] = x[p] + times * y[p];
    return sum;
}

// The least of max_i (a_i + g_i·x) + |x|² / (2·tau): by weights of the cuts, moved from the worst to the best.
Prices proximal(const std::vector<double> &a, const std::vector<Prices> &g, double tau);

}  // namespace tallytree::bounds
