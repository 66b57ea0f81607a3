// Walking down from the root. At each cell the choice is evaluated again: the best one when decoding, one drawn at
// random when sampling. No back-pointers are kept.
#include <cmath>

#include "charts/derivation.h"

namespace tallytree {
namespace {

// Keeps the first of the best.
struct Best {
    Way way{.value = kNegativeInfinity};
    static constexpr int passes = 1;
    void start(int) {}
    void offer(const Way &w) {
        if (w.value > way.value) way = w;
    }
};

// Draws with probability proportional to exp(value): the first pass adds the weights up, the second stops at
// the drawn share of the sum.
struct Draw {
    double scale, uniform, total = 0, target = 0, sum = 0;
    bool drawing = false;
    Way way{};
    static constexpr int passes = 2;
    Draw(double scale, double uniform) : scale(scale), uniform(uniform) {}
    void start(int pass) {
        drawing = pass == 1;
        target = uniform * total;
    }
    void offer(const Way &w) {
        if (w.value == kNegativeInfinity) return;
        const double weight = std::exp(w.value - scale);
        if (!drawing) {
            total += weight;
            return;
        }
        if (way.a.table >= 0 && sum > target) return;
        sum += weight;  // rounding may leave the sum short of the target: the last one offered stays then
        way = w;
    }
};

}  // namespace

template <class Real>
class Walk {
  public:
    Walk(RunOf<Real> &run, const Poll &poll) : run_(run), layout_(*run.layout_), choices_(run), poll_(poll) {}

    // `choose(at, value)` gives a fresh chooser for a cell and its value; `tell(visit)` hears of every cell, top down
    // and the first input before the second, except that what lies in an earlier segment comes later.
    template <class Choose, class Tell>
    void down(Index root_cell, Choose choose, Tell tell) {
        Meter meter(poll_);
        std::vector<Cell> open{choices_.root(root_cell)}, earlier;
        const auto segments = static_cast<Index>(layout_.segment_begin.size()) - 1;
        for (Index segment = segments; segment-- > 0; std::swap(open, earlier)) {
            run_.load_segment(segment, poll_);
            while (!open.empty()) {
                const Cell at = open.back();
                open.pop_back();
                if (at.table < layout_.segment_begin[segment]) earlier.push_back(at);
                else visit(at, choose, tell, open, meter);
            }
        }
    }

  private:
    template <class Choose, class Tell>
    void visit(const Cell &at, Choose choose, Tell tell, std::vector<Cell> &open, Meter &meter) {
        if (choices_.source(at.table)) return tell(Visit{at.table, at.place.state, -1, -1});
        auto chooser = choose(at, run_.memory()[choices_.address(at)]);
        double offered = 0;
        for (int pass = 0; pass < chooser.passes; pass++) {
            chooser.start(pass);
            choices_.ways(at, [&](const Way &way) {
                offered++;
                chooser.offer(way);
            });
        }
        meter.spend(4 * offered + 16);
        if (chooser.way.a.table < 0) throw std::logic_error("decoding met a cell that nothing reaches");
        tell(Visit{at.table, at.place.state, chooser.way.choice, chooser.way.a.table});
        if (chooser.way.b.table >= 0) open.push_back(chooser.way.b);
        open.push_back(chooser.way.a);
    }

    RunOf<Real> &run_;
    const Layout &layout_;
    ChoicesOf<Real> choices_;
    const Poll &poll_;
};

namespace {

Best best(const Cell &, double) { return {}; }

}  // namespace

template <class Real>
void RunOf<Real>::decode(Index cell, std::int64_t *assignment, const Poll &poll) {
    Walk(*this, poll).down(cell, best, [&](const Visit &visit) { label(skeleton_, visit, assignment); });
}

template <class Real>
void RunOf<Real>::sample(Index cell, const double *uniforms, std::int64_t *assignment, const Poll &poll)
    requires Double<Real>
{
    Walk(*this, poll)
        .down(
            cell, [&](const Cell &at, double total) { return Draw(total, uniforms[at.table]); },
            [&](const Visit &visit) { label(skeleton_, visit, assignment); });
}

template void RunOf<double>::decode(Index, std::int64_t *, const Poll &);
template void RunOf<float>::decode(Index, std::int64_t *, const Poll &);
template void RunOf<double>::sample(Index, const double *, std::int64_t *, const Poll &);

ChartStep chart_step(const Layout &layout, const Visit &visit) {
    const Step &step = layout.skeleton->steps[visit.table];
    const auto number = static_cast<std::int32_t>(visit.choice);
    if (step.verb == Verb::Word)
        return {ChartStep::Word, layout.chart->symbol_of(visit.table, visit.state), step.start, step.width, 0};
    if (step.verb == Verb::Unary) return {ChartStep::Unary, number, step.start, step.width, 0};
    return {ChartStep::Split, number, step.start, step.width, layout.skeleton->steps[visit.input].width};
}

std::vector<ChartStep> chart_decode(Run &run, Index cell, const Poll &poll) {
    std::vector<ChartStep> steps;
    Walk(run, poll).down(cell, best, [&](const Visit &visit) { steps.push_back(chart_step(run.layout(), visit)); });
    return steps;
}

std::vector<ChartStep> chart_sample(Run &run, Index cell, const double *uniforms, const Poll &poll) {
    std::vector<ChartStep> steps;
    Walk(run, poll).down(
        cell, [&](const Cell &, double total) { return Draw(total, *uniforms++); },
        [&](const Visit &visit) { steps.push_back(chart_step(run.layout(), visit)); });
    return steps;
}

}  // namespace tallytree
