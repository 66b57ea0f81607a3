// Sums over splits and rules of a chart without statistics, with no exponential for each of them.
//
// Each span has a scale, the largest of its closed items, and items are kept as p = exp(item - scale). With the scale
// of a width's spans, top = max over splits of scale(left) + scale(right), and the weight of a split,
//     u = exp(scale(left) + scale(right) - top),
// two children have the sum S_BC = sum over splits of p_B * p_C * u, once for all rules that have them, and
//     exp(open[A] - top) = sum over rules A -> B C of exp(f) * S_BC.
// On the way down q = exp(outside + scale - total) goes with p: p * q is the probability of an item, and terms that are
// too small for a double do not change any sum.
//
// This is exact as long as no number is so small relative to the others of its span that a product underflows. If one
// is, `usable` is false, and logarithms are summed one by one instead.
#pragma once

#include "charts/layout.h"
#include "tables/run.h"
#include "kernels/sumproduct.h"

namespace tallytree {

class ChartSums {
  public:
    ChartSums(Run &run, Meter &meter);

    // Reads the closed items of a width, once they are computed.
    void take(Index width);

    // Makes the open items of a width, and returns their possible symbols. Does nothing once it is not `usable`.
    const std::vector<std::int32_t> &combine(Index width);

    // Reads all items, for the downward pass.
    void take_all();
    bool usable() const { return usable_; }

    // What is around the closed items of a width, from what is around the open ones of larger widths.
    void outside_of(Index width, std::int32_t symbol, double *out) const;
    // Hands what is around open items, `outer(symbol)`, down to their children, and adds to how often rules are used.
    template <class Outer>
    void hand_down(Index width, const std::vector<std::int32_t> &parents, Outer outer, std::vector<double> &rules) {
        weigh(width);
        for (auto symbol : parents) take_outside(width, symbol, outer(symbol));
        hand_down_pairs(width, rules);
    }

  private:
    // The items of a width with one symbol: where they are kept, and the starts between which some are possible.
    struct Row {
        Index place = -1;
        std::int32_t first = 0, last = -1;
    };

    const double *items(Layer layer, Index width, std::int32_t symbol) const {
        const auto &table = layout_.tables[spans_.table(layer, 0, width)];
        return run_.memory() + table.base + symbol * table.stride;
    }
    Row &row(Index width, std::int32_t symbol) { return rows_[width * grammar_.symbols + symbol]; }
    Index stride(Index width) const { return round_up(spans_.starts(width)) + kLanes; }
    double *open(std::int32_t symbol) { return open_.data() + symbol * round_up(spans_.words); }

    void weigh(Index width);
    void find_products(const RulePair &pair, Index width);
    void take_outside(Index width, std::int32_t symbol, const double *outer);
    void hand_down_split(const Product &product, std::pair<Index, Index> starts);
    void hand_down_pairs(Index width, std::vector<double> &rules);

    Run &run_;
    const Layout &layout_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Meter &meter_;
    const SumProductKernels &kernels_;
    bool usable_ = true;
    double total_ = 0;
    std::vector<double> factors_;              // exp of the scores of rules
    std::vector<std::vector<double>> scales_;  // [width][start]; -inf where nothing is
    std::vector<std::vector<Index>> widths_;   // of each closed symbol
    std::vector<Row> rows_;                    // [width][symbol] of the closed items
    std::vector<double> inside_, outside_;     // their p and q
    std::vector<double> top_, weights_;        // of the width at hand: [start], [split][start]
    std::vector<double> open_;                 // likewise: [symbol][start]
    std::vector<double> sum_, above_, zeros_;
    std::vector<char> present_;
    std::vector<std::int32_t> made_;
    std::vector<Product> products_;
    std::vector<std::pair<Index, Index>> starts_;  // between which each product is possible, whole vectors
};

// Whether sums can be made that way at all: log-sum-exp, and one score for each rule.
bool sums_serve(const Run &run);

}  // namespace tallytree
