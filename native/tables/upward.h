// The upward pass: each step of the program, over any algebra.
#pragma once

#include "tables/step_parts.h"
#include "tables/run.h"

namespace tallytree {

// Advances several strides together over nested loops.
struct Odometer {
    std::span<const Loop> loops;
    std::vector<Index> digits;
    Index a = 0, b = 0, score = 0, shift = 0;

    explicit Odometer(std::span<const Loop> l, Index place = 0) : loops(l), digits(l.size(), 0) {
        for (std::size_t i = loops.size(); place > 0 && i-- > 0; place /= loops[i].count)
            move(i, place % loops[i].count);
    }
    void move(std::size_t i, Index by) {
        const Loop &loop = loops[i];
        digits[i] += by;
        a += loop.a * by;
        b += loop.b * by;
        score += loop.score * by;
        shift += loop.shift * by;
    }
    void next() {
        for (std::size_t i = loops.size(); i-- > 0;) {
            const Loop &loop = loops[i];
            a += loop.a;
            b += loop.b;
            score += loop.score;
            shift += loop.shift;
            if (++digits[i] < loop.count) return;
            digits[i] = 0;
            a -= loop.a * loop.count;
            b -= loop.b * loop.count;
            score -= loop.score * loop.count;
            shift -= loop.shift * loop.count;
        }
    }
};

// The stretches of one table, with addresses relative to a state's row.
struct Stretches {
    Index count;
    const Index *prefix, *low, *length, *natural, *start;
    Stretches(const Layout &l, std::int32_t t)
        : count(l.tables[t].stretches),
          prefix(l.prefix.data() + l.tables[t].stretches_begin * l.prefix_size),
          low(l.low.data() + l.tables[t].stretches_begin),
          length(l.length.data() + l.tables[t].stretches_begin),
          natural(l.natural.data() + l.tables[t].stretches_begin),
          start(l.start.data() + l.tables[t].stretches_begin) {}
};

// Copies of the stretches of one state of a table, each aligned and between guards of -inf.
template <class Real>
class GuardedStretches {
  public:
    void reset(const Stretches &stretches);
    void copy(const Stretches &stretches, const Real *row, Index state);
    const Real *operator[](Index r) const { return base_ + start_[r]; }

  private:
    std::vector<Real> cells_;
    std::vector<Index> start_;
    Real *base_ = nullptr;
    Index state_ = -1;  // the one that is there
};
class UpTallies;
class UpPlain;

template <class Real>
class UpwardOf {
  public:
    UpwardOf(RunOf<Real> &run, const Poll &poll);
    ~UpwardOf();

    // Makes the table of step t and of those that are done together with it, or a part of it. The parts of a step may
    // be computed by several threads, each with its own Upward.
    template <class Algebra>
    void step(Algebra &algebra, std::int32_t t, Part part = {});

    // The local score table of a step, until the next one is asked for.
    const Real *local_scores(std::int32_t t) { return pack_scores(t); }

  private:
    static constexpr Index kLanes = kLanesOf<Real>;
    static Index round_up(Index n) { return tallytree::round_up(n, kLanes); }

    struct LocalScores {
        const Real *main;  // laid out as the step says
        const Real *late;  // one for each fresh state, or null
    };
    // A copy of a factor, with room behind it so that whole vectors can be read.
    struct Roomy {
        std::vector<Real> cells;
        const double *from = nullptr;
    };
    const Real *as_read(const TableBlock<double> &block, Index row, bool whole_vectors, Roomy &roomy) const;
    void round(const double *from, Index n, std::vector<Real> &to) const;
    LocalScores split_scores(std::int32_t t, bool whole_vectors);
    const Real *pack_scores(std::int32_t t, Index without = -1);
    void sum_factors(std::int32_t t, Index without);  // into scores_
    void pack_two(const double *whole, const double *rows, std::span<const FactorLoop> loops);
    void pack_stretch(const double *from, Index stride, double *out, Index n, bool first);
    template <class Algebra>
    void unit(std::int32_t t);
    template <class Algebra>
    void eliminate(Algebra &algebra, std::int32_t t, Part part);
    template <class Algebra>
    void join(Algebra &algebra, std::int32_t t, Part part);
    template <class Value>
    void add_term(const Value *x, Value f, Index offset, Index length, Range range, Index folded);
    template <class Algebra>
    void chart(Algebra &algebra, std::int32_t t);

    // max-plus, tuned
    void eliminate_rows(std::int32_t t, Part part);
    void eliminate_cells(std::int32_t t, Part part);
    void eliminate_along(std::int32_t t);
    void join_rows(std::int32_t t, Part part);
    void join_cells(std::int32_t t, Part part);
    using ConvolveKernel = decltype(KernelsOf<Real>::convolve);
    struct Joint {
        Stretches a, b, out;
        PairList pairs;
    };
    void gather(const Joint &join, Index r, Index first);
    void convolve(ConvolveKernel kernel, std::span<const ConvolutionOf<Real>> list, Real *to, Range range,
                  double operations);
    void find_gaps(std::int32_t t);
    void fill_gaps(std::int32_t t, Real *row, Range range, Index rows = 1, Index apart = 0) const;
    void surround(std::int32_t t, Real *row, Index r, Range made, Index rows = 1, Index apart = 0) const;
    void move_stretches(std::int32_t t);
    const Real *turn(std::int32_t t, std::vector<Loop> &kept, Index &gone);

    RunOf<Real> &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    const KernelsOf<Real> &kernels_;
    Meter meter_;
    std::vector<double> scores_;
    std::vector<Real> rounded_;  // the same, where these are not doubles
    Roomy main_, late_;
    std::int32_t packed_ = -1, turned_step_ = -1;  // the steps of scores_ and turned_
    std::int32_t gaps_step_ = -1, moved_step_ = -1;
    Index packed_without_ = -1;
    std::vector<Term<double>> terms_;
    std::vector<const Real *> x_, f_;
    std::vector<Real> turned_, natural_;
    std::vector<double> merged_;
    std::vector<ConvolutionOf<Real>> pairs_;
    struct Gap {
        Index stretch, from, to;
    };
    std::vector<Gap> gaps_;     // of a row of the step's table: cells that no stretch covers, behind each stretch
    std::vector<Index> moved_;  // per pair of the step
    GuardedStretches<Real> guarded_a_, guarded_b_;
    std::unique_ptr<UpTallies> up_tallies_;  // the verbs of charts, once they are needed
    std::unique_ptr<UpPlain> up_plain_;
};
using Upward = UpwardOf<double>;

}  // namespace tallytree
