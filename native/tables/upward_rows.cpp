// The upward pass over max-plus where tables have rows: whole stretches of tallies go through the kernels.
#include <algorithm>
#include <cstring>

#include "kernels/concave.h"
#include "tables/upward.h"

namespace tallytree {
namespace {

// Whole blocks of 64 bytes.
template <class Real>
void clear_blocks(Real *from, Real *to) {
    for (; from < to; from += kLanesOf<Real>)
        for (Index i = 0; i < kLanesOf<Real>; i++) from[i] = kNothing<Real>;
}

// `convolve_many` is the quicker one from this many cells of the first operand on, and so many in each pair on average.
constexpr Index kManyCells = 16, kManyEach = 8, kManyEachLong = 12;
constexpr Index kShortRow = 32;  // of the second operand

// A join with no more pairs than this lists them once for all states.
constexpr Index kKeptPairs = 4096;

Index longest(const Stretches &stretches) {
    return *std::max_element(stretches.length, stretches.length + stretches.count);
}

// Arenas of more bytes than this do not stay near the processor: it is told early what will be written.
constexpr Index kBeyondCache = Index{1} << 20;

}  // namespace

// Everything around the stretches of a row is -inf, up to the first stretch of the next row: neighbours share what lies
// between them. Kernels write whole blocks, and -inf behind the last cell unless a window cut the stretch short.
template <class Real>
void UpwardOf<Real>::find_gaps(std::int32_t t) {
    if (gaps_step_ == t) return;
    gaps_step_ = t;
    const Stretches stretches(layout_, t);
    const Index stride = layout_.tables[t].stride;
    gaps_.clear();
    for (Index r = 0; r < stretches.count; r++) {
        const Index end = stretches.start[r] + stretches.length[r], from = layout_.clipped ? end : round_up(end);
        const Index to = r + 1 < stretches.count ? stretches.start[r + 1] : stride + stretches.start[0];
        if (from < to) gaps_.push_back({r, from, to});
    }
}

// For some of the stretches of `rows` rows that lie `apart`: what lies behind each stretch, and before the first one of
// the table.
template <class Real>
void UpwardOf<Real>::fill_gaps(std::int32_t t, Real *row, Range range, Index rows, Index apart) const {
    if (range.empty()) return;
    if (range.first == 0 && row == run_.row(t, 0))
        clear_blocks(row, row + layout_.start[layout_.tables[t].stretches_begin]);
    for (const auto &gap : gaps_) {
        if (gap.stretch < range.first || gap.stretch >= range.last) continue;
        const Index blocks = round_up(gap.from);
        Real *at = row;
        for (Index j = 0; j < rows; j++, at += apart) {
            if (gap.from < blocks) std::fill(at + gap.from, at + blocks, kNothing<Real>);
            clear_blocks(at + blocks, at + gap.to);
        }
    }
}

// The same for one stretch of which some cells were made: without the last one, no kernel has written behind it.
template <class Real>
void UpwardOf<Real>::surround(std::int32_t t, Real *row, Index r, Range made, Index rows, Index apart) const {
    const Stretches stretches(layout_, t);
    const Index n = stretches.length[r];
    Real *end = row + stretches.start[r] + n;
    for (Index j = 0; made.last < n && j < rows; j++, end += apart)
        std::fill(end, end + round_up(n) - n, kNothing<Real>);
    fill_gaps(t, row, {r, r + 1}, rows, apart);
}

// What lies above a cap goes into the last cell.
template <class Real>
static void fold(const Real *natural, Index natural_length, Real *out, Index length) {
    std::memcpy(out, natural, static_cast<std::size_t>(length) * sizeof(Real));
    std::fill(out + length, out + round_up(length, kLanesOf<Real>), kNothing<Real>);
    for (Index i = length; i < natural_length; i++)
        if (natural[i] > out[length - 1]) out[length - 1] = natural[i];
}

// For each pair of the step, where its input stretch begins in a state's row once it is moved to the output stretch's
// cells.
template <class Real>
void UpwardOf<Real>::move_stretches(std::int32_t t) {
    if (moved_step_ == t) return;
    moved_step_ = t;
    const StepView s = layout_.step(t);
    const Stretches in(layout_, skeleton_.steps[t].a), out(layout_, t);
    moved_.resize(s.pairs.count());
    for (Index r = 0, q = 0; r < out.count; r++)
        for (const Index end = s.pairs.begin[(r + 1) * s.classes]; q < end; q++) {
            const Index ra = s.pairs.a[q];
            moved_[q] = in.start[ra] - landing(in.low[ra] + s.class_shift[s.pairs.b[q]], out.low[r], out.length[r]);
        }
}

template <class Real>
void UpwardOf<Real>::eliminate_rows(std::int32_t t, Part part) {
    const LocalScores local = split_scores(t, false);
    move_stretches(t);
    find_gaps(t);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const Stretches out(layout_, t);
    const Index in_stride = layout_.tables[step.a].stride, stride = layout_.tables[t].stride;
    const Index js = step.kept_states * stride, values = step.gone.count, gone_stride = step.gone.a * in_stride;
    const Index blocks = step.shift_has_fresh ? step.fresh : 1, nj = step.shift_has_fresh ? 1 : step.fresh;
    const bool far = layout_.bytes(layout_.arena) >= kBeyondCache;
    x_.resize(values * std::max<Index>(layout_.tables[step.a].stretches, 1));
    f_.resize(x_.size());
    const Real **xs = x_.data(), **fs = f_.data();
    const Index *moved = moved_.data();
    const Lot lot(part, step.kept_states, blocks * out.count, run_.needed(t));
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index p = rows.first; p < rows.last; p++, at.next())
        for (Index block = 0; block < blocks; block++) {
            Real *row = run_.row(t, block * step.kept_states + p);
            const Real *input = run_.row(step.a, at.a);
            const Real *score = local.main + at.score + block * step.fresh_score;
            const std::int32_t *classes = s.class_of + at.shift + (step.shift_has_fresh ? block : 0);
            Range done{out.count, 0};
            for (Index r = 0; r < out.count; r++) {
                const Index n = out.length[r], natural = out.natural[r];
                const Box box(lot, p, block * out.count + r, nj, n, natural > n);
                if (box.empty()) continue;
                const Index *begin = s.pairs.begin + r * s.classes;
                const Real *x = input + box.cells.first, *f = score + box.rows.first * step.fresh_score;
                const std::int32_t *d = classes;
                Index terms = 0;
                for (Index v = 0; v < values; v++, x += gone_stride, f += step.gone.score, d += step.gone.shift)
                    for (Index q = begin[*d], end = begin[*d + 1]; q < end; q++, terms++) {
                        xs[terms] = x + moved[q];
                        fs[terms] = f;
                    }
                const Real *late = local.late ? local.late + block + box.rows.first : nullptr;
                const Index height = box.rows.last - box.rows.first, width = box.cells.last - box.cells.first;
                Real *to = row + box.rows.first * js + out.start[r] + box.cells.first;
                if (natural <= n) {
                    kernels_.mix({terms, xs, fs, step.fresh_score, late, height, to, js, round_up(width), far});
                } else {
                    const Index ns = round_up(natural);
                    natural_.resize(height * ns);
                    kernels_.mix({terms, xs, fs, step.fresh_score, late, height, natural_.data(), ns, ns});
                    for (Index j = 0; j < height; j++) fold(natural_.data() + j * ns, natural, to + j * js, n);
                }
                meter_.spend(static_cast<double>(terms * height * (natural <= n ? width : natural) + 32));
                if (!lot.sliced()) done = {std::min(done.first, r), r + 1};
                else if (lot.has_end(box.cells, n)) surround(t, row + box.rows.first * js, r, box.cells, height, js);
            }
            fill_gaps(t, row, done, nj, js);
        }
}

template <class Real>
void GuardedStretches<Real>::reset(const Stretches &stretches) {
    start_.resize(stretches.count);
    constexpr Index lanes = kLanesOf<Real>, guard = kGuardOf<Real>;
    Index size = guard;
    for (Index r = 0; r < stretches.count; r++) {
        start_[r] = size;
        size += round_up(stretches.length[r], lanes) + guard;
    }
    if (static_cast<Index>(cells_.size()) < size + lanes) cells_.resize(size + lanes);  // for the alignment
    base_ = cells_.data() + (64 - reinterpret_cast<std::uintptr_t>(cells_.data()) % 64) % 64 / sizeof(Real);
    std::fill(base_, base_ + guard, kNothing<Real>);
    for (Index r = 0; r < stretches.count; r++)
        std::fill(base_ + start_[r] + stretches.length[r], base_ + (r + 1 < stretches.count ? start_[r + 1] : size),
                  kNothing<Real>);
    state_ = -1;
}

template <class Real>
void GuardedStretches<Real>::copy(const Stretches &stretches, const Real *row, Index state) {
    if (state == state_) return;
    state_ = state;
    for (Index r = 0; r < stretches.count; r++)
        std::memcpy(base_ + start_[r], row + stretches.start[r],
                    static_cast<std::size_t>(stretches.length[r]) * sizeof(Real));
}

// The pairs of stretches that go to stretch r, from number `first` of pairs_ on.
template <class Real>
void UpwardOf<Real>::gather(const Joint &join, Index r, Index first) {
    const Index begin = join.pairs.begin[r], count = join.pairs.begin[r + 1] - begin;
    if (static_cast<Index>(pairs_.size()) < first + count) pairs_.resize(first + count);
    ConvolutionOf<Real> *to = pairs_.data() + first;
    for (Index q = begin; q < begin + count; q++, to++) {
        const Index ra = join.pairs.a[q], rb = join.pairs.b[q];
        *to = {guarded_a_[ra], join.a.length[ra], guarded_b_[rb], join.b.length[rb],
               landing(join.a.low[ra] + join.b.low[rb], join.out.low[r], join.out.length[r])};
    }
}

// The operand with the longer rows is the one that is moved along.
template <class Real>
void UpwardOf<Real>::join_rows(std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    PairList pairs = layout_.step(t).pairs;
    const auto &left = layout_.tables[step.a], &right = layout_.tables[step.b];
    const bool swap = left.cells * right.stretches > right.cells * left.stretches;
    const std::int32_t ta = swap ? step.b : step.a, tb = swap ? step.a : step.b;
    if (swap) std::swap(pairs.a, pairs.b);
    const Stretches out(layout_, t);
    if (out.count == 0) return;
    const Joint join{Stretches(layout_, ta), Stretches(layout_, tb), out, pairs};
    guarded_a_.reset(join.a);
    guarded_b_.reset(join.b);
    find_gaps(t);
    const bool keep = pairs.count() <= kKeptPairs;
    for (Index r = 0; keep && r < out.count; r++) gather(join, r, pairs.begin[r]);
    const Index longest_a = longest(join.a), longest_b = longest(join.b);
    const Index each = layout_.tables[ta].cells / join.a.count;  // cells of a stretch
    const bool many = each >= (longest_b <= kShortRow ? kManyEach : kManyEachLong);
    const Lot lot(part, step.kept_states, out.count, run_.needed(t));
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index s = rows.first; s < rows.last; s++, at.next()) {
        const Index state_a = swap ? at.b : at.a, state_b = swap ? at.a : at.b;
        guarded_a_.copy(join.a, run_.row(ta, state_a), state_a);
        guarded_b_.copy(join.b, run_.row(tb, state_b), state_b);
        Real *row = run_.row(t, s);
        Range done{out.count, 0};
        for (Index r = 0; r < out.count; r++) {
            const Index n = out.length[r], natural = out.natural[r];
            const Range range = lot.cells(s, r, n, natural > n);
            if (range.empty()) continue;
            if (!keep) gather(join, r, 0);
            const std::span<const ConvolutionOf<Real>> list(pairs_.data() + (keep ? pairs.begin[r] : 0),
                                                            pairs.begin[r + 1] - pairs.begin[r]);
            const Index count = static_cast<Index>(list.size());
            const auto kernel = many && count * each >= kManyCells ? kernels_.convolve_many : kernels_.convolve;
            const double operations = static_cast<double>(count * std::min(longest_a, n) * std::min(longest_b, n));
            Real *to = row + out.start[r];
            if (natural <= n) {
                convolve(kernel, list, to, range,
                         operations * static_cast<double>(range.last - range.first) / static_cast<double>(n));
            } else {
                natural_.resize(round_up(natural));
                convolve(kernel, list, natural_.data(), {0, natural}, operations);
                fold(natural_.data(), natural, to, n);
            }
            if (!lot.sliced()) done = {std::min(done.first, r), r + 1};
            else if (lot.has_end(range, n)) surround(t, row, r, range);
        }
        fill_gaps(t, row, done);
    }
}

// In pieces small enough to look up between them.
template <class Real>
void UpwardOf<Real>::convolve(ConvolveKernel kernel, std::span<const ConvolutionOf<Real>> list, Real *to, Range range,
                              double operations) {
    if constexpr (Double<Real>)  // it counts on sums that are rounded to the nearest
        if (range.first == 0 && list.size() == 1 && join_concave(list[0], to, range.last, merged_))
            return meter_.spend(static_cast<double>(8 * range.last));
    const Index pieces = 1 + static_cast<Index>(operations / 4e6);
    const Index piece = ((range.last - range.first) / pieces + 16) / 16 * 16;
    for (Index first = range.first; first < range.last; first += piece) {
        kernel(list.data(), static_cast<Index>(list.size()), to, first, std::min(round_up(range.last), first + piece));
        meter_.spend(operations / static_cast<double>(pieces) + 64);
    }
}

template class UpwardOf<double>;
template class UpwardOf<float>;

}  // namespace tallytree
