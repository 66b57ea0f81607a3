#include "bounds/proximal.h"

namespace tallytree::bounds {

Prices proximal(const std::vector<double> &a, const std::vector<Prices> &g, double tau) {
    std::vector<double> weight(a.size(), 0.0);
    const auto top = static_cast<std::size_t>(std::max_element(a.begin(), a.end()) - a.begin());
    weight[top] = 1;
    Prices sum = g[top];
    for (int round = 0; round < 400; round++) {
        std::size_t best = 0, worst = top;
        double least = kInfinity, most = kNegativeInfinity;
        for (std::size_t i = 0; i < a.size(); i++) {
            const double slope = tau * inner(g[i], sum) - a[i];
            if (slope < least) least = slope, best = i;
            if (weight[i] > 0 && slope > most) most = slope, worst = i;
        }
        if (best == worst || most - least <= 1e-12 * (1 + std::abs(least))) break;
        const Prices gap = plus(g[best], g[worst], -1);
        const double bend = tau * inner(gap, gap);
        const double moved = bend > 0 ? std::min((most - least) / bend, weight[worst]) : weight[worst];
        weight[best] += moved;
        weight[worst] -= moved;
        sum = plus(sum, gap, moved);
    }
    return plus({}, sum, -tau);
}

}  // namespace tallytree::bounds
