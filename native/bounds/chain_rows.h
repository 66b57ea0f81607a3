// A chain in rows of one size, as read by passes and bands.
#pragma once

#include <deque>
#include <optional>

#include "bounds/chain_tables.h"
#include "bounds/link_counts.h"
#include "bounds/plain_chain.h"
#include "kernels/chain_pass.h"
#include "tables/run.h"

namespace tallytree::bounds {

inline constexpr Index kStretch = 64;  // positions between which messages are brought back to about 0

// Rows have `width` numbers, of which `states` are used. Their memory is reused for the next chain.
struct ChainRows {
    struct Share {  // of a stretch: what its local numbers add to messages, and their roundings
        double largest = 0, roundings = 0;
        Prices reach{};
    };

    Index length = 0, states = 0, width = 0, statistics = 0;
    double constant = 0;
    Tally constant_counts{};
    Box range;                           // no tally lies outside
    std::vector<std::int32_t> variable;  // at each position
    LinedUp first;                       // a row: the scores of the first position
    // For each position a row: what comes with the next one. Those of the first positions may lie in the model.
    double *late = nullptr;
    Index in_place = 0;
    const double *model_rows = nullptr;
    // For each position: states rows, to the states of the next one; and for each state of the next one a row. Where
    // neighbours count, these are at the prices of the last pass. Behind the last position there is a single state.
    std::vector<const double *> links, back_links;
    std::vector<std::int32_t> link_kind;  // for each position but the last, where neighbours count
    std::vector<LinkKind> link_kinds;
    // Positions with the same counts are of one kind; usually there are few kinds.
    std::vector<std::int32_t> kind;
    std::vector<std::int32_t> kind_counts;  // for each kind and statistic: a row
    std::vector<Index> kind_keys;           // for each kind: a row, the counts in one number
    std::vector<Share> shares;

    // Room for a chain; rows are 0 behind the states, and behind the last position.
    void begin(Index length, Index states, Index statistics, Index in_place = 0);
    // What comes with the position behind t, and how far the row of the next position is from there.
    const double *late_row(Index t) const {
        return t < in_place ? model_rows + t * states : late + (t - in_place) * width;
    }
    Index late_stride(Index t) const { return t < in_place ? states : width; }
    // Adds to the shares what the scores of positions add to messages, and how often that is rounded.
    void measure_scores(const ChainKernels &kernels);
    // A further kind: for each statistic a row of counts, and a row of keys (see `pack`).
    void add_kind(const std::int32_t *counts, const Index *keys) {
        kind_counts.insert(kind_counts.end(), counts, counts + statistics * width);
        kind_keys.insert(kind_keys.end(), keys, keys + width);
    }
    // The counts of the states of a kind, each in one number.
    static void pack(const std::int32_t *counts, Index statistics, Index width, Index *keys);
    // Whether no sum of counts along the chain, without constants, nor the difference of two of them is beyond a key.
    bool keys_add_up() const {
        Index size = 0;
        for (Index p = 0; p < kMostStatistics; p++) {
            const Index low = range.low[p] - constant_counts[p], high = range.high[p] - constant_counts[p];
            size = std::max({size, -low, high, high - low});
        }
        return size < Packing(statistics).largest() && !range.empty();
    }
    bool neighbours_count() const { return !link_kinds.empty(); }
    Index kinds() const { return static_cast<Index>(kind_keys.size()) / width; }

    // From a program. States that a position does not have are never reached.
    void load(const LocalTables &tables, const ChainTables &chain);
    // The same from the tables of a model; none where there are more kinds of counts than there may be, or larger ones.
    std::optional<Facts> load(const PlainChain &chain, const ChainKernels &kernels, double most_kinds);
    // The counts alone, and the range of tallies; false where there is none.
    bool load_counts(const PlainChain &chain, const ChainKernels &kernels, double most_kinds);
    // The bytes that wait for the next chain.
    double kept() const;

  private:
    struct Met;
    void copy_links(const LocalTables &tables, const ChainTables &chain);
    void copy_counts(const LocalTables &tables, const ChainTables &chain);
    void add_table(const double *scores, Index before, Index after, Index stride, Index fresh_stride);
    void take_scores(const PlainChain &chain, const ChainKernels &kernels, Facts &facts);
    bool take_counts(const PlainChain &chain, const ChainKernels &kernels, double most_kinds);
    bool measure_kinds();
    std::int32_t kind_of(const Step &step, const LocalStep &local, Met &met);
    static void add_share(Share &share, const LocalStep &local);

    Arena memory_;
    std::deque<LinedUp> forward_, backward_;  // tables of a program
    // Where neighbours count: what, and the scores of entries that do, without prices.
    std::deque<std::vector<double>> scores_;
    std::deque<LinkCounts> counts_;
    std::vector<std::int64_t> kind_rows_;  // of a model: for each kind and statistic, as it lies there
};

}  // namespace tallytree::bounds
