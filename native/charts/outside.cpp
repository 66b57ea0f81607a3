// The pass down a chart without statistics: what can stand around each item. Together with the tables it gives
// marginals and expected counts.
#include <algorithm>
#include <cmath>

#include "charts/derivation.h"
#include "charts/up_plain.h"

namespace tallytree {
namespace {

class ChartOutside : private UpPlain {
  public:
    ChartOutside(Run &run, Meter &meter) : UpPlain(run, meter) {}

    // The sum (or the best) of what can stand around each item.
    void outside() {
        begin();
        for (Index width = spans_.words; width >= 1; width--) {
            if (width < spans_.words)
                for (std::int32_t s = 0; s < grammar_.symbols; s++) pull_rules(s, width);
            pull_all_paths(width);
        }
    }

    // The same where it is part of a sum that counts, and how often each rule is expected on the way.
    void outside_sums(ChartSums &sums, std::vector<double> &rules) {
        begin();
        std::vector<std::int32_t> parents;
        for (Index width = spans_.words; width >= 1; width--) {
            if (width < spans_.words)
                for (auto s : grammar_.targets) sums.outside_of(width, s, outer(Layer::Closed, width, s));
            pull_all_paths(width);
            if (width == 1) return;
            parents.clear();
            for (std::int32_t s = 0; s < grammar_.symbols; s++)
                if (live(Layer::Open, width, s)) parents.push_back(s);
            sums.hand_down(width, parents, [&](std::int32_t s) { return outer(Layer::Open, width, s); }, rules);
        }
    }

    std::vector<double> marginals() {
        const Index symbols = grammar_.symbols, n = spans_.count();
        std::vector<double> result(2 * n * symbols);
        for (std::size_t t = 0; t < layout_.tables.size(); t++) {
            const Step &step = layout_.skeleton->steps[t];
            const Index layer = step.verb == Verb::Unary, span = spans_.number(step.start, step.width);
            for (Index s = 0; s < symbols; s++) {
                const Index at = layout_.tables[t].base + s * layout_.tables[t].stride;
                const bool possible = live(static_cast<Layer>(layer), step.width, static_cast<std::int32_t>(s));
                result[(layer * n + span) * symbols + s] =
                    possible ? run_.memory()[at] + outside_[at] : kNegativeInfinity;
            }
        }
        return result;
    }

    ChartExpectations expectations() {
        ChartExpectations e;
        total_ = inner(Layer::Closed, spans_.words, grammar_.root)[0];
        zeros_.assign(spans_.words, 0);
        e.words.assign(spans_.words * grammar_.symbols, 0);
        e.paths.assign(grammar_.paths.size() * spans_.count(), 0);
        e.rules.assign(grammar_.rules.size(), 0);
        if (total_ == kNegativeInfinity) return e;
        const auto sums = sums_serve(run_) ? std::make_unique<ChartSums>(run_, meter_) : nullptr;
        if (sums) sums->take_all();
        const bool summed = sums && sums->usable();
        if (summed) outside_sums(*sums, e.rules);
        else outside();
        for (Index i = 0; i < spans_.words; i++)
            for (std::int32_t s = 0; s < grammar_.symbols; s++)
                if (live(Layer::Open, 1, s))
                    e.words[i * grammar_.symbols + s] =
                        std::exp(inner(Layer::Open, 1, s)[i] + outer(Layer::Open, 1, s)[i] - total_);
        for (std::size_t c = 0; c < grammar_.paths.size(); c++)
            for (Index width = 1; width <= spans_.words; width++) expect_path(c, width, e.paths);
        for (std::size_t r = 0; r < grammar_.rules.size() && !summed; r++)
            for (Index width = 2; width <= spans_.words; width++) e.rules[r] += expected_rule(r, width);
        return e;
    }

  private:
    double *outer(Layer layer, Index width, std::int32_t symbol) { return at(outside_.get(), layer, width, symbol); }

    void begin() {
        outside_.reset(new double[layout_.arena]);  // rows of items that cannot be are never touched
        note_live();
        outer(Layer::Closed, spans_.words, grammar_.root)[0] = 0;
    }

    void pull_all_paths(Index width) {
        for (const auto layer : {Layer::Closed, Layer::Open})
            for (std::int32_t s = 0; s < grammar_.symbols; s++) pull_paths(s, width, layer);
    }

    void note_live() {
        for (Index width = 1; width <= spans_.words; width++)
            for (std::int32_t s = 0; s < grammar_.symbols; s++)
                for (const auto layer : {Layer::Open, Layer::Closed}) {
                    note(layer, width, s);
                    if (!live(layer, width, s)) continue;
                    double *row = outer(layer, width, s);
                    std::fill(row, row + round_up(spans_.starts(width) + kLanes), kNegativeInfinity);
                }
    }

    // What stands around a closed item where it is the left or the right child of a rule.
    void pull_rules(std::int32_t symbol, Index width) {
        if (!live(Layer::Closed, width, symbol)) return;
        terms_.clear();
        for (auto number : grammar_.by_left[symbol]) {
            const auto &rule = grammar_.rules[number];
            for (auto rest : widths_[rule.right])
                if (width + rest <= spans_.words && live(Layer::Open, width + rest, rule.parent))
                    add_term(outer(Layer::Open, width + rest, rule.parent),
                             inner(Layer::Closed, rest, rule.right) + width, kRules, number, spans_.first(width + rest),
                             0, spans_.starts(width + rest));
        }
        for (auto number : grammar_.by_right[symbol]) {
            const auto &rule = grammar_.rules[number];
            for (auto rest : widths_[rule.left])
                if (width + rest <= spans_.words && live(Layer::Open, width + rest, rule.parent))
                    add_term(outer(Layer::Open, width + rest, rule.parent), inner(Layer::Closed, rest, rule.left),
                             kRules, number, spans_.first(width + rest), rest, spans_.starts(width + rest));
        }
        combine(outer(Layer::Closed, width, symbol), spans_.starts(width));
    }

    void pull_paths(std::int32_t symbol, Index width, Layer layer) {
        if (!live(layer, width, symbol)) return;
        terms_.clear();
        const Index n = spans_.starts(width);
        double *out = outer(layer, width, symbol);
        const auto &paths = layer == Layer::Open ? grammar_.from_open : grammar_.from_closed;
        for (auto number : paths[symbol]) {
            const auto target = grammar_.paths[number].target;
            if (live(Layer::Closed, width, target))
                add_term(outer(Layer::Closed, width, target), nullptr, kPaths, number, spans_.first(width), 0, n);
        }
        if (terms_.empty()) return;
        if (layer == Layer::Closed) {  // besides what rules gave it
            kept_.assign(out, out + n);
            terms_.push_back({kept_.data(), nullptr, nullptr, 0, 0, n});
        }
        combine(out, n);
    }

    void expect_path(std::size_t c, Index width, std::vector<double> &expected) {
        const auto &path = grammar_.paths[c];
        const Layer layer = path.from_closed ? Layer::Closed : Layer::Open;
        if (!live(layer, width, path.source) || !live(Layer::Closed, width, path.target)) return;
        const double *in = inner(layer, width, path.source), *out = outer(Layer::Closed, width, path.target);
        const Index n = spans_.starts(width), span = spans_.first(width), number = static_cast<Index>(c);
        const double *f = anchored(scores(kPaths), number, span);
        const bool each = scores(kPaths).size > 1;
        run_.kernels()->add_exponentials_of_sum(in, out, each ? f : nullptr, (each ? 0 : *f) - total_, zeros_.data(),
                                                expected.data() + number * spans_.count() + span, n);
        meter_.spend(2.0 * static_cast<double>(n));
    }

    double expected_rule(std::size_t r, Index width) {
        const auto &rule = grammar_.rules[r];
        if (!live(Layer::Open, width, rule.parent)) return 0;
        const Index n = spans_.starts(width);
        terms_.clear();
        for (auto split : widths_[rule.left])
            if (split < width && live(Layer::Closed, width - split, rule.right))
                add_term(inner(Layer::Closed, split, rule.left),
                         inner(Layer::Closed, width - split, rule.right) + split, kRules, static_cast<std::int32_t>(r),
                         spans_.first(width), 0, n);
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

    std::unique_ptr<double[]> outside_;
    std::vector<double> kept_, zeros_;
    double total_ = 0;
};

}  // namespace

std::vector<double> chart_marginals(Run &run, const Poll &poll) {
    Meter meter(poll);
    ChartOutside chart(run, meter);
    chart.outside();
    return chart.marginals();
}

ChartExpectations chart_expectations(Run &run, const Poll &poll) {
    Meter meter(poll);
    return ChartOutside(run, meter).expectations();
}

}  // namespace tallytree
