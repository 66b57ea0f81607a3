// Labellings, or trees, one by one, best first, from the tables of a max-plus run.
//
// A table's cell holds the best score of what lies below it with one tally; the second best, the third and so on are
// found when they are asked for (Huang and Chiang, "Better k-best parsing", 2005, algorithm 3). A labelling has one
// state for each variable and one tally for each table, so it is derived in exactly one way: nothing comes twice.
//
// An exception, such as an interrupt, leaves the search in its previous state: changes to a cell are atomic.
#pragma once

#include <deque>
#include <unordered_map>

#include "walk/choices.h"

namespace tallytree {

class KBest {
  public:
    // The derivations of the given root cells, all of them in one order. The run must outlive this.
    KBest(const Run &run, std::span<const Index> root_cells);

    struct Found {
        double score = kNegativeInfinity;
        Index position = -1;  // in `root_cells`; -1: there are no more
    };
    // The next one; `tell(visit)` hears of its cells, top down, the first input before the second.
    Found next(const std::function<void(const Visit &)> &tell, Meter &meter);
    // Calls `body`, which asks for some of them. If it throws, none of them counts as given: they come again.
    template <class Body>
    void all_or_none(Body body) {
        const auto given = given_;
        try {
            body();
        } catch (...) {
            given_ = given;
            throw;
        }
    }
    const Layout &layout() const { return layout_; }

    // The memory of the search: it grows with every derivation, and beyond its limit it throws BudgetExceeded, unless
    // some have been found in the same call: these are returned first.
    Index bytes() const { return bytes_; }
    void set_room(double bytes) { room_ = bytes; }
    Found next_within(bool some, const std::function<void(const Visit &)> &tell, Meter &meter);

  private:
    // One way to make a cell from cells of other tables.
    struct Edge {
        Index a, b;  // inputs: ~node, or an address where none was made yet
        double local;
        std::int32_t table_a, table_b;  // table_b is -1 where there is one input only
        std::int32_t choice;
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
        Index bytes = 0;           // of its lists
        std::size_t followed = 0;  // found derivations whose successors are waiting, or were
        std::vector<Edge> edges{};
        std::vector<Derivation> found{}, waiting{};  // best first; a heap
    };
    struct Task {
        std::int32_t node, rank;
    };

    static bool worse(const Derivation &x, const Derivation &y);
    static bool has(const Node &node, std::int32_t rank) { return static_cast<std::size_t>(rank) < node.found.size(); }
    static bool settled(const Node &node, std::int32_t rank) { return node.done || has(node, rank); }
    double value(std::int32_t node, std::int32_t rank) const;
    Cell cell(const Node &node) const;
    std::int32_t input(Index &at, std::int32_t table);

    void find(std::int32_t node, std::int32_t rank, Meter &meter);
    void list(Node &node, Meter &meter);
    bool follow(Node &node);
    bool ask(std::int32_t node, std::int32_t rank);
    void offer(Node &node, std::int32_t edge, std::int32_t rank_a, std::int32_t rank_b);
    static void take(Node &node);
    void count(Node &node);  // what it takes now
    void derive(std::int32_t rank, const std::function<void(const Visit &)> &tell, Meter &meter);

    const Run &run_;
    const Layout &layout_;
    Choices choices_;
    std::deque<Node> nodes_;                           // the first stands above the root cells
    std::unordered_map<Index, std::int32_t> numbers_;  // by address
    std::vector<Task> tasks_;
    std::int32_t given_ = 0;
    Index bytes_ = 0;
    double room_ = std::numeric_limits<double>::infinity();
};

}  // namespace tallytree
