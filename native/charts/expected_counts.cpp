// What is expected of the trees of a sum-product chart, from the root down by shares: that of one way to make a cell is
// its part of the cell's sum, exp(value of the way - value of the cell).
#include <cmath>

#include "charts/derivation.h"

namespace tallytree {
namespace {

class ExpectedCounts {
  public:
    ExpectedCounts(const Run &run, const Poll &poll)
        : run_(run),
          layout_(run.layout()),
          skeleton_(*layout_.skeleton),
          grammar_(*skeleton_.chart->grammar),
          spans_(skeleton_.chart->spans),
          choices_(run),
          meter_(poll),
          mass_(layout_.arena, 0.0) {
        found_.words.assign(spans_.words * grammar_.symbols, 0);
        found_.paths.assign(grammar_.paths.size() * spans_.count(), 0);
        found_.rules.assign(grammar_.rules.size(), 0);
    }

    ChartExpectations from(std::span<const double> probabilities) {
        for (std::size_t cell = 0; cell < probabilities.size(); cell++)
            if (probabilities[cell] != 0)
                mass_[choices_.address(choices_.root(static_cast<Index>(cell)))] += probabilities[cell];
        for (auto t = static_cast<std::int32_t>(layout_.tables.size()) - 1; t >= 0; t--) {
            if (skeleton_.steps[t].verb != Verb::Unary)
                for (std::int32_t symbol = 0; symbol < grammar_.symbols; symbol++) hand_down(t, symbol);
            else  // symbols that are put on closed ones come last among the targets: here they go first
                for (auto target = grammar_.targets.rbegin(); target != grammar_.targets.rend(); ++target)
                    hand_down(t, *target);
        }
        return std::move(found_);
    }

  private:
    // Shares the mass of every cell of an item among the ways to make it.
    void hand_down(std::int32_t t, std::int32_t symbol) {
        const auto state = layout_.chart->state_of(t, symbol);
        const Stretches stretches(layout_, t);
        for (Index r = 0; state >= 0 && r < stretches.count; r++)
            for (Index c = 0; c < stretches.length[r]; c++) {
                const Cell at{t, {state, r, c}};
                const Index address = choices_.address(at);
                if (mass_[address] != 0) share(at, symbol, mass_[address], run_.memory()[address]);
            }
    }

    void share(const Cell &at, std::int32_t symbol, double mass, double whole) {
        const Step &step = skeleton_.steps[at.table];
        if (step.verb == Verb::Word) found_.words[step.start * grammar_.symbols + symbol] += mass;
        const Index span = spans_.number(step.start, step.width);
        choices_.ways(at, [&](const Way &way) {
            meter_.spend(8);
            if (way.value == kNegativeInfinity) return;
            const double part = mass * std::exp(way.value - whole);
            mass_[choices_.address(way.a)] += part;
            if (way.b.table >= 0) mass_[choices_.address(way.b)] += part;
            if (step.verb == Verb::Combine) found_.rules[way.choice] += part;
            else found_.paths[way.choice * spans_.count() + span] += part;
        });
    }

    const Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Choices choices_;
    Meter meter_;
    std::vector<double> mass_;  // how likely each cell is part of the tree
    ChartExpectations found_;
};

}  // namespace

ChartExpectations chart_expectations_of(Run &run, std::span<const double> probabilities, const Poll &poll) {
    return ExpectedCounts(run, poll).from(probabilities);
}

}  // namespace tallytree
