// Walking down from the root. At each step the local choice is evaluated again: the best one when decoding,
// one drawn at random when sampling. No back-pointers are kept.
#include <cmath>

#include "choices.h"

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
    Walk(Run &run, const Poll &poll)
        : run_(run), layout_(*run.layout_), skeleton_(run.skeleton_), choices_(run), poll_(poll) {}

    // `choose(step)` gives a fresh chooser.
    template <class Choose>
    void down(Index cell, std::int64_t *assignment, Choose choose, const double *uniforms) {
        std::vector<Place> places(layout_.tables.size());
        places.back() = choices_.root(cell);
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
                    offer(static_cast<std::int32_t>(t), place, assignment, chooser);
                }
                if (!chooser.found()) throw std::logic_error("decoding met a cell that no labelling reaches");
                places[step.a] = chooser.a;
                if (step.verb == Verb::Join) places[step.b] = chooser.b;
                else assignment[step.variable] = chooser.state;
            }
        }
    }

  private:
    template <class Chooser>
    void offer(std::int32_t t, Place place, std::int64_t *assignment, Chooser &chooser) const {
        if (skeleton_.steps[t].verb == Verb::Join)
            choices_.join(t, place, [&](double x, double y, Place a, Place b) { chooser.offer(x + y, 0, a, b); });
        else
            choices_.eliminate(t, place, assignment,
                               [&](double x, double f, Index v, Place a) { chooser.offer(x + f, v, a, {}); });
    }

    Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    const Choices choices_;
    const Poll &poll_;
};

void Run::decode(Index cell, std::int64_t *assignment, const Poll &poll) {
    Walk(*this, poll).down(cell, assignment, [](double) { return Best{}; }, nullptr);
}

void Run::sample(Index cell, const double *uniforms, std::int64_t *assignment, const Poll &poll) {
    Walk(*this, poll).down(cell, assignment, [](double total) { return Draw{total}; }, uniforms);
}

}  // namespace tallytree
