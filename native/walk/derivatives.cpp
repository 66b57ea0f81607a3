// The pass down in shares: what a function of the root's values gains with every cell of every table, and with every
// entry of the scores. A cell is the log of a sum of exponentials, and shares what it is given among the terms of that
// sum as they are parts of it. Shares may have any sign, and nothing is taken to a logarithm.
#include <algorithm>

#include "tables/upward.h"

namespace tallytree {

class Derivatives {
  public:
    Derivatives(Run &run, Arena &shares, const Poll &poll)
        : run_(run),
          layout_(*run.layout_),
          skeleton_(run.skeleton_),
          kernels_(*run.kernels_),
          poll_(poll),
          meter_(poll),
          upward_(run, poll) {
        shares_ = Arena(layout_.bytes(layout_.arena), std::move(shares));
    }
    Arena release() { return std::move(shares_); }

    void pass(std::span<const double> weights, std::span<double *const> entries) {
        if (layout_.root_state < 0) return;
        std::fill_n(static_cast<double *>(shares_.data()), layout_.arena, 0.0);
        constants(take_root(weights), entries);
        const auto segments = static_cast<Index>(layout_.segment_begin.size()) - 1;
        for (Index segment = segments; segment-- > 0;) {
            run_.load_segment(segment, poll_);
            const Index first = layout_.segment_begin[segment], last = layout_.segment_begin[segment + 1];
            for (Index t = first; segments > 1 && t < last; t++)  // other segments were in the same memory
                if (!layout_.tables[t].checkpoint) std::fill_n(table(t), layout_.tables[t].size, 0.0);
            for (auto t = static_cast<std::int32_t>(last); t-- > first;) step(t, entries);
        }
    }

  private:
    void step(std::int32_t t, std::span<double *const> entries) {
        const Verb verb = skeleton_.steps[t].verb;
        if (verb == Verb::Eliminate) eliminate(t, entries);
        else if (verb == Verb::Join) join(t);
    }

    double *table(Index t) const { return static_cast<double *>(shares_.data()) + layout_.tables[t].base; }
    double *row(std::int32_t t, Index state) const { return table(t) + state * layout_.tables[t].stride; }

    // Puts the weights where they belong, and returns their sum. What nothing leads to has no share.
    double take_root(std::span<const double> weights) {
        const auto root = static_cast<std::int32_t>(layout_.tables.size()) - 1;
        const Stretches stretches(layout_, root);
        const double *up = run_.row(root, layout_.root_state);
        double total = 0;
        Index cell = 0;
        for (Index r = 0; r < stretches.count; r++)
            for (Index i = 0; i < stretches.length[r]; i++, cell++) {
                if (up[stretches.start[r] + i] == kNegativeInfinity) continue;
                row(root, layout_.root_state)[stretches.start[r] + i] = weights[cell];
                total += weights[cell];
            }
        return total;
    }

    void constants(double total, std::span<double *const> entries) const {
        for (auto ref : skeleton_.constant_scores) *entry(entries, ref) += total;
    }

    double *entry(std::span<double *const> entries, FactorRef ref) const {
        const auto &block = run_.scores_[ref.block];
        return entries[ref.block] + (block.row(ref.row) - block.data);
    }

    // Cells `first` to `last` of a stretch share with the cells of x `offset` before them; all cells of x from `folded`
    // on, where there are some, are in the last one. Returns what x and f gain together.
    struct Above {
        const double *top, *share;
        Index length, natural;
    };
    double share(const Above &above, const double *x, double f, Index offset, double *to, Index length) {
        const Index first = std::max<Index>(offset, 0), last = std::min(offset + length, above.length);
        double sum = first < last ? pour(above.top + first, above.share + first, x + first - offset, f,
                                         to + first - offset, last - first)
                                  : 0;
        if (above.natural <= above.length) return sum;
        for (Index i = std::max<Index>(above.length - offset, 0); i < length; i++)
            sum += pour(above.top + above.length - 1, above.share + above.length - 1, x + i, f, to + i, 1);
        return sum;
    }

    double pour(const double *top, const double *share, const double *x, double f, double *to, Index n) {
        if (static_cast<Index>(part_.size()) < n) part_.resize(n);
        kernels_.share_exponentials(x, f, top, share, part_.data(), n);
        double sums[4] = {};  // in an order that no instruction set changes
        for (Index i = 0; i < n; i++) {
            to[i] += part_[i];
            sums[i % 4] += part_[i];
        }
        meter_.spend(static_cast<double>(n) + 8);
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    bool is_empty(const double *shares, Index n) const {
        return std::all_of(shares, shares + n, [](double share) { return share == 0; });
    }

    void eliminate(std::int32_t t, std::span<double *const> entries) {
        const Step &step = skeleton_.steps[t];
        const StepView s = layout_.step(t);
        const Stretches in(layout_, step.a), out(layout_, t);
        const double *scores = upward_.local_scores(t);
        local_.assign(step.score_size, 0.0);
        Odometer at(skeleton_.kept[t]);
        for (Index p = 0; p < step.kept_states; p++, at.next())
            for (Index j = 0; j < step.fresh; j++)
                for (Index r = 0; r < out.count; r++) {
                    const Index state = j * step.kept_states + p;
                    const Above above{run_.row(t, state) + out.start[r], row(t, state) + out.start[r], out.length[r],
                                      out.natural[r]};
                    if (is_empty(above.share, above.length)) continue;
                    for (Index v = 0; v < step.gone.count; v++) {
                        const Index place = at.score + v * step.gone.score + j * step.fresh_score;
                        if (scores[place] == kNegativeInfinity) continue;
                        const Index d = s.class_of[at.shift + v * step.gone.shift + (step.shift_has_fresh ? j : 0)];
                        const Index group = r * s.classes + d, from = at.a + v * step.gone.a;
                        for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++) {
                            const Index ra = s.pairs.a[q];
                            local_[place] += share(above, run_.row(step.a, from) + in.start[ra], scores[place],
                                                   in.low[ra] + s.class_shift[d] - out.low[r],
                                                   row(step.a, from) + in.start[ra], in.length[ra]);
                        }
                    }
                }
        spread(t, entries);
    }

    // Every factor of a step gains what their sum does.
    void spread(std::int32_t t, std::span<double *const> entries) const {
        const auto refs = skeleton_.score_refs[t];
        for (std::size_t i = 0; i < refs.size(); i++) {
            double *to = entry(entries, refs[i]);
            const double *from = local_.data();
            walk_factor(skeleton_.score_loops[skeleton_.score_refs.begin[t] + static_cast<Index>(i)],
                        [&](Index at, Index n, Index stride) {
                            for (Index x = 0; x < n; x++) to[at + x * stride] += *from++;
                        });
        }
    }

    void join(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        const PairList pairs = layout_.step(t).pairs;
        const Stretches a(layout_, step.a), b(layout_, step.b), out(layout_, t);
        Odometer at(skeleton_.kept[t]);
        for (Index s = 0; s < step.kept_states; s++, at.next())
            for (Index r = 0; r < out.count; r++) {
                const Above above{run_.row(t, s) + out.start[r], row(t, s) + out.start[r], out.length[r],
                                  out.natural[r]};
                if (is_empty(above.share, above.length)) continue;
                for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
                    const Index ra = pairs.a[q], rb = pairs.b[q];
                    const double *f = run_.row(step.a, at.a) + a.start[ra];
                    for (Index i = 0; i < a.length[ra]; i++)
                        if (f[i] != kNegativeInfinity)
                            row(step.a, at.a)[a.start[ra] + i] += share(above, run_.row(step.b, at.b) + b.start[rb],
                                                                        f[i], a.low[ra] + b.low[rb] - out.low[r] + i,
                                                                        row(step.b, at.b) + b.start[rb], b.length[rb]);
                }
            }
    }

    Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    const MaxPlusKernels &kernels_;
    const Poll &poll_;
    Meter meter_;
    Upward upward_;  // packs local scores
    Arena shares_;
    std::vector<double> local_, part_;
};

template <class Real>
void RunOf<Real>::differentiate(std::span<const double> weights, std::span<double *const> entries, Arena &shares,
                                const Poll &poll)
    requires Double<Real>
{
    Derivatives derivatives(*this, shares, poll);
    derivatives.pass(weights, entries);
    shares = derivatives.release();
}

template void RunOf<double>::differentiate(std::span<const double>, std::span<double *const>, Arena &, const Poll &);

}  // namespace tallytree
