#include "walk/kbest.h"

#include <tuple>

namespace tallytree {

static constexpr Index kBlock = 16;                       // what an allocation takes besides
static constexpr Index kEntry = 4 * sizeof(void *) + 16;  // of a node in the map from addresses

template <class T>
static Index allocated(const std::vector<T> &list) {
    return list.capacity() ? static_cast<Index>(list.capacity() * sizeof(T)) + kBlock : 0;
}

KBest::KBest(const Run &run, std::span<const Index> root_cells) : run_(run), layout_(*run.layout_), choices_(run) {
    if (layout_.segment_begin.size() > 2) throw BudgetExceeded("k-best needs every table");
    Node top{-1, -1};
    top.listed = true;
    const double constant = run_.constant();
    for (std::size_t i = 0; i < root_cells.size(); i++) {
        const Cell root = choices_.root(root_cells[i]);
        const Index at = choices_.address(root);
        const double value = run_.memory()[at] + constant;
        if (value == kNegativeInfinity) continue;
        top.waiting.push_back({value, static_cast<std::int32_t>(top.edges.size()), 0, 0});
        top.edges.push_back({at, 0, constant, root.table, -1, static_cast<std::int32_t>(i)});
    }
    std::make_heap(top.waiting.begin(), top.waiting.end(), worse);
    count(nodes_.emplace_back(std::move(top)));
}

KBest::Found KBest::next(const std::function<void(const Visit &)> &tell, Meter &meter) {
    find(0, given_, meter);
    const Node &top = nodes_[0];
    if (!has(top, given_)) return {};
    derive(given_, tell, meter);
    const Derivation &found = top.found[given_++];
    return {found.value, top.edges[found.edge].choice};
}

KBest::Found KBest::next_within(bool some, const std::function<void(const Visit &)> &tell, Meter &meter) {
    if (!some) return next(tell, meter);
    try {
        return next(tell, meter);
    } catch (const BudgetExceeded &) {
        return {};
    }
}

// ---- the search --------------------------------------------------------------------------------------------------

// Finds derivations of a cell until there is one of this rank, or no more. Keeps its own stack: chains are long.
void KBest::find(std::int32_t number, std::int32_t rank, Meter &meter) {
    tasks_.assign(1, {number, rank});
    while (!tasks_.empty()) {
        meter.spend(16);
        if (static_cast<double>(bytes_) > room_)
            throw BudgetExceeded("no room for further derivations", -1, static_cast<double>(bytes_));
        const Task task = tasks_.back();
        Node &node = nodes_[task.node];
        if (settled(node, task.rank)) tasks_.pop_back();
        else if (!node.listed) list(node, meter);
        else if (follow(node)) take(node);
        count(node);
    }
}

void KBest::count(Node &node) {
    const Index bytes = allocated(node.edges) + allocated(node.found) + allocated(node.waiting);
    bytes_ += bytes - node.bytes;
    node.bytes = bytes;
}

// Collects the edges of a cell. Each waits with the best of its inputs: the tables have their values.
void KBest::list(Node &node, Meter &meter) {
    std::vector<Edge> edges;
    std::vector<Derivation> waiting;
    choices_.ways(cell(node), [&](const Way &way) {
        meter.spend(4);
        if (way.value == kNegativeInfinity) return;
        waiting.push_back({way.value, static_cast<std::int32_t>(edges.size()), 0, 0});
        edges.push_back({choices_.address(way.a), way.b.table < 0 ? 0 : choices_.address(way.b), way.local, way.a.table,
                         way.b.table, static_cast<std::int32_t>(way.choice)});
    });
    if (choices_.source(node.table)) {
        node.found.push_back({run_.memory()[node.address], -1, 0, 0});
        node.done = true;
    }
    std::make_heap(waiting.begin(), waiting.end(), worse);
    edges.shrink_to_fit();
    waiting.shrink_to_fit();
    node.edges = std::move(edges);
    node.waiting = std::move(waiting);
    node.listed = true;
}

// Room for some more, so that adding them cannot fail.
template <class T>
static void make_room(std::vector<T> &list, std::size_t more) {
    if (list.size() + more > list.capacity()) list.reserve(2 * list.size() + more);
}

// Lets the successors of the last derivation wait with the others: the same edge with the next best of one input.
// (i, j) of two inputs follows (i, j - 1), and (i, 0) follows (i - 1, 0), so that each has one predecessor. False where
// an input must be searched first; it was put on the stack.
bool KBest::follow(Node &node) {
    if (node.followed == node.found.size()) return true;
    const Derivation last = node.found.back();
    Edge &edge = node.edges[last.edge];
    const bool two = edge.table_b >= 0, along_a = last.rank_b == 0;
    const auto a = input(edge.a, edge.table_a), b = two ? input(edge.b, edge.table_b) : -1;
    const bool ready_a = !along_a || ask(a, last.rank_a + 1), ready_b = !two || ask(b, last.rank_b + 1);
    if (!ready_a || !ready_b) return false;
    make_room(node.waiting, 2);  // both or none of them
    if (along_a && has(nodes_[a], last.rank_a + 1)) offer(node, last.edge, last.rank_a + 1, last.rank_b);
    if (two && has(nodes_[b], last.rank_b + 1)) offer(node, last.edge, last.rank_a, last.rank_b + 1);
    node.followed++;
    return true;
}

bool KBest::ask(std::int32_t number, std::int32_t rank) {
    if (settled(nodes_[number], rank)) return true;
    tasks_.push_back({number, rank});
    return false;
}

void KBest::offer(Node &node, std::int32_t edge, std::int32_t rank_a, std::int32_t rank_b) {
    const Edge &e = node.edges[edge];
    const double x = value(static_cast<std::int32_t>(~e.a), rank_a);
    const double y = e.table_b < 0 ? 0 : value(static_cast<std::int32_t>(~e.b), rank_b);
    node.waiting.push_back({x + y + e.local, edge, rank_a, rank_b});
    std::push_heap(node.waiting.begin(), node.waiting.end(), worse);
}

void KBest::take(Node &node) {
    if (node.waiting.empty()) {
        node.done = true;
        return;
    }
    node.found.push_back(node.waiting.front());
    std::pop_heap(node.waiting.begin(), node.waiting.end(), worse);
    node.waiting.pop_back();
}

// Ties go to the edge that decoding would take, then to the lower ranks.
bool KBest::worse(const Derivation &x, const Derivation &y) {
    if (x.value != y.value) return x.value < y.value;
    return std::tie(x.edge, x.rank_a, x.rank_b) > std::tie(y.edge, y.rank_a, y.rank_b);
}

// Walks down from the top along one derivation.
void KBest::derive(std::int32_t rank, const std::function<void(const Visit &)> &tell, Meter &meter) {
    std::vector<Task> open{{0, rank}};
    while (!open.empty()) {
        const Task task = open.back();
        open.pop_back();
        Node &node = nodes_[task.node];
        if (!settled(node, task.rank)) find(task.node, task.rank, meter);
        const Derivation d = node.found.at(task.rank);
        if (d.edge < 0) {
            tell({node.table, cell(node).place.state, -1, -1});
            continue;
        }
        Edge &edge = node.edges[d.edge];
        if (node.table >= 0) tell({node.table, -1, edge.choice, edge.table_a});
        if (edge.table_b >= 0) open.push_back({input(edge.b, edge.table_b), d.rank_b});
        open.push_back({input(edge.a, edge.table_a), d.rank_a});
    }
}

// ---- cells and nodes ---------------------------------------------------------------------------------------------

double KBest::value(std::int32_t number, std::int32_t rank) const {
    const Node &node = nodes_[number];
    return rank == 0 ? run_.memory()[node.address] : node.found[rank].value;
}

// From the address: a state's stretches lie one after the other in rows; in cells, each stretch has the states side by
// side.
Cell KBest::cell(const Node &node) const {
    const TableLayout &t = layout_.tables[node.table];
    const Index offset = node.address - t.base, *start = layout_.start.data() + t.stretches_begin;
    const Index state = layout_.rows ? (offset - start[0]) / t.stride : 0;  // rows share what lies between them
    const Index within = offset - state * t.stride;
    const Index stretch = std::upper_bound(start, start + t.stretches, within) - start - 1,
                rest = within - start[stretch];
    return {node.table, layout_.rows ? Place{state, stretch, rest} : Place{rest, stretch, 0}};
}

std::int32_t KBest::input(Index &at, std::int32_t table) {
    if (at >= 0) {
        auto entry = numbers_.find(at);
        if (entry == numbers_.end()) {
            nodes_.push_back({table, at});
            entry = numbers_.emplace(at, static_cast<std::int32_t>(nodes_.size()) - 1).first;
            bytes_ += static_cast<Index>(sizeof(Node)) + kEntry;
        }
        at = ~static_cast<Index>(entry->second);
    }
    return static_cast<std::int32_t>(~at);
}

}  // namespace tallytree
