#include "bounds/chain_tables.h"

namespace tallytree::bounds {

namespace {

constexpr Index kMostStates = 512;

// The most states of a position, if each step takes the table of the one before, eliminates one variable and brings in
// the next; otherwise 0.
Index chain_states(const LocalTables &tables) {
    const auto &steps = tables.skeleton().steps;
    const auto size = static_cast<Index>(steps.size());
    if (size < 3 || steps[0].verb != Verb::Unit || tables.statistics() > kMostStatistics) return 0;
    Index most = 0;
    for (Index t = 1; t < size; t++) {
        const Step &step = steps[t];
        if (step.verb != Verb::Eliminate || step.a != t - 1 || step.kept_states != 1) return 0;
        if (step.fresh != (t + 1 < size ? steps[t + 1].gone.count : 1)) return 0;
        most = std::max(most, step.gone.count);
    }
    return most;
}

}  // namespace

std::size_t ChainTables::Mixed::operator()(const Table &table) const {
    const auto scores = reinterpret_cast<std::uintptr_t>(table.scores);
    const auto counts = reinterpret_cast<std::uintptr_t>(table.counts);
    return ((scores >> 3) * 0x9E3779B97F4A7C15u + (counts >> 2)) * 0xD1B54A32D192ED03u >> 16;
}

Index ChainTables::tables_of_counts() const {
    std::vector<const std::int32_t *> counts;
    for (const Table &table : distinct) counts.push_back(table.counts);
    std::ranges::sort(counts);
    return std::ranges::unique(counts).begin() - counts.begin();
}

std::optional<ChainTables> ChainTables::of(const LocalTables &tables) {
    constexpr double kTimes = 2;  // operations of rows of one size, in terms of those of steps
    const auto &steps = tables.skeleton().steps;
    const Index states = chain_states(tables), length = static_cast<Index>(steps.size()) - 1;
    if (states < 2 || states > kMostStates) return {};
    if (static_cast<double>(length * states * states) > kTimes * tables.operations()) return {};
    ChainTables found;
    found.states = states;
    found.number.resize(length);
    std::unordered_map<Table, std::int32_t, Mixed> numbers;
    Table last{};
    for (Index t = 0; t < length; t++) {
        const Step &step = steps[t + 1];
        const bool both = step.shift_has_fresh && step.fresh > 1;
        const LocalStep &local = tables[t + 1];
        const Table table{local.scores, both ? local.counts : nullptr, step.gone.count, step.fresh, t + 1};
        found.linked |= table.counts != nullptr;
        if (t > 0 && t + 1 < length && table == last) {
            found.number[t] = found.number[t - 1];
            continue;
        }
        last = table;
        const auto next = static_cast<std::int32_t>(found.distinct.size());
        const bool end = t + 1 == length;
        const std::int32_t number = end ? next : numbers.try_emplace(table, next).first->second;
        if (number == next) found.distinct.push_back(table);
        found.number[t] = number;
    }
    return found;
}

}  // namespace tallytree::bounds
