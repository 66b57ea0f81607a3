// The neighbours of each variable in a graph, sorted; all lists lie in one.
#pragma once

#include "common.h"

namespace tallytree {

class Adjacency {
  public:
    Adjacency() = default;
    // Variables that a scope mentions together are connected.
    Adjacency(Index variables, std::span<const ScopeBlock> scopes);

    std::size_t size() const { return places_.size(); }
    std::span<const std::int32_t> operator[](std::size_t v) const {
        return {lists_.data() + places_[v].begin, static_cast<std::size_t>(places_[v].size)};
    }
    bool adjacent(std::int32_t u, std::int32_t v) const {
        return std::binary_search((*this)[u].begin(), (*this)[u].end(), v);
    }
    Index edges() const;

    // Both change the list of u alone; v is not in it, or is.
    void add(std::int32_t u, std::int32_t v);
    void remove(std::int32_t u, std::int32_t v);

  private:
    struct Place {
        Index begin;
        std::int32_t size, room;
    };
    std::vector<Place> places_;
    std::vector<std::int32_t> lists_;
};

}  // namespace tallytree
