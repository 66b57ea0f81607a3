// Decoding a chart: from the root down, every local choice evaluated again. No back-pointers are kept.
#include "chart_choices.h"

namespace tallytree {

std::vector<ChartStep> ChartRun::decode(Index cell, const Poll &poll) const {
    const ChartChoices choices(*this);
    Meter meter(poll);
    std::vector<ChartStep> steps;
    std::vector<ChartCell> open{choices.root(cell)};
    while (!open.empty()) {
        const ChartCell at = open.back();
        open.pop_back();
        const auto start = choices.start(at), width = choices.width(at);
        double best = kNegativeInfinity;
        ChartStep step{ChartStep::Word, at.symbol, start, width, 0};
        ChartCell a, b;
        const auto consider = [&](double value, ChartStep way, const ChartCell &first, const ChartCell &second) {
            meter.spend(4);
            if (value <= best) return;
            best = value;
            step = way;
            a = first;
            b = second;
        };
        if (choices.closed(at)) {
            choices.chains(at, [&](std::int32_t chain, double f, const ChartCell &from) {
                consider(choices.value(from) + f, {ChartStep::Chained, chain, start, width, 0}, from, from);
            });
        } else if (width > 1) {
            choices.splits(at, [&](std::int32_t rule, double f, const ChartCell &left, const ChartCell &right) {
                consider(choices.value(left) + choices.value(right) + f,
                         {ChartStep::Split, rule, start, width, choices.width(left)}, left, right);
            });
        }
        if (step.kind == ChartStep::Word && (choices.closed(at) || width > 1))
            throw std::logic_error("decoding met a cell that no tree reaches");
        steps.push_back(step);
        if (step.kind == ChartStep::Split) open.push_back(b);
        if (step.kind != ChartStep::Word) open.push_back(a);
    }
    return steps;
}

}  // namespace tallytree
