// The upward pass. `eliminate` is absorb and project in one: no joined or absorbed table is ever stored.
#include "tables/upward.h"

#include <algorithm>
#include <cstring>

#include "charts/up_tallies.h"
#include "charts/up_plain.h"

namespace tallytree {
namespace {

bool contiguous(std::span<const FactorLoop> loops) { return loops.size() == 1 && loops[0].stride == 1; }
bool constant_rows(std::span<const FactorLoop> loops) { return loops.size() == 2 && loops[1].stride == 0; }

}  // namespace

template <class Real>
UpwardOf<Real>::UpwardOf(RunOf<Real> &run, const Poll &poll)
    : run_(run),
      layout_(*run.layout_),
      skeleton_(run.skeleton_),
      kernels_(run.kernels_->template of<Real>()),
      meter_(poll) {}
template <class Real>
UpwardOf<Real>::~UpwardOf() = default;

// ---- local scores ------------------------------------------------------------------------------------------------

// The sum of a step's factors, but for number `without`: added as doubles, and rounded once.
template <class Real>
const Real *UpwardOf<Real>::pack_scores(std::int32_t t, Index without) {
    const bool there = packed_ == t && packed_without_ == without;
    if (!there) sum_factors(t, without);
    if constexpr (Double<Real>) return scores_.data();
    if (!there) round(scores_.data(), skeleton_.steps[t].score_size, rounded_);
    return rounded_.data();
}

template <class Real>
void UpwardOf<Real>::sum_factors(std::int32_t t, Index without) {
    packed_ = t;
    packed_without_ = without;
    const Index size = skeleton_.steps[t].score_size;
    if (static_cast<Index>(scores_.size()) < size + kLanes) scores_.resize(size + kLanes);
    const auto refs = skeleton_.score_refs[t];
    const Index first = skeleton_.score_refs.begin[t], count = static_cast<Index>(refs.size());
    const auto loops = [&](Index i) { return skeleton_.score_loops[first + i]; };
    const auto table = [&](Index i) { return run_.scores_[refs[i].block].row(refs[i].row); };
    if (count == 2 && without < 0)  // a pairwise factor and a unary one: in one go
        for (Index i : {0, 1})
            if (contiguous(loops(i)) && constant_rows(loops(1 - i)))
                return pack_two(table(i), table(1 - i), loops(1 - i));
    bool none = true;
    for (Index i = 0; i < count; i++) {
        if (i == without) continue;
        double *out = scores_.data();
        walk_factor(loops(i), [&](Index at, Index n, Index stride) {
            pack_stretch(table(i) + at, stride, out, n, none);
            out += n;
        });
        none = false;
    }
    if (none) std::fill(scores_.data(), scores_.data() + size, 0);
}

// The factor over the fresh states alone apart from the others, and these as they lie where there is only one.
template <class Real>
typename UpwardOf<Real>::LocalScores UpwardOf<Real>::split_scores(std::int32_t t, bool whole_vectors) {
    const Step &step = skeleton_.steps[t];
    const auto refs = skeleton_.score_refs[t];
    const Index others = static_cast<Index>(refs.size()) - (step.late >= 0 ? 1 : 0), main = step.late == 0 ? 1 : 0;
    const auto table = [&](FactorRef ref, Roomy &roomy) {
        return as_read(run_.scores_[ref.block], ref.row, whole_vectors, roomy);
    };
    LocalScores local{nullptr, nullptr};
    if (step.late >= 0) local.late = table(refs[step.late], late_);
    if (others == 1 && contiguous(skeleton_.score_loops[skeleton_.score_refs.begin[t] + main])) {
        local.main = table(refs[main], main_);
    } else {
        local.main = pack_scores(t, step.late);
    }
    return local;
}

// A factor as the kernels read it: as it lies, unless it has no room behind it, or other numbers.
template <class Real>
const Real *UpwardOf<Real>::as_read(const TableBlock<double> &block, Index row, bool whole_vectors,
                                    Roomy &roomy) const {
    const double *table = block.row(row);
    if constexpr (Double<Real>)
        if (!whole_vectors || (block.count - 1 - row) * block.size >= kLanes) return table;
    if (roomy.from != table) round(table, block.size, roomy.cells);
    roomy.from = table;
    return roomy.cells.data();
}

template <class Real>
void UpwardOf<Real>::round(const double *from, Index n, std::vector<Real> &to) const {
    if (static_cast<Index>(to.size()) < n + kLanes) to.resize(n + kLanes);
    kernels_.round_all(from, to.data(), n);
}

template <class Real>
void UpwardOf<Real>::pack_two(const double *whole, const double *rows, std::span<const FactorLoop> loops) {
    run_.kernels_->offset_rows(whole, rows, loops[0].stride, scores_.data(), loops[0].count, loops[1].count);
}

template <class Real>
void UpwardOf<Real>::pack_stretch(const double *from, Index stride, double *out, Index n, bool first) {
    if (first && stride == 1) std::memcpy(out, from, static_cast<std::size_t>(n) * sizeof(double));
    else if (first)
        for (Index x = 0; x < n; x++) out[x] = from[x * stride];
    else if (stride == 1) run_.kernels_->add(from, out, n);
    else if (stride == 0)
        for (Index x = 0; x < n; x++) out[x] += *from;
    else
        for (Index x = 0; x < n; x++) out[x] += from[x * stride];
}

// ---- any algebra -----------------------------------------------------------------------------------------------

template <class Real>
template <class Algebra>
void UpwardOf<Real>::unit(std::int32_t t) {
    const auto &table = layout_.tables[t];
    Real *data = run_.memory() + table.base;
    std::fill(data, data + table.size, Algebra::zero());
    const Index start = layout_.start[table.stretches_begin];
    for (Index s = 0; s < table.states; s++) data[s * table.stride + start] = Algebra::one();
}

// Cells of the output that `range` holds take x[l - offset] * f; those beyond `folded`, if that is not zero, go into
// the last one.
template <class Real>
template <class Value>
void UpwardOf<Real>::add_term(const Value *x, Value f, Index offset, Index length, Range range, Index folded) {
    const Index first = std::max(offset, range.first), last = std::min(offset + length, range.last);
    if (first < last) terms_.push_back({x - offset + range.first, f, first - range.first, last - range.first});
    for (Index i = std::max<Index>(folded - offset, 0); folded && i < length; i++)
        terms_.push_back({x + i - (folded - 1), f, folded - 1, folded});
}

template <class Real>
template <class Algebra>
void UpwardOf<Real>::eliminate(Algebra &algebra, std::int32_t t, Part part) {
    pack_scores(t);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const Stretches in(layout_, step.a), out(layout_, t);
    const Lot lot(part, step.kept_states, step.fresh * out.count, run_.needed(t));
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index p = rows.first; p < rows.last; p++, at.next())
        for (Index j = 0; j < step.fresh; j++)
            for (Index r = 0; r < out.count; r++) {
                const Index n = out.length[r], folded = out.natural[r] > n ? n : 0;
                const Range range = lot.cells(p, j * out.count + r, n, folded > 0);
                if (range.empty()) continue;
                terms_.clear();
                for (Index v = 0; v < step.gone.count; v++) {
                    const auto f = Algebra::lift(scores_[at.score + v * step.gone.score + j * step.fresh_score]);
                    if (f == Algebra::zero()) continue;
                    const Index d = s.class_of[at.shift + v * step.gone.shift + (step.shift_has_fresh ? j : 0)];
                    const double *row = run_.row(step.a, at.a + v * step.gone.a);
                    const Index group = r * s.classes + d;
                    for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++) {
                        const Index ra = s.pairs.a[q];
                        const Index offset = in.low[ra] + s.class_shift[d] - out.low[r];
                        add_term(row + in.start[ra], f, offset, in.length[ra], range, folded);
                    }
                }
                const Index size = range.last - range.first;
                algebra.combine(terms_, run_.row(t, j * step.kept_states + p) + out.start[r] + range.first, size);
                meter_.spend(static_cast<double>(size) * static_cast<double>(terms_.size() + 1));
            }
}

template <class Real>
template <class Algebra>
void UpwardOf<Real>::join(Algebra &algebra, std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    const PairList pairs = layout_.step(t).pairs;
    const Stretches a(layout_, step.a), b(layout_, step.b), out(layout_, t);
    const Lot lot(part, step.kept_states, out.count, run_.needed(t));
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index s = rows.first; s < rows.last; s++, at.next()) {
        const double *row_a = run_.row(step.a, at.a), *row_b = run_.row(step.b, at.b);
        for (Index r = 0; r < out.count; r++) {
            const Index n = out.length[r], folded = out.natural[r] > n ? n : 0;
            const Range range = lot.cells(s, r, n, folded > 0);
            if (range.empty()) continue;
            terms_.clear();
            for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
                const Index ra = pairs.a[q], rb = pairs.b[q];
                const double *x = row_b + b.start[rb];
                for (Index i = 0; i < a.length[ra]; i++) {
                    const auto f = row_a[a.start[ra] + i];
                    if (f == Algebra::zero()) continue;
                    const Index offset = a.low[ra] + b.low[rb] - out.low[r] + i;
                    add_term(x, f, offset, b.length[rb], range, folded);
                }
            }
            const Index size = range.last - range.first;
            algebra.combine(terms_, run_.row(t, s) + out.start[r] + range.first, size);
            meter_.spend(static_cast<double>(size) * static_cast<double>(terms_.size() + 1));
        }
    }
}

// ---- charts -------------------------------------------------------------------------------------------------------

template <class Real>
template <class Algebra>
void UpwardOf<Real>::chart(Algebra &algebra, std::int32_t t) {
    if (layout_.chart->plain()) {
        if (!up_plain_) up_plain_ = std::make_unique<UpPlain>(run_, meter_);
        up_plain_->step(t);
    } else {
        if (!up_tallies_) up_tallies_ = std::make_unique<UpTallies>(run_, meter_);
        up_tallies_->step(algebra, t);
    }
}

// ---- dispatch -------------------------------------------------------------------------------------------------------

template <class Real>
template <class Algebra>
void UpwardOf<Real>::step(Algebra &algebra, std::int32_t t, Part part) {
    const Verb verb = skeleton_.steps[t].verb;
    if (verb == Verb::Unit) return unit<Algebra>(t);
    if constexpr (Double<Real>)
        if (layout_.chart) return chart(algebra, t);
    if constexpr (std::is_same_v<Algebra, MaxPlusOf<Real>>) {
        if (layout_.rows) return verb == Verb::Join ? join_rows(t, part) : eliminate_rows(t, part);
        if (verb == Verb::Join) return join_cells(t, part);
        const Step &step = skeleton_.steps[t];
        const bool along = layout_.statistics == 0 && step.kept_states == 1 && step.fresh > 1 && part.of == 1;
        return along ? eliminate_along(t) : eliminate_cells(t, part);
    } else {
        return verb == Verb::Join ? join(algebra, t, part) : eliminate(algebra, t, part);
    }
}

template class UpwardOf<double>;
template class UpwardOf<float>;
template void UpwardOf<double>::step(MaxPlus &, std::int32_t, Part);
template void UpwardOf<double>::step(LogSumExp &, std::int32_t, Part);
template void UpwardOf<double>::step(CountingModulo &, std::int32_t, Part);
template void UpwardOf<float>::step(MaxPlusOf<float> &, std::int32_t, Part);

}  // namespace tallytree
