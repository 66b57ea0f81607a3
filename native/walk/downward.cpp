// The downward pass: what the rest of the labelling can add to each cell of each table, by the same verbs
// read backwards. Multiplied with the upward table it gives marginals.
#include <algorithm>

#include "tables/upward.h"

namespace tallytree {

// The sum of many single values: they are gathered into rows, which are added side by side.
template <class Algebra>
class Total {
  public:
    explicit Total(Algebra &algebra) : algebra_(algebra) { values_.reserve(kRows * kWidth); }

    void add(double value) {
        values_.push_back(value);
        if (values_.size() == kRows * kWidth) gather();
    }

    double value() {
        gather();
        return sum_;
    }

  private:
    static constexpr Index kRows = 64, kWidth = 64;

    void gather() {
        while (values_.size() % kWidth) values_.push_back(Algebra::zero());
        terms_.clear();
        for (const double *x = values_.data(); x < values_.data() + values_.size(); x += kWidth)
            terms_.push_back({x, Algebra::one(), 0, kWidth, 1});
        algebra_.combine(terms_, columns_, kWidth);
        terms_.assign(1, {&sum_, Algebra::one(), 0, 1, 0});
        for (const double &column : columns_) terms_.push_back({&column, Algebra::one(), 0, 1, 0});
        double whole;
        algebra_.combine(terms_, &whole, 1);
        sum_ = whole;
        values_.clear();
    }

    Algebra &algebra_;
    double sum_ = Algebra::zero();
    double columns_[kWidth];
    std::vector<double> values_;
    std::vector<Term<double>> terms_;
};

class Downward {
  public:
    Downward(Run &run, const Poll &poll)
        : run_(run),
          layout_(*run.layout_),
          skeleton_(run.skeleton_),
          meter_(poll),
          upward_(run, poll),
          outside_(layout_.bytes(layout_.arena)) {
        Index at = 0;
        for (auto card : skeleton_.cardinalities) {
            first_.push_back(at);
            at += card;
        }
        result_.resize(at);
    }

    template <class Algebra>
    std::vector<double> pass(Algebra &algebra, std::span<const double> weights) {
        const auto root = static_cast<std::int32_t>(layout_.tables.size()) - 1;
        const Stretches stretches(layout_, root);
        Index cell = 0;
        for (Index r = 0; r < stretches.count; r++)
            for (Index i = 0; i < stretches.length[r]; i++) row(root, 0)[stretches.start[r] + i] = weights[cell++];
        for (std::int32_t t = root; t >= 0; t--) {
            const Verb verb = skeleton_.steps[t].verb;
            if (verb == Verb::Eliminate) {
                pull_eliminate(algebra, t);
                marginal(algebra, t);
            } else if (verb == Verb::Join) {
                pull_join(algebra, t, false);
                pull_join(algebra, t, true);
            }
        }
        return std::move(result_);
    }

  private:
    double *row(std::int32_t t, Index state) const {
        return static_cast<double *>(outside_.data()) + layout_.tables[t].base + state * layout_.tables[t].stride;
    }

    // Cell i of the input is followed by cell i + offset of the output, or by the last one above a cap.
    void push_terms(const double *x, double f, Index offset, Index length, Index out_length, bool folds) {
        const Index first = std::max<Index>(0, -offset), last = std::min(length, out_length - offset);
        if (first < last) terms_.push_back({x + offset, f, first, last, 1});
        const Index above = std::max<Index>(out_length - offset, 0);
        if (folds && above < length) terms_.push_back({x + out_length - 1, f, above, length, 0});
    }

    template <class Algebra>
    void pull_eliminate(Algebra &algebra, std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        const StepView s = layout_.step(t);
        const Stretches in(layout_, step.a), out(layout_, t);
        std::vector<std::vector<std::pair<Index, Index>>> targets(
            in.count);  // (out stretch, class) of each input stretch
        for (Index group = 0; group < s.pairs.groups; group++)
            for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++)
                targets[s.pairs.a[q]].push_back({group / s.classes, s.pairs.b[q]});
        const double *scores = upward_.local_scores(t);
        Odometer at(skeleton_.kept[t]);
        for (Index p = 0; p < step.kept_states; p++, at.next())
            for (Index v = 0; v < step.gone.count; v++)
                for (Index ra = 0; ra < in.count; ra++) {
                    terms_.clear();
                    for (Index j = 0; j < step.fresh; j++) {
                        const Index state = j * step.kept_states + p;
                        const auto f = Algebra::lift(scores[at.score + v * step.gone.score + j * step.fresh_score]);
                        if (f == Algebra::zero()) continue;
                        const Index d = s.class_of[at.shift + v * step.gone.shift + (step.shift_has_fresh ? j : 0)];
                        for (auto [r, target_class] : targets[ra])
                            if (target_class == d)
                                push_terms(row(t, state) + out.start[r], f, in.low[ra] + s.class_shift[d] - out.low[r],
                                           in.length[ra], out.length[r], out.natural[r] > out.length[r]);
                    }
                    algebra.combine(terms_, row(step.a, at.a + v * step.gone.a) + in.start[ra], in.length[ra]);
                    meter_.spend(static_cast<double>(in.length[ra] + 8) * static_cast<double>(terms_.size() + 1));
                }
    }

    // For one input of a join: the sum over the other input and over the states that only the other has.
    template <class Algebra>
    void pull_join(Algebra &algebra, std::int32_t t, bool second) {
        const Step &step = skeleton_.steps[t];
        const PairList pairs = layout_.step(t).pairs;
        const std::int32_t mine = second ? step.b : step.a, other = second ? step.a : step.b;
        const Stretches in(layout_, mine), side(layout_, other), out(layout_, t);
        std::vector<std::vector<std::pair<Index, Index>>> targets(in.count);  // (out stretch, other's stretch)
        for (Index r = 0; r < out.count; r++)
            for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++)
                targets[second ? pairs.b[q] : pairs.a[q]].push_back({r, second ? pairs.a[q] : pairs.b[q]});
        std::vector<std::vector<std::pair<Index, Index>>> states(layout_.tables[mine].states);  // (out, other's)
        Odometer at(skeleton_.kept[t]);
        for (Index s = 0; s < step.kept_states; s++, at.next())
            states[second ? at.b : at.a].push_back({s, second ? at.a : at.b});
        for (Index state = 0; state < layout_.tables[mine].states; state++)
            for (Index stretch = 0; stretch < in.count; stretch++) {
                terms_.clear();
                for (auto [s, other_state] : states[state])
                    for (auto [r, other_stretch] : targets[stretch]) {
                        const double *f = run_.row(other, other_state) + side.start[other_stretch];
                        const Index offset = in.low[stretch] + side.low[other_stretch] - out.low[r];
                        for (Index k = 0; k < side.length[other_stretch]; k++)
                            if (f[k] != Algebra::zero())
                                push_terms(row(t, s) + out.start[r], f[k], offset + k, in.length[stretch],
                                           out.length[r], out.natural[r] > out.length[r]);
                    }
                algebra.combine(terms_, row(mine, state) + in.start[stretch], in.length[stretch]);
                meter_.spend(static_cast<double>(in.length[stretch]) * static_cast<double>(terms_.size() + 1));
            }
    }

    // The eliminated variable's states, each with the sum over everything else.
    template <class Algebra>
    void marginal(Algebra &algebra, std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        const Stretches in(layout_, step.a);
        for (Index v = 0; v < step.gone.count; v++) {
            Total<Algebra> total(algebra);
            Odometer at(skeleton_.kept[t]);
            for (Index p = 0; p < step.kept_states; p++, at.next())
                for (Index r = 0; r < in.count; r++) {
                    const Index state = at.a + v * step.gone.a;
                    const double *up = run_.row(step.a, state) + in.start[r], *down = row(step.a, state) + in.start[r];
                    for (Index i = 0; i < in.length[r]; i++)
                        if (up[i] != Algebra::zero() && down[i] != Algebra::zero())
                            total.add(algebra.times(up[i], down[i]));
                    meter_.spend(static_cast<double>(in.length[r]));
                }
            result_[first_[step.variable] + v] = total.value();
        }
    }

    Run &run_;
    const Layout &layout_;
    const Skeleton &skeleton_;
    Meter meter_;
    Upward upward_;  // packs local scores
    Arena outside_;
    std::vector<Index> first_;
    std::vector<double> result_;
    std::vector<Term<double>> terms_;
};

template <class Real>
std::vector<double> RunOf<Real>::downward(std::span<const double> weights, const Poll &poll)
    requires Double<Real>
{
    if (layout_->segment_begin.size() > 2) throw BudgetExceeded("marginals need every table");
    if (kind_ == AlgebraKind::MaxPlus) {
        MaxPlus algebra;
        return Downward(*this, poll).pass(algebra, weights);
    }
    if (kind_ == AlgebraKind::LogSumExp) {
        LogSumExp algebra;
        algebra.kernels = kernels_;
        return Downward(*this, poll).pass(algebra, weights);
    }
    CountingModulo algebra;
    algebra.prime = prime_;
    return Downward(*this, poll).pass(algebra, weights);
}

template std::vector<double> RunOf<double>::downward(std::span<const double>, const Poll &);

}  // namespace tallytree
