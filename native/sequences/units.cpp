#include "sequences/units.h"

#include <cmath>
#include <map>

namespace tallytree::sequences {
namespace {

using Words = std::vector<std::int32_t>;

// Where each n-gram of a reference ends, in order of appearance; without words that no label stands for.
std::vector<std::pair<Words, std::vector<Index>>> grams_of(const Words &reference, Index n) {
    std::vector<std::pair<Words, std::vector<Index>>> grams;
    std::map<Words, std::size_t> known;
    for (Index i = 0; i + n <= static_cast<Index>(reference.size()); i++) {
        Words gram(reference.begin() + i, reference.begin() + i + n);
        bool sayable = true;
        for (std::int32_t w : gram) sayable &= w >= 0;
        if (!sayable) continue;
        const auto [at, fresh] = known.try_emplace(gram, grams.size());
        if (fresh) grams.emplace_back(std::move(gram), std::vector<Index>{});
        grams[at->second].second.push_back(i + n - 1);
    }
    return grams;
}

void add(std::vector<Unit> &units, GramCounter::Ends &ends, const Problem &problem, Words gram, Index tally,
         std::size_t reference, std::vector<Index> at) {
    const Index cap = problem.clip ? static_cast<Index>(at.size()) : kUncapped;
    units.push_back({std::move(gram), static_cast<std::int32_t>(tally), cap, 0});
    ends.emplace_back(reference, std::move(at));
}

// A unit for each n-gram: its cap is how often the reference has it that has it most often.
void bleu(std::vector<Unit> &units, GramCounter::Ends &ends, const Problem &problem) {
    for (Index n = 1; n <= problem.order; n++) {
        std::map<Words, std::pair<std::size_t, std::vector<Index>>> most;
        for (std::size_t i = 0; i < problem.references.size(); i++)
            for (auto &[gram, at] : grams_of(problem.references[i], n))
                if (auto &known = most[gram]; at.size() > known.second.size()) known = {i, at};
        for (auto &[gram, found] : most) add(units, ends, problem, gram, n - 1, found.first, found.second);
    }
}

double closest(const References &references, Index length) {
    Index best = -1;
    for (const auto &one : references) {
        const Index size = static_cast<Index>(one.size());
        const Index far = std::abs(size - length), known = std::abs(best - length);
        if (best < 0 || far < known || (far == known && size < best)) best = size;
    }
    return static_cast<double>(best);
}

}  // namespace

std::vector<Unit> units_of(const Problem &problem, GramCounter::Ends &ends) {
    std::vector<Unit> units;
    if (problem.kind == Kind::Bleu) bleu(units, ends, problem);
    for (std::size_t i = 0; i < problem.references.size(); i++) {
        const Words &reference = problem.references[i];
        if (problem.kind == Kind::RougeN)
            for (auto &[gram, at] : grams_of(reference, problem.order)) add(units, ends, problem, gram, 0, i, at);
        if (problem.kind == Kind::RougeL)
            for (std::int32_t word : reference) units.push_back({{word}, static_cast<std::int32_t>(i), kUncapped, 0});
    }
    return units;
}

Index tallies_of(const Problem &problem) {
    if (problem.kind == Kind::Bleu) return problem.order;
    return problem.kind == Kind::RougeN ? 1 : static_cast<Index>(problem.references.size());
}

Measure measure_of(const Problem &problem, Index length) {
    const double size = static_cast<double>(length), many = static_cast<double>(problem.references.size());
    if (problem.kind == Kind::Bleu) {
        const double r = closest(problem.references, length);
        return Measure::geometric(problem.order, length, size < r ? std::exp(1 - r / size) : 1.0);
    }
    if (problem.kind == Kind::RougeN) {
        double whole = 0;
        for (const auto &one : problem.references)
            whole += std::max(0.0, static_cast<double>(one.size()) - static_cast<double>(problem.order) + 1);
        return Measure::linear({whole > 0 ? 1 / whole : 0.0}, whole > 0 ? 0.0 : 1.0);
    }
    std::vector<double> weights;
    double constant = 0;
    const double square = problem.beta * problem.beta;
    for (const auto &one : problem.references) {
        const double whole = size + square * static_cast<double>(one.size());
        weights.push_back(whole > 0 ? (1 + square) / whole / many : 0.0);
        constant += whole > 0 ? 0.0 : 1 / many;
    }
    return Measure::linear(std::move(weights), constant);
}

}  // namespace tallytree::sequences
