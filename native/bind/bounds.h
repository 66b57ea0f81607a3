// What the two files at the border for searches by bounds share.
#pragma once

#include "bind/checks.h"
#include "bounds/search.h"

namespace tallytree {

struct PyNeed {
    bounds::Need need;
    Index statistics;
};

struct PyOutcome {
    bounds::Outcome outcome;
    Index statistics;
};

inline bounds::Prices prices_of(std::span<const double> numbers, Index statistics) {
    if (static_cast<Index>(numbers.size()) != statistics)
        throw nb::value_error("one price for each statistic is needed");
    bounds::Prices prices(statistics);
    for (Index p = 0; p < statistics; p++) prices[p] = numbers[p];
    return prices;
}

// A question, where to begin and when to stop. With a report: a bound first.
struct Asked {
    const bounds::Need &need;
    std::vector<std::vector<std::int64_t>> starts;
    std::optional<bounds::Prices> prices;
    bounds::Stops stops;
    bounds::Report report;

    // `loaded`: the work of loading the subject.
    PyOutcome over(bounds::Messages &messages, const bounds::Subject &subject, double room, double loaded = 0) const {
        messages.leave(room);
        bounds::Stops all = stops;
        all.begun = loaded;
        bounds::Search search(messages, subject, need, all, kPoll);
        for (const auto &labelling : starts) search.offer(labelling);
        return {report ? search.relax(report) : search.run(prices), subject.statistics()};
    }
};

}  // namespace tallytree
