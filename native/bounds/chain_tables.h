// The program of a chain: which tables of neighbours its steps share.
#pragma once

#include <optional>
#include <vector>

#include "bounds/local_tables.h"

namespace tallytree::bounds {

struct ChainTables {
    struct Table {  // of a position and the next one; behind the last there is a single state
        const double *scores;
        const std::int32_t *counts;  // of both; null where none are, or of the position alone
        Index before, after;         // states
        Index step;                  // the first that has it

        bool operator==(const Table &other) const {
            return scores == other.scores && counts == other.counts && before == other.before && after == other.after;
        }
    };
    struct Mixed {  // a hash
        std::size_t operator()(const Table &table) const;
    };

    Index states = 0;                  // the most of a position
    bool linked = false;               // whether neighbours count
    std::vector<Table> distinct;       // the last one is that of the last position
    std::vector<std::int32_t> number;  // for each position: which of these

    // How many different ones say what neighbours count, or that they do not.
    Index tables_of_counts() const;

    // None where a program is not that of a chain, or where rows of one size would take much longer than its steps.
    static std::optional<ChainTables> of(const LocalTables &tables);
};

}  // namespace tallytree::bounds
