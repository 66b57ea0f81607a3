// Variables by price, cheapest first; a price can change at any time.
#pragma once

#include "common.h"

namespace tallytree {

class EliminationQueue {
  public:
    // Prices are compared by `first`, then by `second`, then by numbers that break ties, then by variables.
    struct Price {
        std::uint64_t first;  // in the order of signed numbers
        std::uint64_t rest;
        Price(Index first_, Index second, std::uint32_t tie)
            : first(static_cast<std::uint64_t>(first_) ^ std::uint64_t{1} << 63),
              rest(static_cast<std::uint64_t>(second) << 32 | tie) {}
    };

    explicit EliminationQueue(std::size_t variables) : place_(variables, -1) { heap_.reserve(variables); }

    bool empty() const { return heap_.empty(); }

    // All variables are added first.
    void add(std::int32_t variable, const Price &price) {
        place_[variable] = static_cast<std::int32_t>(heap_.size());
        heap_.push_back({price, variable});
    }
    void begin() {
        for (std::size_t at = heap_.size() / kWays + 1; at-- > 0;)
            if (at < heap_.size()) sink(at, Entry(heap_[at]));
    }

    void change(std::int32_t variable, const Price &price) {
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
    static constexpr std::size_t kWays = 4;  // below each entry: fewer levels than with two

    struct Entry {
        Price price;
        std::int32_t variable;
        // Without branches unless prices are equal: what comes first in a queue cannot be foreseen.
        bool operator<(const Entry &o) const {
            const bool less =
                (price.first < o.price.first) | ((price.first == o.price.first) & (price.rest < o.price.rest));
            if ((price.first == o.price.first) & (price.rest == o.price.rest)) [[unlikely]]
                return variable < o.variable;
            return less;
        }
    };

    void put(std::size_t at, const Entry &entry) {
        heap_[at] = entry;
        place_[entry.variable] = static_cast<std::int32_t>(at);
    }

    // Both return where the entry ends up.
    std::size_t rise(std::size_t at, const Entry &entry) {
        for (; at > 0 && entry < heap_[(at - 1) / kWays]; at = (at - 1) / kWays) put(at, heap_[(at - 1) / kWays]);
        put(at, entry);
        return at;
    }
    std::size_t sink(std::size_t at, const Entry &entry) {
        for (std::size_t first = kWays * at + 1; first < heap_.size(); first = kWays * at + 1) {
            std::size_t least = first;
            for (std::size_t i = first + 1; i < std::min(first + kWays, heap_.size()); i++)
                if (heap_[i] < heap_[least]) least = i;
            if (!(heap_[least] < entry)) break;
            put(at, heap_[least]);
            at = least;
        }
        put(at, entry);
        return at;
    }

    std::vector<Entry> heap_;
    std::vector<std::int32_t> place_;  // of each variable; -1: none
};

}  // namespace tallytree
