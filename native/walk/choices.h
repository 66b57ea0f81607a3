// The ways to obtain one cell of a table, for every verb: decoding, sampling and ranking choose among them.
#pragma once

#include <algorithm>

#include "charts/layout.h"
#include "tables/upward.h"

namespace tallytree {

// A cell of a table.
struct Place {
    Index state = 0, stretch = 0, cell = 0;
};
struct Cell {
    std::int32_t table = -1;
    Place place{};
};

// One way to make a cell: from a cell of one input or of two.
struct Way {
    double value = 0;  // the inputs' values and the local score together
    double local = 0;
    Index choice = 0;  // the state of the eliminated variable, the number of the path or of the rule
    Cell a{}, b{};     // b.table is -1 where there is one input only
};

// What a walk down the tables tells: a cell was made by a choice, from tables of which `input` is the first.
struct Visit {
    std::int32_t table;
    Index state, choice;
    std::int32_t input;
};
inline void label(const Skeleton &skeleton, const Visit &visit, std::int64_t *assignment) {
    const Step &step = skeleton.steps[visit.table];
    if (step.verb == Verb::Eliminate) assignment[step.variable] = visit.choice;
}

template <class Real>
class ChoicesOf {
  public:
    explicit ChoicesOf(const RunOf<Real> &run)
        : run_(run), layout_(*run.layout_), skeleton_(run.skeleton_), states_(skeleton_.cardinalities.size(), 0) {}

    Cell root(Index cell) const {
        const auto last = static_cast<std::int32_t>(layout_.tables.size()) - 1;
        const Stretches stretches(layout_, last);
        Index r = 0;
        while (cell >= stretches.length[r]) cell -= stretches.length[r++];
        return {last, {layout_.root_state, r, cell}};
    }
    Index address(const Cell &at) const {
        const TableLayout &t = layout_.tables[at.table];
        return t.base + at.place.state * t.stride + layout_.start[t.stretches_begin + at.place.stretch] + at.place.cell;
    }

    // Whether a table knows its cells by itself.
    bool source(std::int32_t t) const {
        return skeleton_.steps[t].verb == Verb::Unit || skeleton_.steps[t].verb == Verb::Word;
    }

    // Calls `offer(way)` for every way to make a cell.
    template <class Offer>
    void ways(const Cell &at, Offer offer) {
        switch (skeleton_.steps[at.table].verb) {
            case Verb::Eliminate:
                return eliminate(at.table, at.place, offer);
            case Verb::Join:
                return join(at.table, at.place, offer);
            case Verb::Unary:
                return unary(at.table, at.place, offer);
            case Verb::Combine:
                return combine(at.table, at.place, offer);
            default:
                return;
        }
    }

  private:
    template <class Offer>
    void eliminate(std::int32_t t, Place place, Offer offer) {
        const Step &step = skeleton_.steps[t];
        const StepView s = layout_.step(t);
        const Stretches in(layout_, step.a), out(layout_, t);
        // The table's variables: fresh ones, then those that are kept, whose states say where the input stands.
        const auto scope = skeleton_.scopes[t];
        const auto kept = skeleton_.kept[t];
        Index at_a = 0, at_shift = 0, rest = place.state;
        std::size_t i = scope.size();
        for (const std::size_t fresh = i - kept.size(); i-- > fresh;) {
            const Loop &loop = kept[i - fresh];
            const Index state = states_[scope[i]] = rest % loop.count;
            rest /= loop.count;
            at_a += state * loop.a;
            at_shift += state * loop.shift;
        }
        if (step.shift_has_fresh) at_shift += rest;
        for (i = scope.size() - kept.size(); i-- > 0; rest /= skeleton_.cardinalities[scope[i]])
            states_[scope[i]] = rest % skeleton_.cardinalities[scope[i]];
        run_.local_scores(t, states_.data(), scores_);
        const Loop gone = step.gone;
        const Index stride = gone.a * layout_.tables[step.a].stride;
        const Real *row = run_.row(step.a, at_a);
        const std::int32_t *d = s.class_of + at_shift;
        std::int32_t known = -1;  // the class whose sources are at hand: states in a row often have the same one
        for (Index v = 0; v < gone.count; v++, row += stride, d += gone.shift) {
            const double f = scores_[v];
            if (f == kNegativeInfinity) continue;
            if (*d != known) find_sources(s, *d, in, out, place);
            known = *d;
            for (const auto &[start, stretch, cell] : sources_)
                offer(Way{row[start] + f, f, v, {step.a, {at_a + v * gone.a, stretch, cell}}, {}});
        }
    }

    // The cells of the input that shift d carries to a place.
    void find_sources(const StepView &s, Index d, const Stretches &in, const Stretches &out, Place place) {
        sources_.clear();
        const Index group = place.stretch * s.classes + d;
        for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++) {
            const Index ra = s.pairs.a[q], offset = in.low[ra] + s.class_shift[d] - out.low[place.stretch];
            sources(out, place, offset, in.length[ra], [&](Index i) { sources_.push_back({in.start[ra] + i, ra, i}); });
        }
    }

    template <class Offer>
    void join(std::int32_t t, Place place, Offer offer) const {
        const Step &step = skeleton_.steps[t];
        const PairList pairs = layout_.step(t).pairs;
        Index state_a = 0, state_b = 0, rest = place.state;
        const auto kept = skeleton_.kept[t];
        for (std::size_t i = kept.size(); i-- > 0; rest /= kept[i].count) {
            state_a += rest % kept[i].count * kept[i].a;
            state_b += rest % kept[i].count * kept[i].b;
        }
        const Stretches a(layout_, step.a), b(layout_, step.b), out(layout_, t);
        for (Index q = pairs.begin[place.stretch]; q < pairs.begin[place.stretch + 1]; q++)
            join_stretches(out, place, a, {step.a, {state_a, pairs.a[q], 0}}, b, {step.b, {state_b, pairs.b[q], 0}}, 0,
                           0, offer);
    }

    template <class Offer>
    void unary(std::int32_t t, Place place, Offer offer) const {
        const Step &step = skeleton_.steps[t];
        const ChartTables &chart = *layout_.chart;
        const Index span = skeleton_.chart->spans.number(step.start, step.width), p = layout_.statistics;
        const Stretches out(layout_, t);
        for (auto number : skeleton_.chart->grammar->by_target[chart.symbol_of(t, place.state)]) {
            const UnaryPath &path = skeleton_.chart->grammar->paths[number];
            const auto from = path.from_closed ? t : step.a;
            const auto state = chart.state_of(from, path.source);
            const double f = *anchored(run_.scores_[kPaths], number, span);
            if (state < 0 || f == kNegativeInfinity) continue;
            const auto *shift = chart.shift(path, span, step.width == 1);
            const Stretches in(layout_, from);
            for (Index r = 0; r < in.count; r++) {
                if (!comes_to(out, place.stretch, in.prefix + r * layout_.prefix_size, shift)) continue;
                const Index offset = in.low[r] + (shift ? shift[p - 1] : 0) - out.low[place.stretch];
                const Real *x = run_.row(from, state) + in.start[r];
                sources(out, place, offset, in.length[r],
                        [&](Index i) { offer(Way{x[i] + f, f, number, {from, {state, r, i}}, {}}); });
            }
        }
    }

    template <class Offer>
    void combine(std::int32_t t, Place place, Offer offer) const {
        const Step &step = skeleton_.steps[t];
        const auto symbol = layout_.chart->symbol_of(t, place.state);
        for (Index split = 1; split < step.width; split++)
            split_at(t, place, symbol, skeleton_.chart->spans.table(Layer::Closed, step.start, split),
                     skeleton_.chart->spans.table(Layer::Closed, step.start + split, step.width - split), offer);
    }

    template <class Offer>
    void split_at(std::int32_t t, Place place, std::int32_t symbol, std::int32_t left, std::int32_t right,
                  Offer offer) const {
        const Step &step = skeleton_.steps[t];
        const Index span = skeleton_.chart->spans.number(step.start, step.width), q = layout_.prefix_size;
        const Stretches a(layout_, left), b(layout_, right), out(layout_, t);
        for (auto number : skeleton_.chart->grammar->by_parent[symbol]) {
            const auto &rule = skeleton_.chart->grammar->rules[number];
            const double f = *anchored(run_.scores_[kRules], number, span);
            const auto state_a = layout_.chart->state_of(left, rule.left);
            const auto state_b = layout_.chart->state_of(right, rule.right);
            if (f == kNegativeInfinity || state_a < 0 || state_b < 0) continue;
            for (Index r = 0; r < a.count; r++)
                for (Index s = 0; s < b.count; s++)
                    if (comes_to(out, place.stretch, a.prefix + r * q, b.prefix + s * q))
                        join_stretches(out, place, a, {left, {state_a, r, 0}}, b, {right, {state_b, s, 0}}, f, number,
                                       offer);
        }
    }

    // All pairs of cells of two stretches that come to a place.
    template <class Offer>
    void join_stretches(const Stretches &out, Place place, const Stretches &a, Cell at_a, const Stretches &b, Cell at_b,
                        double f, Index choice, Offer offer) const {
        const Index ra = at_a.place.stretch, rb = at_b.place.stretch,
                    offset = a.low[ra] + b.low[rb] - out.low[place.stretch];
        const Real *x = run_.row(at_a.table, at_a.place.state) + a.start[ra];
        const Real *y = run_.row(at_b.table, at_b.place.state) + b.start[rb];
        for (Index i = 0; i < a.length[ra]; i++) {
            if (x[i] == kNegativeInfinity) continue;
            at_a.place.cell = i;
            sources(out, place, offset + i, b.length[rb], [&](Index k) {
                at_b.place.cell = k;
                offer(Way{static_cast<double>(x[i]) + y[k] + f, f, choice, at_a, at_b});
            });
        }
    }

    // Whether two prefixes, or a prefix and a shift (null: none), add up to that of a stretch.
    template <class Other>
    bool comes_to(const Stretches &out, Index stretch, const Index *prefix, const Other *other) const {
        const Index q = layout_.prefix_size;
        for (Index i = 0; i < q; i++)
            if (std::min<Index>(layout_.caps[i], prefix[i] + (other ? other[i] : 0)) != out.prefix[stretch * q + i])
                return false;
        return true;
    }

    // Calls `use(i)` for the cells of an input stretch that land on `place` when moved by `offset`.
    template <class Use>
    static void sources(const Stretches &out, Place place, Index offset, Index length, Use use) {
        const Index n = out.length[place.stretch];
        const bool folded = out.natural[place.stretch] > n && place.cell == n - 1;
        const Index first = place.cell - offset, last = folded ? length - 1 : first;
        for (Index i = std::max<Index>(first, 0); i <= last && i < length; i++) use(i);
    }

    const RunOf<Real> &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    std::vector<std::int64_t> states_;  // by variable; those of the table at hand are right
    std::vector<double> scores_;        // of the step at hand, by the state of its variable
    struct Source {
        Index start, stretch, cell;  // its place in a state's row, and what it is
    };
    std::vector<Source> sources_;
};
using Choices = ChoicesOf<double>;

}  // namespace tallytree
