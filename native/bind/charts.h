// Shared by the files that bind charts to Python.
#pragma once

#include "bind/checks.h"
#include "charts/layout.h"

namespace tallytree {

struct PyChartGrammar {
    std::shared_ptr<const ChartGrammar> grammar;
};

struct PyChartLayout {
    std::shared_ptr<const Layout> layout;
    const Spans &spans() const { return layout->skeleton->chart->spans; }
    const ChartGrammar &grammar() const { return *layout->skeleton->chart->grammar; }
};

using Shifts = nb::ndarray<const std::int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline void check_shifts(const ChartGrammar &grammar, Index spans, const Shifts &shifts, std::size_t statistics) {
    if (static_cast<Index>(shifts.shape(0)) != grammar.bags || static_cast<Index>(shifts.shape(1)) != spans ||
        shifts.shape(2) != statistics)
        throw nb::value_error("shifts are [bag][span][statistic]");
}

inline TableBlock<double> rule_scores(const Doubles2 &array, std::size_t rules, Index spans) {
    const auto columns = static_cast<Index>(array.shape(1));
    if (array.shape(0) != rules || (columns != 1 && columns != spans))
        throw nb::value_error("scores of rules are [rule][1] or [rule][span]");
    return {array.data(), static_cast<Index>(rules), columns};
}

inline std::vector<TableBlock<double>> chart_scores(const ChartGrammar &grammar, const Spans &spans,
                                                    const Doubles2 &words, const Doubles2 &rules,
                                                    const Doubles2 &paths) {
    if (static_cast<Index>(words.shape(0)) != spans.words || static_cast<Index>(words.shape(1)) != grammar.symbols)
        throw nb::value_error("scores of words are [word][symbol]");
    std::vector<TableBlock<double>> scores(3);
    scores[kWords] = {words.data(), spans.words, grammar.symbols};
    scores[kRules] = rule_scores(rules, grammar.rules.size(), spans.count());
    scores[kPaths] = rule_scores(paths, grammar.paths.size(), spans.count());
    return scores;
}

}  // namespace tallytree
