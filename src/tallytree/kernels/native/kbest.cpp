#include "kbest.h"

#include <tuple>

namespace tallytree {

KBest::KBest(const Run &run, std::span<const Index> root_cells)
    : run_(run),
      layout_(*run.layout_),
      skeleton_(run.skeleton_),
      choices_(run),
      scratch_(skeleton_.cardinalities.size(), 0) {
    if (layout_.segment_begin.size() > 2) throw BudgetExceeded("k-best");  // tables were overwritten
    const auto last = static_cast<std::int32_t>(layout_.tables.size()) - 1;
    top_.a = last;
    Node top{last + 1, -1};
    top.listed = true;
    const double constant = run_.constant();
    for (std::size_t i = 0; i < root_cells.size(); i++) {
        const Index at = address(last, choices_.root(root_cells[i]));
        const double value = run_.memory()[at] + constant;
        if (value == kNegativeInfinity) continue;
        top.waiting.push_back({value, static_cast<std::int32_t>(top.edges.size()), 0, 0});
        top.edges.push_back({at, static_cast<Index>(i), constant});
    }
    std::make_heap(top.waiting.begin(), top.waiting.end(), worse);
    nodes_.push_back(std::move(top));
}

KBest::Labellings KBest::next(Index count, const Poll &poll) {
    Meter meter(poll);
    Labellings result;
    const std::size_t variables = skeleton_.cardinalities.size();
    for (Index i = 0; i < count; i++, given_++) {
        find(0, given_, meter);
        const Node &top = nodes_[0];
        if (!(static_cast<std::size_t>(given_) < top.found.size())) break;
        result.assignments.resize(result.assignments.size() + variables);
        assign(given_, result.assignments.data() + result.assignments.size() - variables, meter);
        result.scores.push_back(top.found[given_].value);
        result.positions.push_back(top.edges[top.found[given_].edge].b);
    }
    return result;
}

// ---- the search --------------------------------------------------------------------------------------------------

// Finds derivations of a cell until there is one of this rank, or no more. A stack of its own: chains are long.
void KBest::find(std::int32_t number, std::int32_t rank, Meter &meter) {
    tasks_.assign(1, {number, rank});
    while (!tasks_.empty()) {
        meter.spend(16);
        const Task task = tasks_.back();
        Node &node = nodes_[task.node];
        if (settled(node, task.rank)) tasks_.pop_back();
        else if (!node.listed) list(node, meter);
        else if (follow(node)) take(node);
    }
}

// Collects the edges of a cell. Each waits with the best of its inputs: the tables have their values.
void KBest::list(Node &node, Meter &meter) {
    const Step &made = step(node);
    std::vector<Edge> edges;
    std::vector<Derivation> waiting;
    const auto add = [&](double value, Edge edge) {
        meter.spend(4);
        if (value == kNegativeInfinity) return;
        waiting.push_back({value, static_cast<std::int32_t>(edges.size()), 0, 0});
        edges.push_back(edge);
    };
    const Place here = place(node.table, node.address);
    if (made.verb == Verb::Unit) {
        node.found.push_back({0, -1, 0, 0});
        node.done = true;
    } else if (made.verb == Verb::Join) {
        choices_.join(node.table, here, [&](double x, double y, Place a, Place b) {
            add(x + y, {address(made.a, a), address(made.b, b), 0});
        });
    } else {
        Index rest = here.state;
        const auto scope = skeleton_.scopes[node.table];
        for (std::size_t i = scope.size(); i-- > 0; rest /= skeleton_.cardinalities[scope[i]])
            scratch_[scope[i]] = rest % skeleton_.cardinalities[scope[i]];
        choices_.eliminate(node.table, here, scratch_.data(),
                           [&](double x, double f, Index v, Place a) { add(x + f, {address(made.a, a), v, f}); });
    }
    std::make_heap(waiting.begin(), waiting.end(), worse);
    node.edges = std::move(edges);
    node.waiting = std::move(waiting);
    node.listed = true;
}

// Lets the successors of the last derivation wait with the others: the same edge with the next best of one input.
// (i, j) of a join follows (i, j - 1), and (i, 0) follows (i - 1, 0), so that each has one predecessor. False where an
// input must be searched first; it was put on the stack.
bool KBest::follow(Node &node) {
    if (node.followed == node.found.size()) return true;
    const Derivation last = node.found.back();
    Edge &edge = node.edges[last.edge];
    const Step &made = step(node);
    const bool join = made.verb == Verb::Join, along_a = !join || last.rank_b == 0;
    const auto a = input(edge.a, made.a), b = join ? input(edge.b, made.b) : -1;
    const bool ready_a = !along_a || ask(a, last.rank_a + 1), ready_b = !join || ask(b, last.rank_b + 1);
    if (!ready_a || !ready_b) return false;
    const auto has = [&](std::int32_t number, std::int32_t rank) {
        return static_cast<std::size_t>(rank) < nodes_[number].found.size();
    };
    if (along_a && has(a, last.rank_a + 1)) offer(node, last.edge, last.rank_a + 1, last.rank_b);
    if (join && has(b, last.rank_b + 1)) offer(node, last.edge, last.rank_a, last.rank_b + 1);
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
    const double y = step(node).verb == Verb::Join ? value(static_cast<std::int32_t>(~e.b), rank_b) : e.local;
    node.waiting.push_back({x + y, edge, rank_a, rank_b});
    std::push_heap(node.waiting.begin(), node.waiting.end(), worse);
}

void KBest::take(Node &node) {
    if (node.waiting.empty()) {
        node.done = true;
        return;
    }
    std::pop_heap(node.waiting.begin(), node.waiting.end(), worse);
    node.found.push_back(node.waiting.back());
    node.waiting.pop_back();
}

// Ties go to the edge that decoding would take, then to the lower ranks.
bool KBest::worse(const Derivation &x, const Derivation &y) {
    if (x.value != y.value) return x.value < y.value;
    return std::tie(x.edge, x.rank_a, x.rank_b) > std::tie(y.edge, y.rank_a, y.rank_b);
}

// Walks down from the top along one derivation.
void KBest::assign(std::int32_t rank, std::int64_t *assignment, Meter &meter) {
    std::vector<Task> open{{0, rank}};
    while (!open.empty()) {
        const Task task = open.back();
        open.pop_back();
        Node &node = nodes_[task.node];
        if (!settled(node, task.rank)) find(task.node, task.rank, meter);
        const Derivation d = node.found.at(task.rank);
        const Step &made = step(node);
        if (made.verb == Verb::Unit) continue;
        Edge &edge = node.edges[d.edge];
        if (made.verb == Verb::Eliminate && made.variable >= 0) assignment[made.variable] = edge.b;
        open.push_back({input(edge.a, made.a), d.rank_a});
        if (made.verb == Verb::Join) open.push_back({input(edge.b, made.b), d.rank_b});
    }
}

// ---- cells and nodes ---------------------------------------------------------------------------------------------

const Step &KBest::step(const Node &node) const {
    return static_cast<std::size_t>(node.table) < skeleton_.steps.size() ? skeleton_.steps[node.table] : top_;
}

double KBest::value(std::int32_t number, std::int32_t rank) const {
    const Node &node = nodes_[number];
    return rank == 0 ? run_.memory()[node.address] : node.found[rank].value;
}

Index KBest::address(std::int32_t table, Place place) const {
    const TableLayout &t = layout_.tables[table];
    return t.base + place.state * t.stride + layout_.start[t.runs_begin + place.run] + place.cell;
}

// The inverse: a state's runs lie one after the other in rows; in cells, each run has the states side by side.
Place KBest::place(std::int32_t table, Index address) const {
    const TableLayout &t = layout_.tables[table];
    const Index offset = address - t.base, *start = layout_.start.data() + t.runs_begin;
    const Index state = layout_.rows ? (offset - start[0]) / t.stride : 0;  // rows share what lies between them
    const Index within = offset - state * t.stride;
    const Index run = std::upper_bound(start, start + t.runs, within) - start - 1, rest = within - start[run];
    return layout_.rows ? Place{state, run, rest} : Place{rest, run, 0};
}

std::int32_t KBest::input(Index &at, std::int32_t table) {
    if (at >= 0) {
        const auto [entry, fresh] = numbers_.try_emplace(at, static_cast<std::int32_t>(nodes_.size()));
        if (fresh) nodes_.push_back({table, at});
        at = ~static_cast<Index>(entry->second);
    }
    return static_cast<std::int32_t>(~at);
}

}  // namespace tallytree
