// Trees one by one, best first, from the tables of a max-plus chart: the search of kbest.h over cells of items.
#pragma once

#include <deque>
#include <unordered_map>

#include "chart_choices.h"

namespace tallytree {

class ChartKBest {
  public:
    // The trees of the given root cells, all of them in one order. The run must outlive this.
    ChartKBest(const ChartRun &run, std::span<const Index> root_cells);

    struct Trees {
        std::vector<double> scores;
        std::vector<Index> positions;  // in `root_cells`
        Ragged<ChartStep> steps;
    };
    // Up to `count` more; fewer where there are no more.
    Trees next(Index count, const Poll &poll);

  private:
    // One way to make a cell: a chain from one cell, or a rule from two. Cells are known by node, made when needed.
    struct Edge {
        ChartCell a, b;
        std::int32_t node_a = -1, node_b = -1;
        std::int32_t number = 0;
        bool split = false;
        double local = 0;
    };
    struct Derivation {
        double value;
        std::int32_t edge, rank_a, rank_b;
    };
    struct Node {
        ChartCell at;
        bool listed = false, done = false;
        std::size_t followed = 0;
        std::vector<Edge> edges;
        std::vector<Derivation> found, waiting;
    };
    struct Task {
        std::int32_t node, rank;
    };

    static bool worse(const Derivation &x, const Derivation &y);
    static bool settled(const Node &node, std::int32_t rank) {
        return node.done || static_cast<std::size_t>(rank) < node.found.size();
    }
    double value(std::int32_t node, std::int32_t rank) const { return nodes_[node].found[rank].value; }
    std::int32_t node_of(const ChartCell &at);
    void find(std::int32_t node, std::int32_t rank, Meter &meter);
    void list(Node &node, Meter &meter);
    bool follow(Node &node);
    bool ask(std::int32_t node, std::int32_t rank);
    void offer(Node &node, std::int32_t edge, std::int32_t rank_a, std::int32_t rank_b);
    void derive(std::int32_t rank, Ragged<ChartStep> &steps, Meter &meter);

    const ChartChoices choices_;
    std::deque<Node> nodes_;                           // the first stands above the root cells
    std::unordered_map<Index, std::int32_t> numbers_;  // by address
    std::vector<Task> tasks_;
    std::int32_t given_ = 0;
};

}  // namespace tallytree
