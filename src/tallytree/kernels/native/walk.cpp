// Walking down from the root. At each step the local choice is evaluated again: the best one when decoding,
// one drawn at random when sampling. No back-pointers are kept.
#include <algorithm>
#include <cmath>

#include "upward.h"

namespace tallytree {
namespace {

// Keeps the first of the best.
struct Best {
    double value = kNegativeInfinity;
    Place a, b;
    Index state = -1;
    void offer(double v, Index s, Place pa, Place pb) {
        if (v > value) {
            value = v;
            state = s;
            a = pa;
            b = pb;
        }
    }
    static constexpr int passes = 1;
    void start(int, double) {}
    bool found() const { return state >= 0; }
};

// Draws with probability proportional to exp(value): the first pass adds the weights up, the second stops at
// the drawn share of the sum.
struct Draw {
    double total = 0, target = 0, sum = 0, scale = 0;
    bool drawing = false;
    Place a, b;
    Index state = -1;
    static constexpr int passes = 2;
    explicit Draw(double scale) : scale(scale) {}
    void start(int pass, double uniform) {
        drawing = pass == 1;
        if (drawing) target = uniform * total;
    }
    void offer(double v, Index s, Place pa, Place pb) {
        if (v == kNegativeInfinity) return;
        const double weight = std::exp(v - scale);
        if (!drawing) {
            total += weight;
            return;
        }
        if (state >= 0 && sum > target) return;
        sum += weight;  // rounding may leave the sum short of the target: the last one offered stays then
        state = s;
        a = pa;
        b = pb;
    }
    bool found() const { return state >= 0; }
};

}  // namespace

class Walk {
  public:
    Walk(Run &run, const Poll &poll) : run_(run), layout_(*run.layout_), skeleton_(run.skeleton_), poll_(poll) {}

    // `choose(step)` gives a fresh chooser.
    template <class Choose>
    void down(Index cell, std::int64_t *assignment, Choose choose, const double *uniforms) {
        std::vector<Place> places(layout_.tables.size());
        places.back() = root_place(cell);
        const auto segments = static_cast<Index>(layout_.segment_begin.size()) - 1;
        for (Index segment = segments; segment-- > 0;) {
            run_.load_segment(segment, poll_);
            for (Index t = layout_.segment_begin[segment + 1]; t-- > layout_.segment_begin[segment];) {
                const Step &step = skeleton_.steps[t];
                if (step.verb == Verb::Unit) continue;
                const Place place = places[t];
                const auto *row = run_.row(static_cast<std::int32_t>(t), place.state);
                auto chooser = choose(row[layout_.start[layout_.tables[t].runs_begin + place.run] + place.cell]);
                for (int pass = 0; pass < chooser.passes; pass++) {
                    chooser.start(pass, uniforms ? uniforms[t] : 0);
                    if (step.verb == Verb::Join) offer_join(static_cast<std::int32_t>(t), place, chooser);
                    else offer_eliminate(static_cast<std::int32_t>(t), place, assignment, chooser);
                }
                if (!chooser.found()) throw std::logic_error("decoding met a cell that no labelling reaches");
                places[step.a] = chooser.a;
                if (step.verb == Verb::Join) places[step.b] = chooser.b;
                else assignment[step.variable] = chooser.state;
            }
        }
    }

  private:
    Place root_place(Index cell) const {
        const Runs runs(layout_, static_cast<std::int32_t>(layout_.tables.size()) - 1);
        Index r = 0;
        while (cell >= runs.length[r]) cell -= runs.length[r++];
        return {0, r, cell};
    }

    // Calls `use(i)` for the cells of an input run that land on `cell` when moved by `offset`.
    template <class Use>
    static void sources(Index cell, Index offset, Index length, Index out_length, Index natural, Use use) {
        const bool folded = natural > out_length && cell == out_length - 1;
        const Index first = cell - offset, last = folded ? length - 1 : first;
        for (Index i = std::max<Index>(first, 0); i <= last && i < length; i++) use(i);
    }

    template <class Chooser>
    void offer_eliminate(std::int32_t t, Place place, std::int64_t *assignment, Chooser &chooser) {
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
                        [&](Index i) { chooser.offer(row[in.start[ra] + i] + f, v, {state, ra, i}, {}); });
            }
        }
    }

    template <class Chooser>
    void offer_join(std::int32_t t, Place place, Chooser &chooser) {
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
                    [&](Index k) { chooser.offer(x + row_b[b.start[rb] + k], 0, {state_a, ra, i}, {state_b, rb, k}); });
            }
        }
    }

    Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    const Poll &poll_;
};

void Run::decode(Index cell, std::int64_t *assignment, const Poll &poll) {
    Walk(*this, poll).down(cell, assignment, [](double) { return Best{}; }, nullptr);
}

void Run::sample(Index cell, const double *uniforms, std::int64_t *assignment, const Poll &poll) {
    Walk(*this, poll).down(cell, assignment, [](double total) { return Draw{total}; }, uniforms);
}

}  // namespace tallytree
