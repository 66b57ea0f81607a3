#include "chart_kbest.h"

#include <tuple>

namespace tallytree {

ChartKBest::ChartKBest(const ChartRun &run, std::span<const Index> root_cells) : choices_(run) {
    Node top;
    top.at.table = -1;
    top.listed = true;
    for (std::size_t i = 0; i < root_cells.size(); i++) {
        Edge edge{choices_.root(root_cells[i]), {}};
        edge.number = static_cast<std::int32_t>(i);
        top.waiting.push_back({choices_.value(edge.a), static_cast<std::int32_t>(top.edges.size()), 0, 0});
        top.edges.push_back(edge);
    }
    std::make_heap(top.waiting.begin(), top.waiting.end(), worse);
    nodes_.push_back(std::move(top));
}

ChartKBest::Trees ChartKBest::next(Index count, const Poll &poll) {
    Meter meter(poll);
    Trees result;
    for (Index i = 0; i < count; i++, given_++) {
        find(0, given_, meter);
        if (static_cast<std::size_t>(given_) >= nodes_[0].found.size()) break;
        const auto found = nodes_[0].found[given_];
        derive(given_, result.steps, meter);
        result.scores.push_back(found.value);
        result.positions.push_back(nodes_[0].edges[found.edge].number);
    }
    return result;
}

// Finds derivations of a cell until there is one of this rank, or no more.
void ChartKBest::find(std::int32_t number, std::int32_t rank, Meter &meter) {
    tasks_.assign(1, {number, rank});
    while (!tasks_.empty()) {
        meter.spend(16);
        const Task task = tasks_.back();
        Node &node = nodes_[task.node];
        if (settled(node, task.rank)) tasks_.pop_back();
        else if (!node.listed) list(node, meter);
        else if (follow(node)) {
            if (node.waiting.empty()) {
                node.done = true;
                continue;
            }
            std::pop_heap(node.waiting.begin(), node.waiting.end(), worse);
            node.found.push_back(node.waiting.back());
            node.waiting.pop_back();
        }
    }
}

// Collects the edges of a cell. Each waits with the best of its inputs: the tables have their values.
void ChartKBest::list(Node &node, Meter &meter) {
    const auto add = [&](double value, const Edge &edge) {
        meter.spend(4);
        if (value == kNegativeInfinity) return;
        node.waiting.push_back({value, static_cast<std::int32_t>(node.edges.size()), 0, 0});
        node.edges.push_back(edge);
    };
    if (choices_.closed(node.at)) {
        choices_.chains(node.at, [&](std::int32_t chain, double f, const ChartCell &from) {
            add(choices_.value(from) + f, {from, {}, -1, -1, chain, false, f});
        });
    } else if (choices_.width(node.at) > 1) {
        choices_.splits(node.at, [&](std::int32_t rule, double f, const ChartCell &a, const ChartCell &b) {
            add(choices_.value(a) + choices_.value(b) + f, {a, b, -1, -1, rule, true, f});
        });
    } else {
        node.found.push_back({choices_.value(node.at), -1, 0, 0});
        node.done = true;
    }
    std::make_heap(node.waiting.begin(), node.waiting.end(), worse);
    node.listed = true;
}

// Lets the successors of the last derivation wait with the others: the same edge with the next best of one input.
// (i, j) follows (i, j - 1), and (i, 0) follows (i - 1, 0), so that each has one predecessor. False where an input
// must be searched first; it was put on the stack.
bool ChartKBest::follow(Node &node) {
    if (node.followed == node.found.size()) return true;
    const Derivation last = node.found.back();
    const bool along_a = last.rank_b == 0;
    const auto a = node_of(node.edges[last.edge].a);
    const auto b = node.edges[last.edge].split ? node_of(node.edges[last.edge].b) : -1;
    node.edges[last.edge].node_a = a;
    node.edges[last.edge].node_b = b;
    const bool ready_a = ask(a, last.rank_a + (along_a ? 1 : 0)), ready_b = b < 0 || ask(b, last.rank_b + 1);
    if (!ready_a || !ready_b) return false;
    const auto has = [&](std::int32_t number, std::int32_t rank) {
        return static_cast<std::size_t>(rank) < nodes_[number].found.size();
    };
    if (along_a && has(a, last.rank_a + 1)) offer(node, last.edge, last.rank_a + 1, last.rank_b);
    if (b >= 0 && has(b, last.rank_b + 1)) offer(node, last.edge, last.rank_a, last.rank_b + 1);
    node.followed++;
    return true;
}

bool ChartKBest::ask(std::int32_t number, std::int32_t rank) {
    if (settled(nodes_[number], rank)) return true;
    tasks_.push_back({number, rank});
    return false;
}

void ChartKBest::offer(Node &node, std::int32_t edge, std::int32_t rank_a, std::int32_t rank_b) {
    const Edge &e = node.edges[edge];
    const double x = value(e.node_a, rank_a), y = e.split ? value(e.node_b, rank_b) : 0;
    node.waiting.push_back({x + y + e.local, edge, rank_a, rank_b});
    std::push_heap(node.waiting.begin(), node.waiting.end(), worse);
}

// Ties go to the edge that decoding would take, then to the lower ranks.
bool ChartKBest::worse(const Derivation &x, const Derivation &y) {
    if (x.value != y.value) return x.value < y.value;
    return std::tie(x.edge, x.rank_a, x.rank_b) > std::tie(y.edge, y.rank_a, y.rank_b);
}

// Walks down from the top along one derivation.
void ChartKBest::derive(std::int32_t rank, Ragged<ChartStep> &steps, Meter &meter) {
    const auto &root = nodes_[0].edges[nodes_[0].found[rank].edge];
    std::vector<Task> open{{node_of(root.a), nodes_[0].found[rank].rank_a}};
    while (!open.empty()) {
        const Task task = open.back();
        open.pop_back();
        Node &node = nodes_[task.node];
        if (!settled(node, task.rank)) find(task.node, task.rank, meter);
        const Derivation d = node.found.at(task.rank);
        const auto start = choices_.start(node.at), width = choices_.width(node.at);
        if (d.edge < 0) {
            steps.data.push_back({ChartStep::Word, node.at.symbol, start, width, 0});
            continue;
        }
        const Edge edge = node.edges[d.edge];
        const auto kind = edge.split ? ChartStep::Split : ChartStep::Chained;
        steps.data.push_back({kind, edge.number, start, width, edge.split ? choices_.width(edge.a) : 0});
        if (edge.split) open.push_back({node_of(edge.b), d.rank_b});
        open.push_back({node_of(edge.a), d.rank_a});
    }
    steps.close_row();
}

std::int32_t ChartKBest::node_of(const ChartCell &at) {
    const auto [entry, fresh] = numbers_.try_emplace(choices_.address(at), static_cast<std::int32_t>(nodes_.size()));
    if (fresh) {
        nodes_.emplace_back();
        nodes_.back().at = at;
    }
    return entry->second;
}

}  // namespace tallytree
