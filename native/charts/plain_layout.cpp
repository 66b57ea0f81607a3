// What the layouts of all charts have in common, and that of a chart without statistics.
#include <numeric>

#include "charts/layout.h"
#include "plan/placement.h"
#include "tables/upward.h"

namespace tallytree {

Skeleton chart_skeleton(std::shared_ptr<const ChartGrammar> grammar, Index words) {
    Skeleton s;
    const Spans spans{words};
    s.chart = std::make_shared<const ChartShape>(ChartShape{std::move(grammar), spans});
    for (Index width = 1; width <= words; width++)
        for (const auto layer : {Layer::Open, Layer::Closed})
            for (Index start = 0; start < spans.starts(width); start++) {
                Step step{layer == Layer::Closed ? Verb::Unary : width == 1 ? Verb::Word : Verb::Combine};
                if (layer == Layer::Closed) step.a = spans.table(Layer::Open, start, width);
                step.start = static_cast<std::int32_t>(start);
                step.width = static_cast<std::int32_t>(width);
                step.together = static_cast<std::int32_t>(spans.starts(width) - start);
                s.steps.push_back(step);
            }
    return s;
}

Layout begin_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, const std::vector<Index> &caps) {
    Layout l;
    l.skeleton = std::make_shared<const Skeleton>(chart_skeleton(std::move(grammar), words));
    l.rows = true;
    l.statistics = static_cast<Index>(caps.size());
    l.prefix_size = std::max<Index>(l.statistics - 1, 0);
    l.permutation.resize(l.statistics);
    std::iota(l.permutation.begin(), l.permutation.end(), 0);
    l.caps = l.user_caps = caps;
    l.floors.assign(l.statistics, 0);
    l.tables.resize(l.skeleton->steps.size());
    l.steps.resize(l.skeleton->steps.size());
    l.segment_begin = {0, static_cast<Index>(l.tables.size())};
    return l;
}

Layout plain_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, double memory_limit) {
    Layout l = begin_chart(std::move(grammar), words, {});
    const Spans spans = l.skeleton->chart->spans;
    const ChartGrammar &g = *l.skeleton->chart->grammar;
    const auto rules = static_cast<double>(g.rules.size());
    const auto paths = static_cast<double>(g.paths.size());
    ChartTables c;
    c.symbols = g.symbols;
    c.spans = spans.count();
    l.low = l.start = {0};
    l.length = l.natural = {1};
    for (std::size_t t = 0; t < l.tables.size(); t++) {
        const Step &step = l.skeleton->steps[t];
        const Index stride = round_up(spans.starts(step.width) + kLanes);  // whole vectors are read at any start
        auto &table = l.tables[t];
        table.states = c.symbols;
        table.stretches = table.cells = 1;
        table.stride = stride;
        table.size = stride * c.symbols;
        table.base = l.arena + step.start;
        if (step.together == 1) l.arena += table.size;  // the last of its width
        l.steps[t].operations = step.verb == Verb::Unary ? paths : rules * static_cast<double>(step.width - 1);
        l.operations += l.steps[t].operations;
    }
    l.arena += kLanes;
    l.costliest = static_cast<std::int32_t>(l.tables.size()) - 1;
    l.root_state = g.root;
    l.chart = std::make_shared<const ChartTables>(std::move(c));
    if (8.0 * static_cast<double>(l.arena) > memory_limit) throw_budget(0, 8.0 * static_cast<double>(l.arena));
    return l;
}

}  // namespace tallytree
