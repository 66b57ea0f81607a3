#include "chart_draw.h"

#include <cmath>

#include "chart_choices.h"

namespace tallytree {
namespace {

// One way to make a cell: a step and the cells below it.
struct Way {
    ChartStep step;
    ChartCell a, b;
};

// Calls `use(way, share)` for every way to make a cell that has one.
template <class Use>
void shares(const ChartChoices &choices, const ChartCell &at, Meter &meter, Use use) {
    const auto start = choices.start(at), width = choices.width(at);
    const double whole = choices.value(at);
    const auto offer = [&](double value, const Way &way) {
        meter.spend(8);
        if (value != kNegativeInfinity) use(way, std::exp(value - whole));
    };
    if (choices.closed(at)) {
        choices.chains(at, [&](std::int32_t chain, double f, const ChartCell &from) {
            offer(choices.value(from) + f, {{ChartStep::Chained, chain, start, width, 0}, from, {}});
        });
    } else if (width > 1) {
        choices.splits(at, [&](std::int32_t rule, double f, const ChartCell &a, const ChartCell &b) {
            offer(choices.value(a) + choices.value(b) + f,
                  {{ChartStep::Split, rule, start, width, choices.width(a)}, a, b});
        });
    } else {
        offer(whole, {{ChartStep::Word, at.symbol, start, width, 0}, {}, {}});
    }
}

// The way at which the shares added up pass `uniform`; the last one where rounding keeps them below it.
Way drawn(const ChartChoices &choices, const ChartCell &at, double uniform, Meter &meter) {
    Way chosen;
    bool passed = false;
    shares(choices, at, meter, [&](const Way &way, double share) {
        if (passed) return;
        chosen = way;
        uniform -= share;
        passed = uniform < 0;
    });
    return chosen;
}

class Expecting {
  public:
    Expecting(const ChartRun &run, const Poll &poll)
        : l_(run.layout()), grammar_(*l_.grammar), choices_(run), meter_(poll), mass_(l_.arena, 0.0) {
        found_.words.assign(l_.spans.words * grammar_.symbols, 0);
        found_.chains.assign(grammar_.chains.size() * l_.spans.count(), 0);
        found_.rules.assign(grammar_.rules.size(), 0);
    }

    ChartExpectations from(std::span<const double> probabilities) {
        for (std::size_t cell = 0; cell < probabilities.size(); cell++)
            if (probabilities[cell] > 0)
                mass_[choices_.address(choices_.root(static_cast<Index>(cell)))] += probabilities[cell];
        for (Index span = l_.spans.count() - 1; span >= 0; span--) {
            // symbols that are put on closed ones come last among the targets: here they go first
            for (auto target = grammar_.targets.rbegin(); target != grammar_.targets.rend(); ++target)
                hand_down(l_.table_number(span, Layer::Closed), *target);
            for (std::int32_t symbol = 0; symbol < grammar_.symbols; symbol++)
                hand_down(l_.table_number(span, Layer::Open), symbol);
        }
        return std::move(found_);
    }

  private:
    // Shares the mass of every cell of an item among the ways to make it.
    void hand_down(Index table, std::int32_t symbol) {
        if (l_.slot_of(table, symbol) < 0) return;
        const ChartRuns runs(l_, table);
        for (Index r = 0; r < runs.count; r++)
            for (Index c = 0; c < runs.length[r]; c++) {
                const ChartCell at{table, symbol, r, c};
                const double mass = mass_[choices_.address(at)];
                if (mass == 0) continue;
                shares(choices_, at, meter_, [&](const Way &way, double share) { take(way, table / 2, mass * share); });
            }
    }

    void take(const Way &way, Index span, double mass) {
        const auto number = way.step.number;
        if (way.step.kind == ChartStep::Word) {
            found_.words[way.step.start * grammar_.symbols + number] += mass;
            return;
        }
        mass_[choices_.address(way.a)] += mass;
        if (way.step.kind == ChartStep::Split) {
            mass_[choices_.address(way.b)] += mass;
            found_.rules[number] += mass;
        } else {
            found_.chains[number * l_.spans.count() + span] += mass;
        }
    }

    const ChartLayout &l_;
    const ChartGrammar &grammar_;
    const ChartChoices choices_;
    Meter meter_;
    std::vector<double> mass_;  // how likely each cell is part of the tree
    ChartExpectations found_;
};

}  // namespace

Ragged<ChartStep> draw_trees(const ChartRun &run, std::span<const Index> cells, const double *uniforms,
                             const Poll &poll) {
    const ChartChoices choices(run);
    Meter meter(poll);
    Ragged<ChartStep> trees;
    std::vector<ChartCell> open;
    for (std::size_t i = 0; i < cells.size(); i++) {
        const double *uniform = uniforms + static_cast<Index>(i) * most_choices(run.layout().spans.words);
        open.assign(1, choices.root(cells[i]));
        while (!open.empty()) {
            const Way way = drawn(choices, open.back(), *uniform++, meter);
            open.pop_back();
            trees.data.push_back(way.step);
            if (way.step.kind == ChartStep::Split) open.push_back(way.b);
            if (way.step.kind != ChartStep::Word) open.push_back(way.a);
        }
        trees.close_row();
    }
    return trees;
}

ChartExpectations expect_steps(const ChartRun &run, std::span<const double> probabilities, const Poll &poll) {
    return Expecting(run, poll).from(probabilities);
}

}  // namespace tallytree
