// The search by bounds over the chart of a sentence, at the border to Python.
#include <nanobind/stl/optional.h>

#include "bind/bounds.h"
#include "bind/charts.h"
#include "bounds/chart_messages.h"

namespace tallytree {
namespace {

using namespace bounds;

struct PyChartSearch {
    std::vector<Doubles2> arrays;  // before `sentence`: destroyed after it
    std::unique_ptr<const Sentence> sentence;
};

PyChartSearch make_search(const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 paths, Shifts shifts,
                          double cell) {
    if (!layout.layout->chart->plain())
        throw nb::value_error("a search by bounds passes over charts without statistics");
    auto scores = chart_scores(layout.grammar(), layout.spans(), words, rules, paths);
    const auto statistics = static_cast<Index>(shifts.shape(2));
    check_shifts(layout.grammar(), layout.spans().count(), shifts, shifts.shape(2));
    if (statistics < 1 || statistics > kMostStatistics)
        throw nb::value_error("a search by bounds has 1 to 3 statistics");
    std::vector<std::int32_t> counts(shifts.data(), shifts.data() + shifts.size());
    PyChartSearch made{{words, rules, paths}, nullptr};
    nb::gil_scoped_release release;
    made.sentence =
        std::make_unique<const Sentence>(layout.layout, std::move(scores), std::move(counts), statistics, cell);
    return made;
}

std::optional<PyOutcome> search(const PyChartSearch &self, const PyNeed &asked, const std::vector<Ints> &starts,
                                std::optional<Doubles> prices, double most_work, double memory_limit) {
    const Sentence &sentence = *self.sentence;
    if (sentence.statistics() != asked.statistics) throw nb::value_error("the box is of other statistics");
    std::vector<std::vector<std::int64_t>> labellings;
    for (const Ints &start : starts) {
        labellings.emplace_back(start.data(), start.data() + start.size());
        sentence.check(labellings.back());
    }
    std::optional<Prices> first;
    if (prices) first = prices_of(as_span(*prices), sentence.statistics());
    Need need = asked.need;
    nb::gil_scoped_release release;
    const double used = ChartMessages::bytes(*sentence.layout());
    if (!sentence.fits() || !need.prepare() || used > memory_limit) return {};
    ChartMessages messages(sentence, chosen_kernels);
    return Asked{need, std::move(labellings), first, {.work = most_work}, {}}.over(messages, sentence,
                                                                                   memory_limit - used);
}

auto ends_of(const PyChartSearch &self) {
    const Sentence &sentence = *self.sentence;
    std::vector<std::int64_t> rows;
    for (Index p = 0; p < sentence.statistics(); p++)
        rows.insert(rows.end(), {sentence.range().low[p], sentence.range().high[p]});
    return to_numpy(std::move(rows), {static_cast<std::size_t>(sentence.statistics()), 2});
}

}  // namespace

void bind_chart_bounds(nb::module_ &m) {
    nb::class_<PyChartSearch>(m, "ChartSearch")
        .def(
            "__init__",
            [](PyChartSearch *self, const PyChartLayout &layout, Doubles2 words, Doubles2 rules, Doubles2 paths,
               Shifts shifts,
               double cell) { new (self) PyChartSearch(make_search(layout, words, rules, paths, shifts, cell)); },
            "layout"_a, "words"_a.noconvert(), "rules"_a.noconvert(), "paths"_a.noconvert(), "shifts"_a.noconvert(),
            "cell"_a)
        .def_prop_ro("ends", &ends_of)
        .def_prop_ro("magnitude", [](const PyChartSearch &s) { return s.sentence->magnitude(); })
        .def("run", &search, "need"_a, "starts"_a.noconvert(), "prices"_a.none(), "most_work"_a, "memory_limit"_a);
}

}  // namespace tallytree
