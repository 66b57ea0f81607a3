#include "sequences/alignment.h"

#include <algorithm>

namespace tallytree::sequences {
namespace {

// The pairs of a longest common subsequence, in order.
Pairs common(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    const Index n = static_cast<Index>(a.size()), m = static_cast<Index>(b.size());
    std::vector<double> equal(n * m);
    for (Index i = 0; i < n; i++)
        for (Index j = 0; j < m; j++) equal[i * m + j] = a[i] == b[j];
    return heaviest({equal.data(), n, m, m});
}

}  // namespace

Pairs heaviest(const Weights &given) {
    const Index n = given.positions, m = given.places;
    std::vector<double> most((n + 1) * (m + 1), 0.0);  // of what follows
    const auto weight = [&](Index i, Index j) { return given.weights[i * given.stride + j]; };
    const auto at = [&](Index i, Index j) -> double & { return most[i * (m + 1) + j]; };
    for (Index i = n - 1; i >= 0; i--)
        for (Index j = m - 1; j >= 0; j--)
            at(i, j) = std::max({weight(i, j) + at(i + 1, j + 1), at(i + 1, j), at(i, j + 1)});
    Pairs pairs;
    for (Index i = 0, j = 0; i < n && j < m;) {
        if (weight(i, j) > 0 && at(i, j) == weight(i, j) + at(i + 1, j + 1)) pairs.emplace_back(i++, j++);
        else (at(i + 1, j) >= at(i, j + 1) ? i : j)++;
    }
    return pairs;
}

std::vector<Index> aligned(std::span<const std::int32_t> sentence, std::span<const std::int32_t> reference) {
    const Index n = static_cast<Index>(sentence.size()), m = static_cast<Index>(reference.size());
    std::vector<Index> map(n, -1);
    Index equal = 0;
    for (Index t = 0; t < std::min(n, m); t++) {
        map[t] = t;
        equal += sentence[t] == reference[t];
    }
    const Pairs pairs = common(sentence, reference);
    if (static_cast<Index>(pairs.size()) <= equal) return map;
    std::fill(map.begin(), map.end(), -1);
    for (Index k = 1; k <= std::min(pairs[0].first, pairs[0].second); k++)
        map[pairs[0].first - k] = pairs[0].second - k;
    for (std::size_t i = 0; i < pairs.size(); i++) {
        const auto [t, j] = pairs[i];
        const Index next_t = i + 1 < pairs.size() ? pairs[i + 1].first : n;
        const Index next_j = i + 1 < pairs.size() ? pairs[i + 1].second : m;
        for (Index k = 0; t + k < next_t && j + k < next_j; k++) map[t + k] = j + k;
    }
    return map;
}

}  // namespace tallytree::sequences
