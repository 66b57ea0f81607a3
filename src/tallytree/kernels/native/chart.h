// A chart: the items (symbol, span) of context-free parses, as tables of tallies.
//
// Each span has two tables with a row for each symbol. The `open` one holds what rules with two children build (for a
// span of one word: the lexicon), the `closed` one what chains of unary rules make of that:
//     open[A, l]   = max over splits, rules A -> B C and i + j = l of  left[B, i] + right[C, j] + f
//     closed[A, l] = max over chains A <- B of  open[B, l - g] + f
// So the first is the core's join, projected by a sparse factor; the second its eliminate. Statistics are counted by
// chains alone: a chain knows the labels that it puts on its span (its bag), all of them together.
#pragma once

#include <memory>

#include "common.h"

namespace tallytree {

enum class Layer : int { Open = 0, Closed = 1 };

struct BinaryRule {
    std::int32_t parent, left, right;
};

// Makes `target` over a span from `source`, which is open unless `from_closed`: symbols without a label of their own
// are put on top of whole chains. Bag -1 counts nothing; one word below the chain is no constituent.
struct Chain {
    std::int32_t target, source, bag, word_bag;
    bool from_closed;
};

// The rules of one parent that share a child: `rules` of `by_group` below, the shared child on the left or right.
struct RuleGroup {
    std::int32_t shared;
    bool left;
    Index begin, end;
};

struct ChartGrammar {
    Index symbols = 0, bags = 0;
    std::int32_t root = 0;
    std::vector<BinaryRule> rules;
    std::vector<Chain> chains;

    Ragged<std::int32_t> by_parent, by_left, by_right;       // rules of each symbol
    Ragged<std::int32_t> by_target, from_open, from_closed;  // chains of each symbol
    std::vector<std::int32_t> targets;                       // those made from closed symbols come last
    Ragged<RuleGroup> groups;                                // per parent
    std::vector<std::int32_t> by_group;

    ChartGrammar(Index symbols, Index bags, std::int32_t root, std::vector<BinaryRule> rules,
                 std::vector<Chain> chains);

  private:
    void group_rules();
};

// Spans in order of width, then start: those of one width lie side by side.
struct Spans {
    Index words = 0;
    Index starts(Index width) const { return words - width + 1; }
    Index first(Index width) const { return (width - 1) * (2 * words - width + 2) / 2; }
    Index number(Index start, Index width) const { return first(width) + start; }
    Index count() const { return words * (words + 1) / 2; }
};

struct ChartTable {
    Index base = 0, stride = 0;  // the row in slot k begins at base + k * stride
    Index runs_begin = 0, runs = 0, cells = 0;
    Index rows = 0;
    Index rank = 0;  // where the numbers of its runs by prefix begin
};

// Which tallies each table holds and where they lie, as in the layout of a plan: a run is a prefix (all statistics but
// the last) and an interval of the last one. A `plain` layout has no statistics, and spans of one width side by side.
struct ChartLayout {
    std::shared_ptr<const ChartGrammar> grammar;
    Spans spans;
    bool plain = true;
    Index statistics = 0, prefix_size = 0;
    std::vector<Index> caps;
    std::vector<std::int32_t> shifts;  // [bag][span][statistic]

    std::vector<ChartTable> tables;          // 2 * span + layer
    std::vector<std::int32_t> slot;          // [table][symbol], -1 where the item is not there; empty in a plain layout
    std::vector<std::int32_t> rank;          // runs by the place of their prefix in the table's box
    std::vector<Index> box_low, box_extent;  // [table][prefix statistic]
    std::vector<Index> prefix, low, length, natural, start;

    Index arena = 0;  // doubles
    Index plan_bytes = 0, items = 0, most_cells = 0;
    double operations = 0;
    Index pruned = 0;  // pairs of runs that a window cut
    std::int32_t costliest = -1;
    double costliest_operations = 0;

    // The tallies of the last table, one row for each cell.
    std::vector<Index> root_tallies() const;

    Index table_number(Index span, Layer layer) const { return 2 * span + static_cast<int>(layer); }
    std::int32_t slot_of(Index table, std::int32_t symbol) const {
        return plain ? symbol : slot[table * grammar->symbols + symbol];
    }
    const std::int32_t *shift(std::int32_t bag, Index span) const {
        return shifts.data() + (bag * spans.count() + span) * statistics;
    }
    std::int32_t run_of(Index table, const Index *prefix_sum) const {
        const Index *low = box_low.data() + table * prefix_size, *extent = box_extent.data() + table * prefix_size;
        Index id = 0;
        for (Index i = 0; i < prefix_size; i++) {
            const Index at = prefix_sum[i] - low[i];
            if (at < 0 || at >= extent[i]) return -1;
            id = id * extent[i] + at;
        }
        return tables[table].runs ? rank[tables[table].rank + id] : -1;
    }
};

struct ChartRequest {
    Index words = 0;
    std::vector<std::int32_t> shifts;  // [bag][span][statistic]
    std::vector<Index> caps;           // per statistic; kUncapped for none
    std::vector<Index> window_low, window_high;
    std::span<const std::uint8_t> items;  // [layer][span][symbol]: what may be part of a tree
    double memory_limit = 0;
    Poll poll;
};

ChartLayout plain_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, double memory_limit);
ChartLayout tally_chart(std::shared_ptr<const ChartGrammar> grammar, const ChartRequest &request);

// The runs of one table of a chart, with addresses relative to a row.
struct ChartRuns {
    Index count;
    const Index *prefix, *low, *length, *natural, *start;
    ChartRuns(const ChartLayout &l, Index table)
        : count(l.tables[table].runs),
          prefix(l.prefix.data() + l.tables[table].runs_begin * l.prefix_size),
          low(l.low.data() + l.tables[table].runs_begin),
          length(l.length.data() + l.tables[table].runs_begin),
          natural(l.natural.data() + l.tables[table].runs_begin),
          start(l.start.data() + l.tables[table].runs_begin) {}
};

}  // namespace tallytree
