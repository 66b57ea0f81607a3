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
    bounds::Prices prices{};
    std::copy_n(numbers.begin(), std::min(statistics, bounds::kMostStatistics), prices.begin());
    return prices;
}

// A question, and where to begin.
struct Asked {
    const bounds::Need &need;
    std::vector<std::vector<std::int64_t>> starts;
    std::optional<bounds::Prices> prices;
    double most_work;

    PyOutcome over(bounds::Messages &messages, const bounds::Subject &subject, double room) const {
        messages.leave(room);
        bounds::Search search(messages, subject, need, most_work, kPoll);
        for (const auto &labelling : starts) search.offer(labelling);
        return {search.run(prices), subject.statistics()};
    }
};

}  // namespace tallytree
