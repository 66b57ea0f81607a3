#include "bounds/chart_messages.h"

#include <stdexcept>

namespace tallytree::bounds {

namespace {

std::vector<TableBlock<double>> with_paths(const Sentence &sentence, const std::vector<double> &paths) {
    std::vector<TableBlock<double>> scores(sentence.scores().begin(), sentence.scores().end());
    scores[kPaths] = {paths.data(), scores[kPaths].count, sentence.spans().count()};
    return scores;
}

}  // namespace

ChartMessages::ChartMessages(const Sentence &sentence, const MaxPlusKernels *kernels)
    : sentence_(sentence),
      grammar_(sentence.grammar()),
      spans_(sentence.spans()),
      packing_(sentence.statistics()),
      paths_(grammar_.paths.size() * static_cast<std::size_t>(spans_.count())),
      run_(sentence.layout(), with_paths(sentence, paths_), AlgebraKind::MaxPlus, 0, kernels),
      most_rule_(grammar_.symbols, kNegativeInfinity),
      bare_(grammar_.symbols, 0),
      order_(3 * (spans_.words + 1)),
      merger_(cells_) {
    where_.assign(static_cast<std::size_t>(sentence.layout()->arena));
    for (const auto layer : {Layer::Open, Layer::Closed}) {
        auto &rows = rows_[static_cast<int>(layer)];
        rows.push_back({0, 0});
        for (Index width = 1; width <= spans_.words; width++) {
            const auto &table = sentence.layout()->tables[spans_.table(layer, 0, width)];
            rows.push_back({table.base, table.stride});
        }
    }
    const auto &block = sentence.scores()[kRules];
    for (std::size_t r = 0; r < grammar_.rules.size(); r++) {
        const double *row = block.row(static_cast<Index>(r));
        double &most = most_rule_[grammar_.rules[r].parent];
        most = std::max(most, *std::max_element(row, row + block.size));
    }
    for (const UnaryPath &path : grammar_.paths)
        if (path.from_closed) bare_[path.target] = 1;
}

double ChartMessages::bytes(const Layout &layout) {
    const auto &grammar = *layout.skeleton->chart->grammar;
    const auto spans = static_cast<double>(layout.skeleton->chart->spans.count());
    return static_cast<double>(layout.arena) * (sizeof(double) + sizeof(std::int32_t)) +
           spans * static_cast<double>(grammar.paths.size() + 1) * sizeof(double);
}

// ---- a plain pass --------------------------------------------------------------------------------------------------

Pass ChartMessages::pass(const Prices &prices, Meter &meter) {
    prices_ = prices;
    price_paths();
    meter.spend(static_cast<double>(paths_.size()));
    const Poll poll = [&] { meter.spend(kInfinity); };
    run_.upward(poll);
    highest_.assign(spans_.count(), std::numeric_limits<double>::quiet_NaN());
    Pass found{prices, value({Layer::Closed, grammar_.root, 0, spans_.words})};
    if (found.most != kNegativeInfinity) {
        find_best(meter);
        found.tally = best_tally_;
    }
    double size = sentence_.magnitude();
    for (Index p = 0; p < sentence_.statistics(); p++) size += std::abs(prices[p]) * sentence_.reach()[p];
    found.tolerance = 4 * kUnit * static_cast<double>(sentence_.choices()) * size;
    return found;
}

void ChartMessages::price_paths() {
    const Index count = spans_.count(), statistics = sentence_.statistics();
    const auto &block = sentence_.scores()[kPaths];
    std::vector<double> priced(grammar_.bags * count);
    for (std::size_t i = 0; i < priced.size(); i++) {
        const std::int32_t *counts = sentence_.counts(0, 0) + static_cast<Index>(i) * statistics;
        for (Index p = 0; p < statistics; p++) priced[i] += prices_[p] * counts[p];
    }
    for (std::size_t k = 0; k < grammar_.paths.size(); k++) {
        double *to = paths_.data() + static_cast<Index>(k) * count;
        const double *from = block.row(static_cast<Index>(k));
        if (block.size > 1) std::copy_n(from, count, to);
        else std::fill_n(to, count, *from);
        const auto add = [&](std::int32_t bag, Index begin, Index end) {
            for (Index i = begin; bag >= 0 && i < end; i++) to[i] += priced[bag * count + i];
        };
        add(grammar_.paths[k].word_bag, 0, spans_.words);
        add(grammar_.paths[k].bag, spans_.words, count);
    }
}

// The largest value of the closed items over a span.
double ChartMessages::highest(Index start, Index width) const {
    double &most = highest_[spans_.number(start, width)];
    if (std::isnan(most)) {
        const auto [base, stride] = rows_[1][width];
        const double *row = run_.memory() + base + start;
        most = kNegativeInfinity;
        for (std::int32_t s = 0; s < grammar_.symbols; s++) most = std::max(most, row[s * stride]);
    }
    return most;
}

// ---- the best tree -------------------------------------------------------------------------------------------------

std::array<ChartMessages::Item, 2> ChartMessages::parts(const Item &item, const ChartStep &step) const {
    if (step.kind == ChartStep::Unary) {
        const UnaryPath &path = grammar_.paths[step.number];
        return {{{path.from_closed ? Layer::Closed : Layer::Open, path.source, item.start, item.width}, {}}};
    }
    const BinaryRule &rule = grammar_.rules[step.number];
    const Index split = step.left_width;
    return {{{Layer::Closed, rule.left, item.start, split},
             {Layer::Closed, rule.right, item.start + split, item.width - split}}};
}

Index ChartMessages::key_of(const ChartStep &step) const {
    if (step.kind != ChartStep::Unary) return 0;
    const auto *counts =
        sentence_.counts(sentence_.bag_of(step.number, step.width), spans_.number(step.start, step.width));
    return counts ? packing_.pack([&](Index p) { return counts[p]; }) : 0;
}

// Always the first of the best ways.
void ChartMessages::find_best(Meter &meter) {
    best_.clear();
    best_tally_ = {};
    std::vector<Item> left{{Layer::Closed, grammar_.root, 0, spans_.words}};
    while (!left.empty()) {
        const Item item = left.back();
        left.pop_back();
        ChartStep step{-1, 0, 0, 0, 0};
        const Index looked = each_way(item, value(item), [&](const ChartStep &one, double) {
            if (step.kind < 0) step = one;
        });
        meter.spend(static_cast<double>(looked));
        if (step.kind < 0) throw std::logic_error("an item of the chart has no origin");
        best_.push_back(step);
        if (step.kind == ChartStep::Word) continue;
        const auto [a, b] = parts(item, step);
        if (step.kind == ChartStep::Split) left.push_back(b);
        left.push_back(a);
        if (step.kind == ChartStep::Split) continue;
        const auto *counts =
            sentence_.counts(sentence_.bag_of(step.number, item.width), spans_.number(item.start, item.width));
        for (Index p = 0; counts && p < sentence_.statistics(); p++) best_tally_[p] += counts[p];
    }
}

double ChartMessages::best(std::int64_t *labelling) const {
    write_steps(best_, labelling, sentence_.length());
    return sentence_.evaluate(labelling).score;
}

}  // namespace tallytree::bounds
