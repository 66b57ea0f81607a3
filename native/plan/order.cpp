// Greedy elimination orders. Eliminating a variable connects its neighbours; each heuristic picks the
// variable whose elimination looks cheapest now:
//   min-fill    fewest new edges
//   min-degree  fewest neighbours
//   min-weight  smallest table over the variable and its neighbours
//   min-tally   the same, and among equals the one with the fewest variables below it: tables with few tallies
//               first, so that a chain is eaten from both ends
// one that looks at statistics alone:
//   min-open    those of one statistic after the other, so that few are open at a time (see open_order.h)
// and two orders that sweep a frontier over the graph, so that few messages have to be joined:
//   natural     as numbered          sweep    breadth first from a variable far out (Cuthill-McKee)
#include "plan/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/elimination_queue.h"
#include "plan/fill_counts.h"
#include "plan/open_order.h"

namespace tallytree {
namespace {

class Greedy {
  public:
    Greedy(std::span<const std::int32_t> cardinalities, Adjacency graph, OrderMethod method, std::uint64_t seed,
           const Poll &poll)
        : graph_(std::move(graph)),
          fills_(method == OrderMethod::MinFill ? graph_.size() : 0),
          method_(method),
          random_(seed),
          meter_(poll),
          queue_(cardinalities.size()),
          received_(cardinalities.size(), -1),
          below_(cardinalities.size(), 0),
          bits_(cardinalities.size()) {
        for (std::size_t v = 0; v < bits_.size(); v++)
            bits_[v] = v > 0 && cardinalities[v] == cardinalities[v - 1]
                           ? bits_[v - 1]
                           : std::llround(std::log2(std::max(cardinalities[v], 1)) * 1e6);
        weight_ = bits_;
        for (std::size_t v = 0; v < graph_.size(); v++)
            for (auto u : graph_[v]) weight_[v] += bits_[u];
    }

    std::vector<std::int32_t> run() {
        const auto count = static_cast<std::int32_t>(graph_.size());
        if (method_ == OrderMethod::MinFill) fills_.begin(graph_, meter_);
        for (std::int32_t v = 0; v < count; v++) queue_.add(v, now(v));
        queue_.begin();
        std::vector<std::int32_t> order;
        order.reserve(count);
        while (!queue_.empty()) {
            order.push_back(queue_.pop());
            eliminate(order.back());
        }
        return order;
    }

  private:
    Index price(std::int32_t v) const {
        switch (method_) {
            case OrderMethod::MinFill:
                return fills_[v];
            case OrderMethod::MinDegree:
                return static_cast<Index>(graph_[v].size());
            default:
                return weight_[v];
        }
    }

    // Splitmix64, which is the same on every platform; the variable itself without a seed.
    std::uint32_t tie_breaker(std::int32_t v) {
        if (random_ == 0) return static_cast<std::uint32_t>(v);
        std::uint64_t z = (random_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
    }

    EliminationQueue::Price now(std::int32_t v) { return {price(v), below_[v], tie_breaker(v)}; }

    void eliminate(std::int32_t v) {
        neighbours_.assign(graph_[v].begin(), graph_[v].end());
        const auto &neighbours = neighbours_;
        const bool counts_fill = method_ == OrderMethod::MinFill;
        if (method_ == OrderMethod::MinTally) send(v, neighbours);
        for (auto u : neighbours) {
            if (counts_fill) fills_.leave(graph_, u, neighbours);
            graph_.remove(u, v);
            weight_[u] -= bits_[v];
            meter_.spend(static_cast<double>(graph_[u].size()) / 16 + 10);
        }
        for (std::size_t i = 0; i < neighbours.size(); i++)
            for (std::size_t j = i + 1; j < neighbours.size(); j++) join(neighbours[i], neighbours[j]);
        // fill also changes one step further out
        if (counts_fill) neighbours_ = fills_.update(graph_, neighbours);
        const auto &changed = neighbours_;
        for (auto u : changed) queue_.change(u, now(u));
        meter_.spend(static_cast<double>(changed.size()) * 20);
    }

    void join(std::int32_t u, std::int32_t v) {
        meter_.spend(20);
        if (graph_.adjacent(u, v)) return;
        if (method_ == OrderMethod::MinFill) {
            fills_.connect(graph_, u, v);
            meter_.spend(static_cast<double>(std::min(graph_[u].size(), graph_[v].size())));
        }
        graph_.add(u, v);
        graph_.add(v, u);
        weight_[u] += bits_[v];
        weight_[v] += bits_[u];
    }

    // The message of v to its neighbours covers all that the messages it received do, which are used up.
    void send(std::int32_t v, const std::vector<std::int32_t> &neighbours) {
        Index covered = 1;
        for (auto i = received_[v]; i >= 0; i = receipts_[i].next) {
            const auto message = receipts_[i].message;
            covered += covers_[message];
            for (auto u : sent_[message]) below_[u] -= covers_[message];
            covers_[message] = 0;
        }
        for (auto u : neighbours) {
            receipts_.push_back({static_cast<std::int32_t>(covers_.size()), received_[u]});
            received_[u] = static_cast<std::int32_t>(receipts_.size()) - 1;
            below_[u] += covered;
        }
        covers_.push_back(covered);
        sent_.push_row(neighbours);
    }

    struct Receipt {
        std::int32_t message, next;
    };

    Adjacency graph_;
    FillCounts fills_;
    OrderMethod method_;
    std::uint64_t random_;
    Meter meter_;
    EliminationQueue queue_;
    std::vector<std::int32_t> received_;  // by each variable: the first receipt
    std::vector<Receipt> receipts_;
    std::vector<Index> below_;          // per variable: what the messages it holds cover
    std::vector<Index> bits_, weight_;  // logarithms of cardinalities, in millionths: sums are exact
    std::vector<Index> covers_;         // per message: variables below it; 0 once it is used up
    Ragged<std::int32_t> sent_;         // per message: to these
    std::vector<std::int32_t> neighbours_;
};

// Breadth first from `start` over what `seen` has left; neighbours by degree.
std::vector<std::int32_t> breadth_first(const Adjacency &graph, std::int32_t start, std::vector<bool> &seen) {
    std::vector<std::int32_t> found{start};
    seen[start] = true;
    for (std::size_t i = 0; i < found.size(); i++) {
        const auto first = static_cast<std::ptrdiff_t>(found.size());
        for (auto u : graph[found[i]])
            if (!seen[u]) {
                seen[u] = true;
                found.push_back(u);
            }
        const auto less = [&](auto u, auto v) {
            const auto a = graph[u].size(), b = graph[v].size();
            return a != b ? a < b : u < v;
        };
        std::sort(found.begin() + first, found.end(), less);
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

std::vector<std::int32_t> elimination_order(const PlanShape &shape, OrderMethod method, std::uint64_t seed,
                                            const Poll &poll) {
    if (method == OrderMethod::Natural) {
        std::vector<std::int32_t> order(shape.cardinalities.size());
        std::iota(order.begin(), order.end(), 0);
        return order;
    }
    if (method == OrderMethod::Sweep) return sweep(shape.graph());
    if (method == OrderMethod::MinOpen) return min_open_order(shape);
    return Greedy(shape.cardinalities, shape.graph(), method, seed, poll).run();
}

}  // namespace tallytree
