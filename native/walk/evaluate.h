// The score of a labelling, directly from the tables of a model and independent of messages.
#pragma once

#include <cmath>

#include "common.h"

namespace tallytree {

// Some factors: their scopes and tables.
template <class T>
struct Factors {
    std::span<const ScopeBlock> scopes;
    std::span<const TableBlock<T>> tables;
};

struct Evaluation {
    double score = 0, magnitude = 0;  // the sum of the local scores, and of their sizes
    Index terms = 0;
    std::vector<std::int64_t> sums;  // one per block of integer tables

    void add(double term) {
        score += term;
        magnitude += std::abs(term);
        terms++;
    }
};

// The largest difference between two sums of the same local scores in any order; the same as in Python.
inline double rounding_bound(const Evaluation &sum) {
    return static_cast<double>(8 + 2 * sum.terms) * std::numeric_limits<double>::epsilon() * sum.magnitude;
}

// Calls `use(entry)` for the entry of each factor that a labelling meets.
template <class T, class Use>
void at_labelling(const ScopeBlock &scopes, const TableBlock<T> &table, std::span<const std::int32_t> cardinalities,
                  const std::int64_t *assignment, Use use) {
    if (table.count != 1 && table.count != scopes.count)
        throw std::invalid_argument("a block has neither one table nor one per scope");
    for (Index k = 0; k < scopes.count; k++) {
        Index at = 0;
        for (auto v : scopes.row(k)) at = at * cardinalities[v] + assignment[v];
        if (at < 0 || at >= table.size) throw std::invalid_argument("a table's size does not fit its scope");
        use(table.row(k)[at]);
    }
}

inline void evaluate_scores(std::span<const std::int32_t> cardinalities, const std::int64_t *assignment,
                            Factors<double> scores, Evaluation &to) {
    for (std::size_t i = 0; i < scores.scopes.size(); i++)
        at_labelling(scores.scopes[i], scores.tables[i], cardinalities, assignment, [&](double f) { to.add(f); });
}

inline void evaluate_shifts(std::span<const std::int32_t> cardinalities, const std::int64_t *assignment,
                            Factors<std::int64_t> shifts, Evaluation &to) {
    for (std::size_t i = 0; i < shifts.scopes.size(); i++) {
        std::int64_t sum = 0;
        at_labelling(shifts.scopes[i], shifts.tables[i], cardinalities, assignment, [&](std::int64_t g) { sum += g; });
        to.sums.push_back(sum);
    }
}

}  // namespace tallytree
