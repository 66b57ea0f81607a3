// Variables by price, cheapest first; a price can change at any time.
#pragma once

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
        bool operator<(const Entry &o) const {
            if (price.first != o.price.first) return price.first < o.price.first;
            if (price.second != o.price.second) return price.second < o.price.second;
            return price.tie != o.price.tie ? price.tie < o.price.tie : variable < o.variable;
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
