// Labellings one by one, best first, from the tables of a max-plus run.
//
// A table's cell holds the best score of the labellings below it with one tally; the second best, the third and so on
// are found when they are asked for (Huang and Chiang, "Better k-best parsing", 2005, algorithm 3). A labelling has one
// state for each variable and one tally for each table, so it is derived in exactly one way: nothing comes twice.
#pragma once

#include <deque>
#include <unordered_map>

#include "choices.h"

namespace tallytree {

class KBest {
  public:
    // The labellings of the given root cells, all of them in one order. The run must outlive this.
    KBest(const Run &run, std::span<const Index> root_cells);

    struct Labellings {
        std::vector<double> scores;
        std::vector<Index> positions;           // in `root_cells`
        std::vector<std::int64_t> assignments;  // one after the other
    };
    // Up to `count` more; fewer where there are no more.
    Labellings next(Index count, const Poll &poll);
    std::size_t variables() const { return skeleton_.cardinalities.size(); }

  private:
    // One way to make a cell from cells of the step's inputs.
    struct Edge {
        Index a, b;    // inputs: ~node, or an address where none was made yet; b of an elimination is the state
        double local;  // the local score; 0 for a join
    };
    // An edge, and which of its inputs' derivations it takes.
    struct Derivation {
        double value;
        std::int32_t edge, rank_a, rank_b;
    };
    // A cell that was visited.
    struct Node {
        std::int32_t table;
        Index address;
        bool listed = false;       // its edges are known
        bool done = false;         // no further derivation will be found
        std::size_t followed = 0;  // found derivations whose successors are waiting, or were
        std::vector<Edge> edges{};
        std::vector<Derivation> found{}, waiting{};  // best first; a heap
    };
    struct Task {
        std::int32_t node, rank;
    };

    static bool worse(const Derivation &x, const Derivation &y);
    static bool settled(const Node &node, std::int32_t rank) {
        return node.done || static_cast<std::size_t>(rank) < node.found.size();
    }
    const Step &step(const Node &node) const;
    double value(std::int32_t node, std::int32_t rank) const;
    Index address(std::int32_t table, Place place) const;
    Place place(std::int32_t table, Index address) const;
    std::int32_t input(Index &at, std::int32_t table);

    void find(std::int32_t node, std::int32_t rank, Meter &meter);
    void list(Node &node, Meter &meter);
    bool follow(Node &node);
    bool ask(std::int32_t node, std::int32_t rank);
    void offer(Node &node, std::int32_t edge, std::int32_t rank_a, std::int32_t rank_b);
    static void take(Node &node);
    void assign(std::int32_t rank, std::int64_t *assignment, Meter &meter);

    const Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    const Choices choices_;
    Step top_{Verb::Eliminate};                        // above the last table: chooses a root cell
    std::deque<Node> nodes_;                           // the first stands above the root cells
    std::unordered_map<Index, std::int32_t> numbers_;  // by address
    std::vector<Task> tasks_;
    std::vector<std::int64_t> scratch_;
    std::int32_t given_ = 0;
};

}  // namespace tallytree
