// Passes and bands over the chart of a sentence.
//
// A pass is a plain chart with prices in the scores of paths. Its band goes down from the root: the items that a tree
// within the budget can have, with the ways to make them; and up again, with the tallies of the trees over each.
#pragma once

#include <cstdlib>

#include "bounds/messages.h"
#include "bounds/sentence.h"
#include "tables/run.h"

namespace tallytree::bounds {

class ChartMessages : public Messages {
  public:
    ChartMessages(const Sentence &sentence, const MaxPlusKernels *kernels);

    Pass pass(const Prices &prices, Meter &meter) override;
    double pass_work() const override { return sentence_.operations(); }
    double best(std::int64_t *labelling) const override;
    bool band(double budget, double most_work, Meter &meter) override;
    std::span<const Cell> tallies() const override { return root_; }
    double decode(Index number, std::int64_t *labelling) const override;
    Index cells() const override { return static_cast<Index>(cells_.size()); }

    // What it keeps for each item and path.
    static double bytes(const Layout &layout);

  private:
    struct Item {
        Layer layer;
        std::int32_t symbol;
        Index start, width;
    };
    // One way to make an item, within the budget.
    struct Way {
        ChartStep step;
        double regret;
        Index key;                    // what it counts
        std::int32_t a = -1, b = -1;  // the live items that it takes
    };
    // An item that some tree within the budget has.
    struct Live {
        Item item;
        double context;  // the least regret outside
        Index ways_begin = 0, ways_end = 0;
        Index cells_begin = 0, cells_end = 0;
    };
    // A tally of the trees over an item, and where it comes from.
    struct TreeCell {
        Index key;
        double regret;
        std::int32_t way, a, b;  // cells of the items that it takes
    };
    static_assert(sizeof(TreeCell) == 32);

    // chart_messages.cpp
    void price_paths();
    Index place(const Item &item) const {
        const auto [base, stride] = rows_[static_cast<int>(item.layer)][item.width];
        return base + item.symbol * stride + item.start;
    }
    double value(const Item &item) const { return run_.memory()[place(item)]; }
    double highest(Index start, Index width) const;
    template <class Use>
    Index each_way(const Item &item, double least, Use use) const;
    template <class Use>
    Index each_split(const Item &item, double least, Use use) const;
    std::array<Item, 2> parts(const Item &item, const ChartStep &step) const;
    void find_best(Meter &meter);
    Index key_of(const ChartStep &step) const;

    // chart_band.cpp
    std::int32_t reach(const Item &item, double context);
    void clear();
    bool may_cells(double pairs) { return may(sentence_.cell() * pairs); }
    bool find_live(double budget, Meter &meter);
    bool find_ways(std::int32_t number, double budget);
    bool fill(Live &live, double room);
    bool fill_way(std::int32_t way, double room);
    double bytes() const;

    const Sentence &sentence_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Packing packing_;
    std::vector<double> paths_;  // their scores with prices, [path][span]
    Run run_;
    struct Row {
        Index base, stride;
    };
    std::array<std::vector<Row>, 2> rows_;  // by layer and width, where items are in the run's memory
    std::vector<double> most_rule_;         // the largest score of a rule of each parent
    std::vector<char> bare_;                // symbols that paths make from closed ones
    mutable std::vector<double> highest_;   // of the closed items over each span; nan where nobody has asked
    Prices prices_{};
    std::vector<ChartStep> best_;
    Tally best_tally_{};

    std::vector<Live> live_;
    Zeros<std::int32_t> where_;                     // among the live ones, by place, plus 1; 0: nowhere
    std::vector<std::vector<std::int32_t>> order_;  // live items in the order in which they are made
    std::vector<Way> ways_;
    std::vector<TreeCell> cells_;
    std::vector<Cell> root_;
    Merger<TreeCell> merger_;
};

// Calls `use` with the steps that make an item with at least some value, and these values; returns how many were
// looked at. Sums are those of the pass, in the same order.
template <class Use>
Index ChartMessages::each_way(const Item &item, double least, Use use) const {
    const auto start = static_cast<std::int32_t>(item.start), width = static_cast<std::int32_t>(item.width);
    if (item.layer == Layer::Open) {
        if (width > 1) return each_split(item, least, use);
        use(ChartStep{ChartStep::Word, item.symbol, start, width, 0}, value(item));
        return 1;
    }
    const Index span = spans_.number(start, width);
    const auto paths = grammar_.by_target[item.symbol];
    for (const auto number : paths) {
        const UnaryPath &path = grammar_.paths[number];
        const Item source{path.from_closed ? Layer::Closed : Layer::Open, path.source, start, width};
        const double y = value(source) + paths_[number * spans_.count() + span];
        if (y >= least) use(ChartStep{ChartStep::Unary, number, start, width, 0}, y);
    }
    return std::ssize(paths);
}

// Most splits are too bad for any rule.
template <class Use>
Index ChartMessages::each_split(const Item &item, double least, Use use) const {
    const Index span = spans_.number(item.start, item.width);
    const auto rules = grammar_.by_parent[item.symbol];
    const auto &block = sentence_.scores()[kRules];
    const Index more = block.size > 1 ? span : 0;
    const double most = most_rule_[item.symbol];
    Index looked = item.width;
    for (Index split = 1; split < item.width; split++) {
        const double right = highest(item.start + split, item.width - split);
        if (!((highest(item.start, split) + right) + most >= least)) continue;
        const auto [left_base, left_stride] = rows_[1][split];
        const auto [right_base, right_stride] = rows_[1][item.width - split];
        const double *lefts = run_.memory() + left_base + item.start;
        const double *rights = run_.memory() + right_base + item.start + split;
        for (const auto number : rules) {
            const BinaryRule &rule = grammar_.rules[number];
            const double y =
                (lefts[rule.left * left_stride] + rights[rule.right * right_stride]) + block.row(number)[more];
            if (y >= least)
                use(ChartStep{ChartStep::Split, number, static_cast<std::int32_t>(item.start),
                              static_cast<std::int32_t>(item.width), static_cast<std::int32_t>(split)},
                    y);
        }
        looked += std::ssize(rules);
    }
    return looked;
}

}  // namespace tallytree::bounds
