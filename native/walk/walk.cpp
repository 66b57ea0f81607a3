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

    // From each of some root cells; all of them go through a segment before the next one is loaded. `choose(i, at,
    // value)` gives a fresh chooser for a cell of the i-th one and its value; `tell(i, visit)` hears of every cell, top
    // down and the first input before the second, except that what lies in an earlier segment comes later.
    template <class Choose, class Tell>
    void down(std::span<const Index> root_cells, Choose choose, Tell tell) {
        Meter meter(poll_);
        std::vector<std::vector<Cell>> waiting(root_cells.size());
        for (std::size_t i = 0; i < root_cells.size(); i++) waiting[i].push_back(choices_.root(root_cells[i]));
        std::vector<Cell> open;
        const auto segments = static_cast<Index>(layout_.segment_begin.size()) - 1;
        for (Index segment = segments; segment-- > 0;) {
            load(segment, waiting);
            for (std::size_t i = 0; i < waiting.size(); i++) {
                std::swap(open, waiting[i]);
                const auto here = [&](const Cell &at, double value) { return choose(i, at, value); };
                const auto told = [&](const Visit &visit) { tell(i, visit); };
                while (!open.empty()) {
                    const Cell at = open.back();
                    open.pop_back();
                    if (at.table < layout_.segment_begin[segment]) waiting[i].push_back(at);
                    else visit(at, here, told, open, meter);
                }
            }
        }
    }

  private:
    // The tables of a segment, as far as they lead to cells that wait.
    void load(Index segment, std::span<const std::vector<Cell>> waiting) {
        wanted_.clear();
        for (const auto &cells : waiting)
            for (const Cell &at : cells) wanted_.push_back({at.table, at.place.cell});
        run_.load_segment(segment, wanted_, poll_);
    }

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
    std::vector<TableCell> wanted_;
};

namespace {

Best best(std::size_t, const Cell &, double) { return {}; }

std::span<const Index> only(const Index &cell) { return {&cell, 1}; }

}  // namespace

template <class Real>
void RunOf<Real>::decode(Index cell, std::int64_t *assignment, const Poll &poll) {
    Walk(*this, poll).down(only(cell), best, [&](auto, const Visit &visit) { label(skeleton_, visit, assignment); });
}

template <class Real>
void RunOf<Real>::sample(std::span<const Index> cells, const double *uniforms, std::int64_t *assignments,
                         const Poll &poll)
    requires Double<Real>
{
    const std::size_t tables = layout_->tables.size(), variables = skeleton_.cardinalities.size();
    Walk(*this, poll)
        .down(
            cells,
            [&](std::size_t i, const Cell &at, double total) { return Draw(total, uniforms[i * tables + at.table]); },
            [&](std::size_t i, const Visit &visit) { label(skeleton_, visit, assignments + i * variables); });
}

template void RunOf<double>::decode(Index, std::int64_t *, const Poll &);
template void RunOf<float>::decode(Index, std::int64_t *, const Poll &);
template void RunOf<double>::sample(std::span<const Index>, const double *, std::int64_t *, const Poll &);

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
    const auto tell = [&](auto, const Visit &visit) { steps.push_back(chart_step(run.layout(), visit)); };
    Walk(run, poll).down(only(cell), best, tell);
    return steps;
}

std::vector<ChartStep> chart_sample(Run &run, Index cell, const double *uniforms, const Poll &poll) {
    std::vector<ChartStep> steps;
    const auto tell = [&](auto, const Visit &visit) { steps.push_back(chart_step(run.layout(), visit)); };
    Walk(run, poll).down(only(cell), [&](auto, const Cell &, double total) { return Draw(total, *uniforms++); }, tell);
    return steps;
}

}  // namespace tallytree
