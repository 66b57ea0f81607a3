// The verbs of charts without statistics: one number for each item. Items of one width lie side by side in the order of
// their starts, and a rule is applied to all of them at once.
#pragma once

#include "charts/sums.h"
#include "tables/upward.h"

namespace tallytree {

class UpPlain {
  public:
    UpPlain(Run &run, Meter &meter);

    // Makes the tables of step t and of those that are done together with it: all spans of one width.
    void step(std::int32_t t);

  protected:
    // out[l] takes x[l] + y[l] + z[l] + f for l < n; y and z may be missing.
    struct Contribution {
        const double *x, *y, *z;
        double f;
        Index first, n;
    };

    double *at(double *data, Layer layer, Index width, std::int32_t symbol) const {
        const auto &table = layout_.tables[spans_.table(layer, 0, width)];
        return data + table.base + symbol * table.stride;
    }
    double *inner(Layer layer, Index width, std::int32_t symbol) const {
        return at(run_.memory(), layer, width, symbol);
    }
    char &live(Layer layer, Index width, std::int32_t symbol) {
        return live_[(static_cast<int>(layer) * (spans_.words + 1) + width) * grammar_.symbols + symbol];
    }
    const TableBlock<double> &scores(ChartBlock block) const { return run_.scores()[block]; }
    void note(Layer layer, Index width, std::int32_t symbol);
    void add_term(const double *x, const double *y, ChartBlock block, std::int32_t number, Index span, Index first,
                  Index n);
    void combine(double *out, Index n);

    Run &run_;
    const Layout &layout_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Meter &meter_;
    std::vector<std::vector<Index>> widths_;  // of each closed symbol
    std::vector<Contribution> terms_;

  private:
    void take_words();
    void open(Index width);
    void close(Index width);
    void build(std::int32_t parent, Index width);
    void build_pairs(Index width);
    void unary(std::int32_t target, Index width);

    std::unique_ptr<ChartSums> sums_;  // where they serve
    std::vector<char> live_;           // [layer][width][symbol]: some item of that width is possible
    std::vector<double> largest_, sum_;
};

}  // namespace tallytree
