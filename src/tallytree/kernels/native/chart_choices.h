// The ways to make one cell of a chart: what decoding and ranking choose from.
#pragma once

#include <algorithm>

#include "chart_run.h"

namespace tallytree {

// A cell of an item. Cells of two items are never at the same address.
struct ChartCell {
    Index table = 0;
    std::int32_t symbol = 0;
    Index run = 0, cell = 0;
};

class ChartChoices {
  public:
    explicit ChartChoices(const ChartRun &run) : run_(run), l_(run.layout()), grammar_(*l_.grammar) {
        for (Index width = 1; width <= l_.spans.words; width++)
            for (Index start = 0; start < l_.spans.starts(width); start++) {
                starts_.push_back(static_cast<std::int32_t>(start));
                widths_.push_back(static_cast<std::int32_t>(width));
            }
    }

    std::int32_t start(const ChartCell &at) const { return starts_[at.table / 2]; }
    std::int32_t width(const ChartCell &at) const { return widths_[at.table / 2]; }
    bool closed(const ChartCell &at) const { return at.table % 2 == 1; }

    ChartCell root(Index cell) const {
        const ChartRuns runs(l_, run_.root_table());
        Index r = 0;
        while (cell >= runs.length[r]) cell -= runs.length[r++];
        return {run_.root_table(), grammar_.root, r, cell};
    }
    Index address(const ChartCell &at) const {
        const auto &table = l_.tables[at.table];
        return table.base + l_.slot_of(at.table, at.symbol) * table.stride + l_.start[table.runs_begin + at.run] +
               at.cell;
    }
    double value(const ChartCell &at) const { return run_.memory()[address(at)]; }

    // Calls `offer(chain, f, source)` for every cell that a chain turns into this one.
    template <class Offer>
    void chains(const ChartCell &at, Offer offer) const {
        const Index span = at.table / 2, p = l_.statistics, q = l_.prefix_size;
        const ChartRuns out(l_, at.table);
        for (auto number : grammar_.by_target[at.symbol]) {
            const auto &chain = grammar_.chains[number];
            const Index from = chain.from_closed ? at.table : at.table - 1;
            const double f = run_.scores().chains.at(number, span);
            if (l_.slot_of(from, chain.source) < 0 || f == kNegativeInfinity) continue;
            const auto bag = width(at) == 1 ? chain.word_bag : chain.bag;
            const auto *shift = bag < 0 || p == 0 ? nullptr : l_.shift(bag, span);
            const ChartRuns in(l_, from);
            for (Index r = 0; r < in.count; r++) {
                bool same = true;
                for (Index i = 0; i < q && same; i++)
                    same = std::min(l_.caps[i], in.prefix[r * q + i] + (shift ? shift[i] : 0)) ==
                           out.prefix[at.run * q + i];
                if (!same) continue;
                const Index offset = in.low[r] + (shift ? shift[p - 1] : 0) - out.low[at.run];
                sources(at, out, offset, in.length[r],
                        [&](Index i) { offer(number, f, ChartCell{from, chain.source, r, i}); });
            }
        }
    }

    // Calls `offer(rule, f, left, right)` for every pair of cells that a rule turns into this one.
    template <class Offer>
    void splits(const ChartCell &at, Offer offer) const {
        const Index span = at.table / 2, begin = start(at), whole = width(at);
        for (Index split = 1; split < whole; split++) {
            const Index left = l_.table_number(l_.spans.number(begin, split), Layer::Closed);
            const Index right = l_.table_number(l_.spans.number(begin + split, whole - split), Layer::Closed);
            if (l_.tables[left].runs == 0 || l_.tables[right].runs == 0) continue;
            for (auto number : grammar_.by_parent[at.symbol]) {
                const auto &rule = grammar_.rules[number];
                const double f = run_.scores().rules.at(number, span);
                if (f == kNegativeInfinity || l_.slot_of(left, rule.left) < 0 || l_.slot_of(right, rule.right) < 0)
                    continue;
                pairs(at, left, rule.left, right, rule.right,
                      [&](const ChartCell &a, const ChartCell &b) { offer(number, f, a, b); });
            }
        }
    }

  private:
    template <class Use>
    void pairs(const ChartCell &at, Index left, std::int32_t b, Index right, std::int32_t c, Use use) const {
        const Index q = l_.prefix_size;
        const ChartRuns x(l_, left), y(l_, right), out(l_, at.table);
        const double *row = run_.row(left, l_.slot_of(left, b));
        for (Index r = 0; r < x.count; r++)
            for (Index s = 0; s < y.count; s++) {
                bool same = true;
                for (Index i = 0; i < q && same; i++)
                    same =
                        std::min(l_.caps[i], x.prefix[r * q + i] + y.prefix[s * q + i]) == out.prefix[at.run * q + i];
                if (!same) continue;
                const Index offset = x.low[r] + y.low[s] - out.low[at.run];
                for (Index i = 0; i < x.length[r]; i++) {
                    if (row[x.start[r] + i] == kNegativeInfinity) continue;
                    sources(at, out, offset + i, y.length[s],
                            [&](Index k) { use(ChartCell{left, b, r, i}, ChartCell{right, c, s, k}); });
                }
            }
    }

    // Calls `use(i)` for the cells of an input run that land on this one when moved by `offset`.
    template <class Use>
    static void sources(const ChartCell &at, const ChartRuns &out, Index offset, Index length, Use use) {
        const bool folded = out.natural[at.run] > out.length[at.run] && at.cell == out.length[at.run] - 1;
        const Index first = at.cell - offset, last = folded ? length - 1 : first;
        for (Index i = std::max<Index>(first, 0); i <= last && i < length; i++) use(i);
    }

    const ChartRun &run_;
    const ChartLayout &l_;
    const ChartGrammar &grammar_;
    std::vector<std::int32_t> starts_, widths_;
};

}  // namespace tallytree
