// Shared by the two files that bind charts to Python.
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

}  // namespace tallytree
