// A chain whose variables all have the same number of states, in rows: what passes and bands along it look at.
#pragma once

#include <deque>
#include <optional>

#include "bounds/local_tables.h"
#include "tables/run.h"

namespace tallytree::bounds {

inline constexpr Index kStretch = 64;  // positions between which messages are brought back to about 0

// Rows have `width` numbers, of which `states` are there. They are filled again for the next chain, in the same memory.
struct ChainRows {
    struct LinkKind {  // where two neighbours count something together
        const double *scores;
        const double *counts;  // for each statistic a table like that of the scores
    };
    struct Share {  // of a stretch: what its local numbers add to messages, and their roundings
        double largest = 0, roundings = 0;
        Prices reach{};
    };

    Index length = 0, states = 0, width = 0, statistics = 0;
    double constant = 0;
    Tally constant_counts{};
    Box range;                           // no tally lies outside
    std::vector<std::int32_t> variable;  // at each position
    std::vector<double> first;           // a row: the scores of the first position
    double *late = nullptr;              // for each position a row: what comes with the next one
    // For each position: states rows, to the states of the next one; and for each state of the next one a row. There
    // are none of the latter where neighbours count. Behind the last position there is a single state.
    std::vector<const double *> links, back_links;
    std::vector<std::int32_t> link_kind;  // for each position but the last, where neighbours count
    std::vector<LinkKind> link_kinds;
    // Positions with the same counts are of one kind, of which there are few as a rule.
    std::vector<std::int32_t> kind;
    std::vector<std::int32_t> kind_counts;  // for each kind and statistic: a row
    std::vector<Index> kind_keys;           // for each kind: a row, the counts in one number
    std::vector<Share> shares;

    // Room for a chain; rows are 0 behind the states, and behind the last position.
    void begin(Index length, Index states, Index statistics);
    // A further kind: for each statistic a row of counts, and a row of keys (see `pack`).
    void add_kind(const std::int32_t *counts, const Index *keys) {
        kind_counts.insert(kind_counts.end(), counts, counts + statistics * width);
        kind_keys.insert(kind_keys.end(), keys, keys + width);
    }
    // The counts of the states of a kind, each in one number.
    static void pack(const std::int32_t *counts, Index statistics, Index width, Index *keys);
    bool neighbours_count() const { return !link_kinds.empty(); }
    Index kinds() const { return static_cast<Index>(kind_keys.size()) / width; }

    // Whether a program is that of such a chain.
    static bool is_chain(const LocalTables &tables);
    void load(const LocalTables &tables);

  private:
    struct Met;
    void copy_links(Index t, const Step &step, const double *scores, Met &met);
    std::int32_t kind_of(const Step &step, const LocalStep &local, Met &met);
    static void add_share(Share &share, const LocalStep &local);

    Arena memory_;
    std::deque<std::vector<double>> forward_, backward_;  // tables of a program
};

}  // namespace tallytree::bounds
