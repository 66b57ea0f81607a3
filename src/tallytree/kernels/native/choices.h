// The ways to make one cell of a table: what decoding, sampling and ranking choose from.
#pragma once

#include <algorithm>

#include "upward.h"

namespace tallytree {

// Where a walk down the tree stands in a table.
struct Place {
    Index state = 0, run = 0, cell = 0;
};

class Choices {
  public:
    explicit Choices(const Run &run) : run_(run), layout_(*run.layout_), skeleton_(run.skeleton_) {}

    Place root(Index cell) const {
        const Runs runs(layout_, static_cast<std::int32_t>(layout_.tables.size()) - 1);
        Index r = 0;
        while (cell >= runs.length[r]) cell -= runs.length[r++];
        return {0, r, cell};
    }

    // Calls `offer(x, f, v, a)` for every cell of the input that comes to `place` when its variable has state v: x is
    // the cell's value at place `a`, f the local score. The assignment must hold the states of the table's scope; the
    // variable's entry is overwritten.
    template <class Offer>
    void eliminate(std::int32_t t, Place place, std::int64_t *assignment, Offer offer) const {
        const Step &step = skeleton_.steps[t];
        const StepView s = layout_.step(t);
        const Runs in(layout_, step.a), out(layout_, t);
        const Index fresh = place.state / step.kept_states;
        Index at_a = 0, at_shift = step.shift_has_fresh ? fresh : 0, rest = place.state % step.kept_states;
        const auto kept = skeleton_.kept[t];
        for (std::size_t i = kept.size(); i-- > 0; rest /= kept[i].count) {
            at_a += rest % kept[i].count * kept[i].a;
            at_shift += rest % kept[i].count * kept[i].shift;
        }
        for (Index v = 0; v < step.gone.count; v++) {
            assignment[step.variable] = v;
            const double f = run_.local_score(t, assignment);
            if (f == kNegativeInfinity) continue;
            const Index d = s.class_of[at_shift + v * step.gone.shift], group = place.run * s.classes + d;
            const Index state = at_a + v * step.gone.a;
            const double *row = run_.row(step.a, state);
            for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++) {
                const Index ra = s.pairs.a[q];
                const Index offset = in.low[ra] + s.class_shift[d] - out.low[place.run];
                sources(place.cell, offset, in.length[ra], out.length[place.run], out.natural[place.run],
                        [&](Index i) { offer(row[in.start[ra] + i], f, v, Place{state, ra, i}); });
            }
        }
    }

    // Calls `offer(x, y, a, b)` for every pair of cells that comes to `place`; x and y are their values.
    template <class Offer>
    void join(std::int32_t t, Place place, Offer offer) const {
        const Step &step = skeleton_.steps[t];
        const PairList pairs = layout_.step(t).pairs;
        const Runs a(layout_, step.a), b(layout_, step.b), out(layout_, t);
        Index state_a = 0, state_b = 0, rest = place.state;
        const auto kept = skeleton_.kept[t];
        for (std::size_t i = kept.size(); i-- > 0; rest /= kept[i].count) {
            state_a += rest % kept[i].count * kept[i].a;
            state_b += rest % kept[i].count * kept[i].b;
        }
        const double *row_a = run_.row(step.a, state_a), *row_b = run_.row(step.b, state_b);
        for (Index q = pairs.begin[place.run]; q < pairs.begin[place.run + 1]; q++) {
            const Index ra = pairs.a[q], rb = pairs.b[q];
            const Index offset = a.low[ra] + b.low[rb] - out.low[place.run];
            for (Index i = 0; i < a.length[ra]; i++) {
                const double x = row_a[a.start[ra] + i];
                if (x == kNegativeInfinity) continue;
                sources(
                    place.cell, offset + i, b.length[rb], out.length[place.run], out.natural[place.run],
                    [&](Index k) { offer(x, row_b[b.start[rb] + k], Place{state_a, ra, i}, Place{state_b, rb, k}); });
            }
        }
    }

  private:
    // Calls `use(i)` for the cells of an input run that land on `cell` when moved by `offset`.
    template <class Use>
    static void sources(Index cell, Index offset, Index length, Index out_length, Index natural, Use use) {
        const bool folded = natural > out_length && cell == out_length - 1;
        const Index first = cell - offset, last = folded ? length - 1 : first;
        for (Index i = std::max<Index>(first, 0); i <= last && i < length; i++) use(i);
    }

    const Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
};

}  // namespace tallytree
