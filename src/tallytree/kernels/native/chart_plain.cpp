// A chart without statistics: one number for each item. Items of one width lie side by side in the order of their
// starts, and a rule is applied to all of them at once.
#include <algorithm>
#include <cmath>

#include "chart_run.h"

namespace tallytree {
namespace {

// out[l] takes x[l] + y[l] + z[l] + f for l < n; y and z may be missing.
struct Contribution {
    const double *x, *y, *z;
    double f;
    Index first, n;
};

}  // namespace

class PlainChart {
  public:
    PlainChart(ChartRun &run, const Poll &poll)
        : run_(run), l_(*run.layout_), grammar_(run.grammar_), spans_(l_.spans), meter_(poll) {
        const Index n = spans_.words;
        live_.assign(2 * (n + 1) * grammar_.symbols, 0);
        widths_.resize(2 * grammar_.symbols);
    }

    void inside() {
        double *data = run_.arena_.data();
        std::fill(data, data + l_.arena, kNegativeInfinity);
        for (Index width = 1; width <= spans_.words; width++) {
            if (width == 1) take_words();
            else
                for (std::int32_t parent = 0; parent < grammar_.symbols; parent++) build(parent, width);
            for (auto target : grammar_.targets) chain(target, width);
        }
    }

    // The sum (or the best) of what can stand around each item.
    void outside() {
        note_live();
        outside_.assign(l_.arena, kNegativeInfinity);
        outer(Layer::Closed, spans_.words, grammar_.root)[0] = 0;
        for (Index width = spans_.words; width >= 1; width--) {
            if (width < spans_.words)
                for (std::int32_t s = 0; s < grammar_.symbols; s++) pull_rules(s, width);
            for (std::int32_t s = 0; s < grammar_.symbols; s++) pull_chains(s, width, Layer::Closed);
            for (std::int32_t s = 0; s < grammar_.symbols; s++) pull_chains(s, width, Layer::Open);
        }
    }

    std::vector<double> marginals() {
        const Index symbols = grammar_.symbols, n = spans_.count();
        std::vector<double> result(2 * n * symbols);
        for (Index layer = 0; layer < 2; layer++)
            for (Index span = 0; span < n; span++)
                for (Index s = 0; s < symbols; s++) {
                    const Index at = l_.tables[2 * span + layer].base + s * l_.tables[2 * span + layer].stride;
                    result[(layer * n + span) * symbols + s] = run_.memory()[at] + outside_[at];
                }
        return result;
    }

    ChartExpectations expectations() {
        ChartExpectations e;
        total_ = inner(Layer::Closed, spans_.words, grammar_.root)[0];
        e.words.assign(spans_.words * grammar_.symbols, 0);
        e.chains.assign(grammar_.chains.size() * spans_.count(), 0);
        e.rules.assign(grammar_.rules.size(), 0);
        if (total_ == kNegativeInfinity) return e;
        for (Index i = 0; i < spans_.words; i++)
            for (std::int32_t s = 0; s < grammar_.symbols; s++)
                e.words[i * grammar_.symbols + s] =
                    std::exp(inner(Layer::Open, 1, s)[i] + outer(Layer::Open, 1, s)[i] - total_);
        for (std::size_t c = 0; c < grammar_.chains.size(); c++)
            for (Index width = 1; width <= spans_.words; width++) expect_chain(c, width, e.chains);
        for (std::size_t r = 0; r < grammar_.rules.size(); r++)
            for (Index width = 2; width <= spans_.words; width++) e.rules[r] += expected_rule(r, width);
        return e;
    }

  private:
    double *at(double *data, Layer layer, Index width, std::int32_t symbol) const {
        const auto &table = l_.tables[l_.table_number(spans_.first(width), layer)];
        return data + table.base + symbol * table.stride;
    }
    double *inner(Layer layer, Index width, std::int32_t symbol) const {
        return at(run_.arena_.data(), layer, width, symbol);
    }
    double *outer(Layer layer, Index width, std::int32_t symbol) { return at(outside_.data(), layer, width, symbol); }

    char &live(Layer layer, Index width, std::int32_t symbol) {
        return live_[(static_cast<int>(layer) * (spans_.words + 1) + width) * grammar_.symbols + symbol];
    }
    void note(Layer layer, Index width, std::int32_t symbol) {
        const double *row = inner(layer, width, symbol);
        for (Index i = 0; i < spans_.starts(width); i++)
            if (row[i] != kNegativeInfinity) {
                live(layer, width, symbol) = 1;
                if (layer == Layer::Closed) widths_[symbol].push_back(width);
                return;
            }
    }
    void note_live() {
        for (Index width = 1; width <= spans_.words; width++)
            for (std::int32_t s = 0; s < grammar_.symbols; s++) {
                note(Layer::Open, width, s);
                note(Layer::Closed, width, s);
            }
    }

    // ---- upwards ---------------------------------------------------------------------------------------------
    void take_words() {
        for (std::int32_t s = 0; s < grammar_.symbols; s++) {
            for (Index i = 0; i < spans_.words; i++)
                inner(Layer::Open, 1, s)[i] = run_.scores_.words[i * grammar_.symbols + s];
            note(Layer::Open, 1, s);
        }
    }

    void build(std::int32_t parent, Index width) {
        terms_.clear();
        const Index n = spans_.starts(width), span = spans_.first(width);
        for (auto number : grammar_.by_parent[parent]) {
            const auto &rule = grammar_.rules[number];
            const auto &lefts = widths_[rule.left], &rights = widths_[rule.right];
            const auto add = [&](Index split) {
                add_term(inner(Layer::Closed, split, rule.left),
                         inner(Layer::Closed, width - split, rule.right) + split, run_.scores_.rules, number, span, 0,
                         n);
            };
            if (lefts.size() <= rights.size()) {
                for (auto split : lefts)
                    if (split < width && live(Layer::Closed, width - split, rule.right)) add(split);
            } else {
                for (auto rest : rights)
                    if (rest < width && live(Layer::Closed, width - rest, rule.left)) add(width - rest);
            }
        }
        combine(inner(Layer::Open, width, parent), n);
        note(Layer::Open, width, parent);
    }

    void chain(std::int32_t target, Index width) {
        terms_.clear();
        const Index n = spans_.starts(width), span = spans_.first(width);
        for (auto number : grammar_.by_target[target]) {
            const auto &c = grammar_.chains[number];
            const Layer layer = c.from_closed ? Layer::Closed : Layer::Open;
            if (live(layer, width, c.source))
                add_term(inner(layer, width, c.source), nullptr, run_.scores_.chains, number, span, 0, n);
        }
        combine(inner(Layer::Closed, width, target), n);
        note(Layer::Closed, width, target);
    }

    // ---- downwards -------------------------------------------------------------------------------------------
    // What stands around a closed item where it is the left or the right child of a rule.
    void pull_rules(std::int32_t symbol, Index width) {
        if (!live(Layer::Closed, width, symbol)) return;
        terms_.clear();
        for (auto number : grammar_.by_left[symbol]) {
            const auto &rule = grammar_.rules[number];
            for (auto rest : widths_[rule.right])
                if (width + rest <= spans_.words && live(Layer::Open, width + rest, rule.parent))
                    add_term(outer(Layer::Open, width + rest, rule.parent),
                             inner(Layer::Closed, rest, rule.right) + width, run_.scores_.rules, number,
                             spans_.first(width + rest), 0, spans_.starts(width + rest));
        }
        for (auto number : grammar_.by_right[symbol]) {
            const auto &rule = grammar_.rules[number];
            for (auto rest : widths_[rule.left])
                if (width + rest <= spans_.words && live(Layer::Open, width + rest, rule.parent))
                    add_term(outer(Layer::Open, width + rest, rule.parent), inner(Layer::Closed, rest, rule.left),
                             run_.scores_.rules, number, spans_.first(width + rest), rest, spans_.starts(width + rest));
        }
        combine(outer(Layer::Closed, width, symbol), spans_.starts(width));
    }

    void pull_chains(std::int32_t symbol, Index width, Layer layer) {
        if (!live(layer, width, symbol)) return;
        terms_.clear();
        const Index n = spans_.starts(width);
        double *out = outer(layer, width, symbol);
        const auto &chains = layer == Layer::Open ? grammar_.from_open : grammar_.from_closed;
        for (auto number : chains[symbol]) {
            const auto target = grammar_.chains[number].target;
            if (live(Layer::Closed, width, target))
                add_term(outer(Layer::Closed, width, target), nullptr, run_.scores_.chains, number, spans_.first(width),
                         0, n);
        }
        if (terms_.empty()) return;
        if (layer == Layer::Closed) {  // besides what rules gave it
            kept_.assign(out, out + n);
            terms_.push_back({kept_.data(), nullptr, nullptr, 0, 0, n});
        }
        combine(out, n);
    }

    void expect_chain(std::size_t c, Index width, std::vector<double> &expected) {
        const auto &chain = grammar_.chains[c];
        const Layer layer = chain.from_closed ? Layer::Closed : Layer::Open;
        if (!live(layer, width, chain.source) || !live(Layer::Closed, width, chain.target)) return;
        const double *in = inner(layer, width, chain.source), *out = outer(Layer::Closed, width, chain.target);
        for (Index i = 0; i < spans_.starts(width); i++) {
            const Index span = spans_.number(i, width);
            const double v = in[i] + out[i] + run_.scores_.chains.at(static_cast<Index>(c), span) - total_;
            expected[static_cast<Index>(c) * spans_.count() + span] = std::exp(v);
        }
        meter_.spend(8.0 * static_cast<double>(spans_.starts(width)));
    }

    double expected_rule(std::size_t r, Index width) {
        const auto &rule = grammar_.rules[r];
        if (!live(Layer::Open, width, rule.parent)) return 0;
        const Index n = spans_.starts(width);
        terms_.clear();
        for (auto split : widths_[rule.left])
            if (split < width && live(Layer::Closed, width - split, rule.right))
                add_term(inner(Layer::Closed, split, rule.left),
                         inner(Layer::Closed, width - split, rule.right) + split, run_.scores_.rules,
                         static_cast<std::int32_t>(r), spans_.first(width), 0, n);
        double sum = 0;
        const double *out = outer(Layer::Open, width, rule.parent);
        for (const auto &t : terms_)
            for (Index i = 0; i < n; i++) {
                const double v = t.x[i] + t.y[i] + (t.z ? t.z[i] : 0) + t.f + out[i] - total_;
                if (v > -708) sum += std::exp(v);
            }
        meter_.spend(8.0 * static_cast<double>(terms_.size()) * static_cast<double>(n));
        return sum;
    }

    // ---- sums ------------------------------------------------------------------------------------------------
    void add_term(const double *x, const double *y, const RuleScores &scores, std::int32_t number, Index span,
                  Index first, Index n) {
        const double *f = scores.address(number, span);
        if (scores.anchored()) terms_.push_back({x, y, f, 0, first, n});
        else if (*f != kNegativeInfinity) terms_.push_back({x, y, nullptr, *f, first, round_up(n)});
    }

    // Where scores are not anchored, whole vectors are taken: behind a row lies -inf, or the sum is.
    void combine(double *out, Index n) {
        const auto *kernels = run_.kernels_;
        double work = 0;
        for (const auto &t : terms_) work += static_cast<double>(t.n);
        if (run_.is_max_plus()) {
            std::fill(out, out + n, kNegativeInfinity);
            for (const auto &t : terms_) kernels->raise_sum(t.x, t.y, t.z, t.f, out + t.first, t.n);
            meter_.spend(work + 16);
            return;
        }
        const Index padded = round_up(n) + kLanes;
        largest_.assign(padded, kNegativeInfinity);
        for (const auto &t : terms_) kernels->raise_sum(t.x, t.y, t.z, t.f, largest_.data() + t.first, t.n);
        for (auto &v : largest_)
            if (v == kNegativeInfinity) v = 0;
        sum_.assign(padded, 0);
        for (const auto &t : terms_)
            kernels->add_exponentials_of_sum(t.x, t.y, t.z, t.f, largest_.data() + t.first, sum_.data() + t.first, t.n);
        for (Index i = 0; i < n; i++) out[i] = sum_[i] > 0 ? largest_[i] + std::log(sum_[i]) : kNegativeInfinity;
        meter_.spend(16 * work + 16);
    }

    ChartRun &run_;
    const ChartLayout &l_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Meter meter_;
    std::vector<char> live_;                  // [layer][width][symbol]: some item of that width is possible
    std::vector<std::vector<Index>> widths_;  // of each closed symbol
    std::vector<Contribution> terms_;
    std::vector<double> largest_, sum_, kept_, outside_;
    double total_ = 0;
};

void ChartRun::plain_inside(const Poll &poll) { PlainChart(*this, poll).inside(); }

std::vector<double> ChartRun::marginals(const Poll &poll) {
    PlainChart chart(*this, poll);
    chart.outside();
    return chart.marginals();
}

ChartExpectations ChartRun::expectations(const Poll &poll) {
    PlainChart chart(*this, poll);
    chart.outside();
    return chart.expectations();
}

}  // namespace tallytree
