// How many edges the elimination of each variable would add to a graph, kept up to date while variables go.
#pragma once

#include "plan/adjacency.h"

namespace tallytree {

class FillCounts {
  public:
    using Variables = std::span<const std::int32_t>;

    explicit FillCounts(std::size_t variables)
        : fill_(variables, 0), counted_(variables, kUnknown), noted_(variables, false) {}

    void begin(const Adjacency &graph, Meter &meter);

    Index operator[](std::int32_t v) const { return fill_[v]; }

    // Before the edge of a neighbour to the variable that goes is removed.
    void leave(const Adjacency &graph, std::int32_t neighbour, Variables neighbours);
    // Before an edge is added.
    void connect(const Adjacency &graph, std::int32_t u, std::int32_t v);
    // After all of them: the variables whose number may have changed.
    std::vector<std::int32_t> update(const Adjacency &graph, Variables neighbours);

  private:
    // A hub is last anyway: from this degree on, its fill is taken to be the most it can be, and edges between two hubs
    // do not count until the fill of a variable that both are connected to is counted again.
    static constexpr std::size_t kHub = 48;
    static constexpr Index kUnknown = -1;

    static bool is_hub(const Adjacency &graph, std::int32_t v) { return graph[v].size() > kHub; }
    void count(const Adjacency &graph, std::int32_t v);
    void change(std::int32_t v, Index by);

    std::vector<Index> fill_;
    std::vector<Index> counted_;  // how many edges were between hubs when a fill was counted; of a hub, unknown
    Index between_hubs_ = 0;
    std::vector<std::int32_t> changed_;
    std::vector<bool> noted_;  // whether it is among these
};

}  // namespace tallytree
