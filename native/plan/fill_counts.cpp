#include "plan/fill_counts.h"

#include <algorithm>
#include <utility>

namespace tallytree {
namespace {

// Calls `use` for the variables that are in both lists.
template <class Use>
void for_common(FillCounts::Variables one, FillCounts::Variables other, Use use) {
    constexpr std::size_t kMuchLonger = 16;
    const auto few = one.size() < other.size() ? one : other, many = one.size() < other.size() ? other : one;
    if (many.size() > kMuchLonger * few.size()) {
        for (auto v : few)
            if (std::binary_search(many.begin(), many.end(), v)) use(v);
        return;
    }
    for (auto a = few.begin(), b = many.begin(); a != few.end() && b != many.end();) {
        const auto u = *a, v = *b;
        if (u == v) use(u);
        a += u <= v;
        b += v <= u;
    }
}

Index count_common(FillCounts::Variables one, FillCounts::Variables other) {
    Index found = 0;
    for_common(one, other, [&](std::int32_t) { found++; });
    return found;
}

}  // namespace

void FillCounts::begin(const Adjacency &graph, Meter &meter) {
    for (std::size_t v = 0; v < graph.size(); v++) {
        count(graph, static_cast<std::int32_t>(v));
        meter.spend(is_hub(graph, static_cast<std::int32_t>(v)) ? 1 : 20 * static_cast<double>(graph[v].size()));
    }
}

void FillCounts::count(const Adjacency &graph, std::int32_t v) {
    const auto n = graph[v];
    const auto size = static_cast<Index>(n.size());
    counted_[v] = is_hub(graph, v) ? kUnknown : between_hubs_;
    Index joined = 0;  // each edge is seen from both ends
    if (!is_hub(graph, v))
        for (auto u : n) joined += count_common(n, graph[u]);
    fill_[v] = (size * (size - 1) - joined) / 2;
}

void FillCounts::change(std::int32_t v, Index by) {
    if (counted_[v] != kUnknown) fill_[v] += by;
    if (noted_[v]) return;
    noted_[v] = true;
    changed_.push_back(v);
}

// Pairs with the variable that goes no longer count.
void FillCounts::leave(const Adjacency &graph, std::int32_t neighbour, Variables neighbours) {
    const Index common = is_hub(graph, neighbour) ? 0 : count_common(graph[neighbour], neighbours);
    change(neighbour, common + 1 - static_cast<Index>(graph[neighbour].size()));
}

// Those that are connected to both have one pair less to connect; each of both has new ones.
void FillCounts::connect(const Adjacency &graph, std::int32_t u, std::int32_t v) {
    if (is_hub(graph, u) && is_hub(graph, v)) {
        between_hubs_++;
        return;
    }
    Index common = 0;
    for_common(graph[u], graph[v], [&](std::int32_t w) {
        common++;
        change(w, -1);
    });
    change(u, static_cast<Index>(graph[u].size()) - common);
    change(v, static_cast<Index>(graph[v].size()) - common);
}

std::vector<std::int32_t> FillCounts::update(const Adjacency &graph, Variables neighbours) {
    for (auto u : neighbours) {
        if (is_hub(graph, u) || counted_[u] != between_hubs_) count(graph, u);
        change(u, 0);
    }
    for (auto u : changed_) noted_[u] = false;
    return std::exchange(changed_, {});
}

}  // namespace tallytree
