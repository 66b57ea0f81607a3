// The planner of charts: items (symbol, span) of context-free parses as tables with the layout of clique trees.
//
// Each span has two tables with a state for each symbol. The `open` one holds what rules with two children build (for a
// span of one word: the lexicon), the `closed` one what paths of unary rules make of that:
//     open[A, l]   = max over splits, rules A -> B C and i + j = l of  left[B, i] + right[C, j] + f       Combine
//     closed[A, l] = max over paths A <- B of  open[B, l - g] + f                                         Unary
// So the first is a join, projected by a sparse factor; the second an elimination. Statistics are counted by paths
// alone: a path knows the labels that it puts on its span (its bag), all of them together.
#pragma once

#include "charts/grammar.h"
#include "plan/layout.h"
#include "plan/sums.h"

namespace tallytree {

// The data of a chart's tables besides their stretches.
struct ChartTables {
    Index symbols = 0, spans = 0, statistics = 0, prefix_size = 0;
    std::vector<std::int32_t> states;        // [table][symbol], -1 where the item is not there; empty: all are
    std::vector<std::int32_t> shifts;        // [bag][span][statistic]
    std::vector<Index> box_low, box_extent;  // [table][prefix statistic]
    std::vector<Index> rank_begin;           // per table
    std::vector<std::int32_t>
        rank;           // stretches by the place of their prefix in the table's box; -1 where there is none
    double joined = 0;  // convolutions of all pairs of stretches

    // Without statistics, spans of one width lie side by side, each symbol at its number.
    bool plain() const { return states.empty(); }
    std::int32_t state_of(Index table, std::int32_t symbol) const {
        return plain() ? symbol : states[table * symbols + symbol];
    }
    std::int32_t symbol_of(Index table, Index state) const {
        std::int32_t symbol = plain() ? static_cast<std::int32_t>(state) : 0;
        while (state_of(table, symbol) != state) symbol++;
        return symbol;
    }
    // Null where nothing is counted.
    const std::int32_t *shift(const UnaryPath &path, Index span, bool word) const {
        const auto bag = word ? path.word_bag : path.bag;
        return bag < 0 || statistics == 0 ? nullptr : shifts.data() + (bag * spans + span) * statistics;
    }
    std::int32_t stretch_of(Index table, const Index *prefix) const {
        const Index *low = box_low.data() + table * prefix_size, *extent = box_extent.data() + table * prefix_size;
        Index id = 0;
        for (Index i = 0; i < prefix_size; i++) {
            const Index at = prefix[i] - low[i];
            if (at < 0 || at >= extent[i]) return -1;
            id = id * extent[i] + at;
        }
        return rank_begin[table] == rank_begin[table + 1] ? -1 : rank[rank_begin[table] + id];
    }
};

// The blocks of scores of a chart: [word][symbol], and for rules and paths one number or one for each span.
enum ChartBlock : int { kWords = 0, kRules = 1, kPaths = 2 };
inline const double *anchored(const TableBlock<double> &block, Index number, Index span) {
    return block.row(number) + (block.size > 1 ? span : 0);
}

struct ChartRequest {
    Index words = 0;
    std::vector<std::int32_t> shifts;  // [bag][span][statistic]
    std::vector<Index> caps;           // per statistic; kUncapped for none
    Bounds window;
    std::span<const std::uint8_t> items;  // [layer][span][symbol]: what may be part of a tree
    double memory_limit = 0;
};

Skeleton chart_skeleton(std::shared_ptr<const ChartGrammar> grammar, Index words);
// What plain charts and those with statistics have in common.
Layout begin_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, const std::vector<Index> &caps);
Layout plain_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, double memory_limit);

// What is known of a chart with statistics before its tables are laid out. `request.items` and `poll` must outlive it.
class ChartOutline {
  public:
    ChartOutline(std::shared_ptr<const ChartGrammar> grammar, ChartRequest request, const Poll &poll);
    ChartOutline(ChartOutline &&) noexcept;
    ~ChartOutline();

    // A chart visits at least so many splits, and makes at least so many convolutions.
    std::pair<double, double> least() const;
    // Once only: the lists of the outline become those of the layout.
    Layout layout(double memory_limit);

  private:
    class Builder;
    std::unique_ptr<Builder> builder_;
};

}  // namespace tallytree
