// The upward pass over max-plus where tables list cells: the kernels run along states.
#include <algorithm>

#include "tables/upward.h"

namespace tallytree {

static constexpr Index kFew = 4;

// The trailing loops that no local table mentions and that are contiguous in the input: one long row.
static Index passive_row(std::vector<Loop> &kept) {
    Index row = 1;
    while (!kept.empty() && kept.back().score == 0 && kept.back().shift == 0 && kept.back().a == row) {
        row *= kept.back().count;
        kept.pop_back();
    }
    return row;
}

// The input with its states in the order [eliminated variable, kept variables], where that makes longer rows.
template <class Real>
const Real *UpwardOf<Real>::turn(std::int32_t t, std::vector<Loop> &kept, Index &gone_stride) {
    const Step &step = skeleton_.steps[t];
    const auto &table = layout_.tables[step.a];
    const Real *input = run_.memory() + table.base;
    Index passive = 1, contiguous = 1;
    for (std::size_t i = kept.size(); i-- > 0 && kept[i].score == 0 && kept[i].shift == 0;) {
        if (kept[i].a == contiguous && contiguous == passive) contiguous *= kept[i].count;
        passive *= kept[i].count;
    }
    if (contiguous >= 16 || passive < 4 * contiguous) return input;
    turned_.resize(table.stretches * table.states);
    Real *to = turned_.data();
    for (Index r = 0; r < table.stretches && turned_step_ != t; r++)
        for (Index v = 0; v < step.gone.count; v++) {
            const Real *from = input + r * table.states + v * step.gone.a;
            const Loop last = kept.back();
            Odometer at(std::span<const Loop>(kept.data(), kept.size() - 1));
            for (Index p = 0; p < step.kept_states; p += last.count, at.next())
                for (Index i = 0; i < last.count; i++) *to++ = from[at.a + i * last.a];
        }
    turned_step_ = t;
    Index n = 1;
    for (std::size_t i = kept.size(); i-- > 0; n *= kept[i].count) kept[i].a = n;
    gone_stride = n;
    return turned_.data();
}

// Nothing but a factor between the variable that goes and one that comes, as on a chain: a row along the latter.
template <class Real>
void UpwardOf<Real>::eliminate_along(std::int32_t t) {
    const LocalScores local = split_scores(t, true);
    const Step &step = skeleton_.steps[t];
    kernels_.mix_along(step.gone.count, run_.row(step.a, 0), local.main, step.gone.score, local.late, run_.row(t, 0),
                       step.fresh);
    meter_.spend(static_cast<double>(step.gone.count * step.fresh + 32));
}

// A number or a few, which are not worth a call of the kernels.
template <class Real>
static void mix_few(const MixOf<Real> &m) {
    for (Index j = 0; j < m.nj; j++)
        for (Index l = 0; l < m.n; l++) {
            Real best = kNothing<Real>;
            for (Index k = 0; k < m.terms; k++) best = std::max(best, m.x[k][l] + m.f[k][j * m.fs]);
            m.out[j * m.js + l] = m.late ? best + m.late[j] : best;
        }
}

template <class Real>
void UpwardOf<Real>::eliminate_cells(std::int32_t t, Part part) {
    const LocalScores local = split_scores(t, true);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const auto &in = layout_.tables[step.a];
    const auto &out = layout_.tables[t];
    const auto loops = skeleton_.kept[t];
    std::vector<Loop> kept(loops.begin(), loops.end());
    Index gone_stride = step.gone.a;
    const Real *input = turn(t, kept, gone_stride);
    const Index row = passive_row(kept), rows = step.kept_states / row;
    const bool along_fresh = step.kept_states == 1 && !step.shift_has_fresh && step.fresh > 1 && step.fresh_score == 1;
    const Index blocks = step.shift_has_fresh ? step.fresh : 1, nj = step.shift_has_fresh ? 1 : step.fresh;
    x_.resize(step.gone.count * std::max<Index>(in.stretches, 1));
    f_.resize(x_.size());
    Real *out_base = run_.memory() + out.base;
    const Lot lot(part, rows, blocks * out.stretches);
    const Range some = lot.rows();
    Odometer at(kept, some.first);
    for (Index p = some.first; p < some.last; p++, at.next())
        for (Index block = 0; block < blocks; block++)
            for (Index r = 0; r < out.stretches; r++) {
                const Box box(lot, p, block * out.stretches + r, nj, row);
                if (box.empty()) continue;
                Index terms = 0;
                for (Index v = 0; v < step.gone.count; v++) {
                    const Index d = s.class_of[at.shift + v * step.gone.shift + (step.shift_has_fresh ? block : 0)];
                    const Index group = r * s.classes + d;
                    for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++, terms++) {
                        x_[terms] = input + s.pairs.a[q] * in.states + at.a + v * gone_stride + box.cells.first;
                        f_[terms] =
                            local.main + at.score + v * step.gone.score + (block + box.rows.first) * step.fresh_score;
                    }
                }
                const Index height = box.rows.last - box.rows.first, width = box.cells.last - box.cells.first;
                Real *to =
                    out_base + r * out.states + (block + box.rows.first) * step.kept_states + p * row + box.cells.first;
                const Real *late = local.late ? local.late + block + box.rows.first : nullptr;
                if (height * width <= kFew) {
                    mix_few<Real>(
                        {terms, x_.data(), f_.data(), step.fresh_score, late, height, to, step.kept_states, width});
                } else if (along_fresh) {                                             // the row runs along the factor
                    const bool room = r + 1 == out.stretches && box.rows.last == nj;  // behind the table
                    (room ? kernels_.mix
                          : kernels_.mix_exact)({terms, f_.data(), x_.data(), 0, nullptr, 1, to, 0, height});
                    if (late) kernels_.add(late, to, height);
                } else {
                    kernels_.mix_exact(
                        {terms, x_.data(), f_.data(), step.fresh_score, late, height, to, step.kept_states, width});
                }
                meter_.spend(static_cast<double>(terms * height * width + 32));
            }
}

namespace {

// What joining needs of an operand: the number for stretch r and state s lies at cells[r * states + at[s]].
template <class Real>
struct JoinedCells {
    const Real *cells;
    Index states;
    std::vector<Index> at;
    const Real *stretch(Index r) const { return cells + r * states; }
};

// The best sum of the pairs of one stretch, for S states in registers.
template <int S, class Real>
void join_stretch(const PairList &pairs, Index r, const JoinedCells<Real> &a, const JoinedCells<Real> &b, Real *to) {
    Index at_a[S], at_b[S];
    Real best[S];
    for (int s = 0; s < S; s++) {
        at_a[s] = a.at[s];
        at_b[s] = b.at[s];
        best[s] = kNothing<Real>;
    }
    for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
        const Real *x = a.stretch(pairs.a[q]), *y = b.stretch(pairs.b[q]);
        for (int s = 0; s < S; s++) best[s] = std::max(best[s], x[at_a[s]] + y[at_b[s]]);
    }
    for (int s = 0; s < S; s++) to[s] = best[s];
}

template <class Real>
void join_stretch(const PairList &pairs, Index r, const JoinedCells<Real> &a, const JoinedCells<Real> &b, Real *to,
                  Index size) {
    switch (size) {
        case 1:
            return join_stretch<1>(pairs, r, a, b, to);
        case 2:
            return join_stretch<2>(pairs, r, a, b, to);
        case 3:
            return join_stretch<3>(pairs, r, a, b, to);
        case 4:
            return join_stretch<4>(pairs, r, a, b, to);
        default:
            std::fill(to, to + size, kNothing<Real>);
            for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
                const Real *x = a.stretch(pairs.a[q]), *y = b.stretch(pairs.b[q]);
                for (Index s = 0; s < size; s++) to[s] = std::max(to[s], x[a.at[s]] + y[b.at[s]]);
            }
    }
}

}  // namespace

template <class Real>
void UpwardOf<Real>::join_cells(std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    const PairList pairs = layout_.step(t).pairs;
    const auto &table = layout_.tables[t];
    const bool by_states = table.states >= table.stretches;
    const Range states = by_states ? share(part, table.states) : Range{0, table.states};
    const Range stretches = by_states ? Range{0, table.stretches} : share(part, table.stretches);
    const Index size = states.last - states.first;
    JoinedCells<Real> a{run_.row(step.a, 0), layout_.tables[step.a].states, {}};
    JoinedCells<Real> b{run_.row(step.b, 0), layout_.tables[step.b].states, {}};
    Odometer at(skeleton_.kept[t], states.first);
    for (Index s = 0; s < size; s++, at.next()) {
        a.at.push_back(at.a);
        b.at.push_back(at.b);
    }
    for (Index r = stretches.first; r < stretches.last; r++) {
        join_stretch(pairs, r, a, b, run_.memory() + table.base + r * table.states + states.first, size);
        meter_.spend(static_cast<double>(size * (pairs.begin[r + 1] - pairs.begin[r]) + 8));
    }
}

template class UpwardOf<double>;
template class UpwardOf<float>;

}  // namespace tallytree
