// Greedy elimination orders. Eliminating a variable connects its neighbours; each heuristic picks the
// variable whose elimination looks cheapest now:
//   min-fill    fewest new edges
//   min-degree  fewest neighbours
//   min-weight  smallest table over the variable and its neighbours
//   min-tally   the same, and among equals the one with the fewest variables below it: tables with few tallies
//               first, so that a chain is eaten from both ends
// and two orders that sweep a frontier over the graph, so that few messages have to be joined:
//   natural     as numbered          sweep    breadth first from a variable far out (Cuthill-McKee)
#include "plan/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>

namespace tallytree {
namespace {

using Adjacency = std::vector<std::vector<std::int32_t>>;

Adjacency interaction_graph(Index variables, std::span<const ScopeBlock> scopes) {
    Adjacency graph(variables);
    for (const ScopeBlock &block : scopes)
        for (Index k = 0; k < block.count; k++)
            for (auto u : block.row(k))
                for (auto v : block.row(k))
                    if (u != v) graph[u].push_back(v);
    for (auto &neighbours : graph) {
        std::sort(neighbours.begin(), neighbours.end());
        neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
    }
    return graph;
}

bool adjacent(const Adjacency &graph, std::int32_t u, std::int32_t v) {
    return std::binary_search(graph[u].begin(), graph[u].end(), v);
}

void connect(Adjacency &graph, std::int32_t u, std::int32_t v) {
    auto &n = graph[u];
    auto at = std::lower_bound(n.begin(), n.end(), v);
    if (at == n.end() || *at != v) n.insert(at, v);
}

// A hub is last anyway: from this degree on, its fill is taken to be the most it can be.
constexpr std::size_t kHub = 48;

Index fill_in(const Adjacency &graph, std::int32_t v) {
    const auto &n = graph[v];
    const auto size = static_cast<Index>(n.size());
    if (n.size() > kHub) return size * (size - 1) / 2;
    Index missing = 0;
    for (std::size_t i = 0; i < n.size(); i++)
        for (std::size_t j = i + 1; j < n.size(); j++) missing += !adjacent(graph, n[i], n[j]);
    return missing;
}

class Greedy {
  public:
    Greedy(std::span<const std::int32_t> cardinalities, Adjacency graph, OrderMethod method, std::uint64_t seed,
           const Poll &poll)
        : graph_(std::move(graph)),
          method_(method),
          random_(seed),
          meter_(poll),
          version_(cardinalities.size(), 0),
          gone_(cardinalities.size(), false),
          received_(cardinalities.size()),
          below_(cardinalities.size(), 0) {
        for (auto n : cardinalities) bits_.push_back(std::llround(std::log2(std::max(n, 1)) * 1e6));
        weight_ = bits_;
        for (std::size_t v = 0; v < graph_.size(); v++)
            for (auto u : graph_[v]) weight_[v] += bits_[u];
    }

    std::vector<std::int32_t> run() {
        const auto count = static_cast<std::int32_t>(graph_.size());
        for (std::int32_t v = 0; v < count; v++) push(v);
        std::vector<std::int32_t> order;
        order.reserve(count);
        while (!queue_.empty()) {
            const Entry top = queue_.top();
            queue_.pop();
            if (gone_[top.variable] || top.version != version_[top.variable]) continue;
            eliminate(top.variable);
            order.push_back(top.variable);
        }
        return order;
    }

  private:
    struct Entry {
        Index price, second;
        std::uint64_t tie;
        std::int32_t variable;
        std::int32_t version;
        bool operator<(const Entry &o) const {  // std::priority_queue keeps the largest on top
            return std::tie(o.price, o.second, o.tie, o.variable) < std::tie(price, second, tie, variable);
        }
    };

    Index price(std::int32_t v) const {
        switch (method_) {
            case OrderMethod::MinFill:
                return fill_in(graph_, v);
            case OrderMethod::MinDegree:
                return static_cast<Index>(graph_[v].size());
            default:
                return weight_[v];
        }
    }

    std::uint64_t tie_breaker() {  // splitmix64: the same on every platform
        if (random_ == 0) return 0;
        std::uint64_t z = (random_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }

    void push(std::int32_t v) { queue_.push({price(v), below_[v], tie_breaker(), v, ++version_[v]}); }

    void eliminate(std::int32_t v) {
        const auto neighbours = graph_[v];
        gone_[v] = true;
        if (method_ == OrderMethod::MinTally) send(v, neighbours);
        for (auto u : neighbours) {
            auto &n = graph_[u];
            n.erase(std::lower_bound(n.begin(), n.end(), v));
            weight_[u] -= bits_[v];
            meter_.spend(static_cast<double>(n.size()) / 16 + 10);
        }
        for (std::size_t i = 0; i < neighbours.size(); i++)
            for (std::size_t j = i + 1; j < neighbours.size(); j++) join(neighbours[i], neighbours[j]);
        for (auto u : touched_by(neighbours)) push(u);
        graph_[v].clear();
    }

    void join(std::int32_t u, std::int32_t v) {
        meter_.spend(20);
        if (adjacent(graph_, u, v)) return;
        connect(graph_, u, v);
        connect(graph_, v, u);
        weight_[u] += bits_[v];
        weight_[v] += bits_[u];
    }

    // The variables whose price may have changed; fill also changes one step further out.
    std::vector<std::int32_t> touched_by(const std::vector<std::int32_t> &neighbours) {
        std::vector<std::int32_t> touched(neighbours);
        if (method_ == OrderMethod::MinFill)
            for (auto u : neighbours)
                if (graph_[u].size() <= kHub) touched.insert(touched.end(), graph_[u].begin(), graph_[u].end());
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        meter_.spend(static_cast<double>(touched.size()) * 100);
        return touched;
    }

    // The message of v to its neighbours covers all that the messages it received do, which are used up.
    void send(std::int32_t v, const std::vector<std::int32_t> &neighbours) {
        Index covered = 1;
        for (auto message : received_[v]) {
            covered += messages_[message].covers;
            for (auto u : messages_[message].scope) below_[u] -= messages_[message].covers;
            messages_[message].covers = 0;
        }
        for (auto u : neighbours) {
            received_[u].push_back(static_cast<std::int32_t>(messages_.size()));
            below_[u] += covered;
        }
        messages_.push_back({covered, neighbours});
    }

    struct Message {
        Index covers;  // variables below it; 0 once it is used up
        std::vector<std::int32_t> scope;
    };

    Adjacency graph_;
    OrderMethod method_;
    std::uint64_t random_;
    Meter meter_;
    std::vector<Index> bits_, weight_;  // logarithms of cardinalities, in millionths: sums are exact
    std::vector<std::int32_t> version_;
    std::vector<bool> gone_;
    std::vector<std::vector<std::int32_t>> received_;
    std::vector<Index> below_;  // per variable: what the messages it holds cover
    std::vector<Message> messages_;
    std::priority_queue<Entry> queue_;
};

// Breadth first from `start` over what `seen` has left; neighbours by degree.
std::vector<std::int32_t> breadth_first(const Adjacency &graph, std::int32_t start, std::vector<bool> &seen) {
    std::vector<std::int32_t> found{start};
    seen[start] = true;
    for (std::size_t i = 0; i < found.size(); i++) {
        auto next = graph[found[i]];
        std::stable_sort(next.begin(), next.end(), [&](auto u, auto v) { return graph[u].size() < graph[v].size(); });
        for (auto u : next)
            if (!seen[u]) {
                seen[u] = true;
                found.push_back(u);
            }
    }
    return found;
}

std::vector<std::int32_t> sweep(const Adjacency &graph) {
    const auto count = static_cast<std::int32_t>(graph.size());
    std::vector<bool> seen(count, false), probe(count, false);
    std::vector<std::int32_t> order;
    for (std::int32_t v = 0; v < count; v++) {
        if (seen[v]) continue;
        const auto far = breadth_first(graph, v, probe).back();  // a variable at the rim of its component
        for (auto u : breadth_first(graph, far, seen)) order.push_back(u);
    }
    return order;
}

}  // namespace

std::vector<std::int32_t> elimination_order(std::span<const std::int32_t> cardinalities,
                                            std::span<const ScopeBlock> scopes, OrderMethod method, std::uint64_t seed,
                                            const Poll &poll) {
    const auto count = static_cast<Index>(cardinalities.size());
    if (method == OrderMethod::Natural) {
        std::vector<std::int32_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        return order;
    }
    Adjacency graph = interaction_graph(count, scopes);
    if (method == OrderMethod::Sweep) return sweep(graph);
    return Greedy(cardinalities, std::move(graph), method, seed, poll).run();
}

}  // namespace tallytree
