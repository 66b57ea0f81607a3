// Variables by price, cheapest first; a price can change at any time.
#pragma once

#include <tuple>

#include "common.h"

namespace tallytree {

class EliminationQueue {
  public:
    struct Price {
        Index first, second;
        std::uint64_t tie;
    };

    explicit EliminationQueue(std::size_t variables) : place_(variables, -1) { heap_.reserve(variables); }

    bool empty() const { return heap_.empty(); }

    // Adds a variable, or changes its price.
    void place(std::int32_t variable, const Price &price) {
        if (place_[variable] < 0) {
            place_[variable] = static_cast<std::int32_t>(heap_.size());
            heap_.push_back({});
        }
        const auto at = static_cast<std::size_t>(place_[variable]);
        const Entry entry{price, variable};
        if (rise(at, entry) == at) sink(at, entry);
    }

    std::int32_t pop() {
        const std::int32_t first = heap_.front().variable;
        const Entry last = heap_.back();
        heap_.pop_back();
        place_[first] = -1;
        if (!heap_.empty()) sink(0, last);
        return first;
    }

  private:
    struct Entry {
        Price price;
        std::int32_t variable;
        bool operator<(const Entry &o) const {
            return std::tie(price.first, price.second, price.tie, variable) <
                   std::tie(o.price.first, o.price.second, o.price.tie, o.variable);
        }
    };

    void put(std::size_t at, const Entry &entry) {
        heap_[at] = entry;
        place_[entry.variable] = static_cast<std::int32_t>(at);
    }

    // Both return where the entry ends up.
    std::size_t rise(std::size_t at, const Entry &entry) {
        for (; at > 0 && entry < heap_[(at - 1) / 2]; at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
        put(at, entry);
        return at;
    }
    std::size_t sink(std::size_t at, const Entry &entry) {
        for (std::size_t below = 2 * at + 1; below < heap_.size(); below = 2 * at + 1) {
            if (below + 1 < heap_.size() && heap_[below + 1] < heap_[below]) below++;
            if (!(heap_[below] < entry)) break;
            put(at, heap_[below]);
            at = below;
        }
        put(at, entry);
        return at;
    }

    std::vector<Entry> heap_;
    std::vector<std::int32_t> place_;  // of each variable; -1: none
};

}  // namespace tallytree
