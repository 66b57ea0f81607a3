#include "plan/adjacency.h"

namespace tallytree {

Adjacency::Adjacency(Index variables, std::span<const ScopeBlock> scopes) : places_(variables, Place{0, 0, 0}) {
    for (const ScopeBlock &block : scopes)
        for (Index k = 0; k < (block.arity > 1 ? block.count : 0); k++)
            for (auto u : block.row(k)) places_[u].room += static_cast<std::int32_t>(block.arity) - 1;
    Index all = 0;
    for (Place &place : places_) {
        place.begin = all;
        all += place.room;
    }
    lists_.resize(all);
    for (const ScopeBlock &block : scopes)
        for (Index k = 0; k < (block.arity > 1 ? block.count : 0); k++)
            for (auto u : block.row(k))
                for (auto v : block.row(k))
                    if (u != v) lists_[places_[u].begin + places_[u].size++] = v;
    for (Place &place : places_) {
        const auto first = lists_.begin() + place.begin, last = first + place.size;
        if (!std::is_sorted(first, last)) std::sort(first, last);
        place.size = static_cast<std::int32_t>(std::unique(first, last) - first);
    }
}

Index Adjacency::edges() const {
    Index ends = 0;
    for (const Place &place : places_) ends += place.size;
    return ends / 2;
}

void Adjacency::add(std::int32_t u, std::int32_t v) {
    Place &place = places_[u];
    if (place.size == place.room) {  // the list moves to the end
        const Index from = place.begin;
        place.begin = static_cast<Index>(lists_.size());
        place.room = 2 * place.room + 4;
        lists_.resize(place.begin + place.room);
        std::copy_n(lists_.begin() + from, place.size, lists_.begin() + place.begin);
    }
    const auto first = lists_.begin() + place.begin, last = first + place.size++;
    const auto at = std::lower_bound(first, last, v);
    std::copy_backward(at, last, last + 1);
    *at = v;
}

void Adjacency::remove(std::int32_t u, std::int32_t v) {
    Place &place = places_[u];
    const auto first = lists_.begin() + place.begin, last = first + place.size--;
    const auto at = std::lower_bound(first, last, v);
    std::copy(at + 1, last, at);
}

}  // namespace tallytree
