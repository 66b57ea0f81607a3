// What two neighbours of a chain count, and tables of their scores at prices.
#pragma once

#include "bounds/tally.h"

namespace tallytree::bounds {

// Tables have `states` rows of `width` numbers: a row for each state of the first, or, where they lead backward, of the
// second. Few entries count anything, as a rule.
class LinkCounts {
  public:
    // From count(p, first, second).
    template <class Count>
    LinkCounts(Index statistics, Index states, Index width, Count count) : width_(width) {
        const Packing packing(statistics);
        counts_.assign(statistics * states * width, 0);
        keys_.assign(states * width, 0);
        std::vector<Met> met;
        for (Index second = 0; second < states; second++)
            for (Index first = 0; first < states; first++) {
                Few<Index> counts{};
                for (Index p = 0; p < statistics; p++) {
                    counts[p] = static_cast<Index>(count(p, first, second));
                    counts_[p * states * width + place(second, first)] = static_cast<std::int32_t>(counts[p]);
                }
                keys_[place(second, first)] = packing.pack([&](Index p) { return counts[p]; });
                if (counts != Few<Index>{}) met.push_back({counts, place(first, second), place(second, first)});
            }
        group(std::move(met));
    }

    Index count(Index p, Index first, Index second) const {
        return counts_[p * std::ssize(keys_) + place(second, first)];
    }
    // The counts of two states, in one number.
    Index key(Index first, Index second) const { return keys_[place(second, first)]; }
    // How many entries count something, and which of them that of two states is; -1: none.
    Index entries() const { return std::ssize(forward_); }
    Index entry(Index first, Index second) const { return entry_[place(second, first)]; }
    // The scores of these, from a table that leads forward.
    std::vector<double> pick(const double *forward) const;
    // Puts them into both tables, with the prices of what they count.
    void charge(const Prices &prices, const double *scores, double *forward, double *backward) const;
    double bytes() const;

  private:
    struct Met {
        Few<Index> counts;
        Index forward, backward;
    };
    struct Group {  // of entries that count the same
        Few<Index> counts;
        Index end;
    };
    Index place(Index row, Index column) const { return row * width_ + column; }
    void group(std::vector<Met> met);

    Index width_;
    std::vector<std::int32_t> counts_;              // for each statistic: a table that leads backward
    std::vector<Index> keys_;                       // such a table, too,
    std::vector<std::int32_t> entry_;               // and another one
    std::vector<std::int32_t> forward_, backward_;  // places of entries, group by group
    std::vector<Group> groups_;
};

// The scores of two neighbours, which count something together.
struct LinkKind {
    const double *scores;        // of the entries that count something, in their order
    double *forward, *backward;  // tables of all, at the prices of the last pass
    const LinkCounts *counts;

    void charge(const Prices &prices) const { counts->charge(prices, scores, forward, backward); }
    // Without prices; `width`: of a row.
    double score(Index first, Index second, Index width) const {
        const Index entry = counts->entry(first, second);
        return entry < 0 ? forward[first * width + second] : scores[entry];
    }
};

}  // namespace tallytree::bounds
