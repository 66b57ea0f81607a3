// The upward pass. `eliminate` is absorb and project in one: no joined or absorbed table is ever stored.
#include "upward.h"

#include <algorithm>
#include <cstring>

#include "chart_rows.h"
#include "chart_widths.h"

namespace tallytree {
namespace {

void fill(double *from, double *to, double value) {
    for (; from < to; from++) *from = value;
}

// Whole blocks of kLanes cells.
void clear_blocks(double *from, double *to) {
    for (; from < to; from += kLanes)
        for (Index i = 0; i < kLanes; i++) from[i] = kNegativeInfinity;
}

bool contiguous(std::span<const FactorLoop> loops) { return loops.size() == 1 && loops[0].stride == 1; }
bool constant_rows(std::span<const FactorLoop> loops) { return loops.size() == 2 && loops[1].stride == 0; }

}  // namespace

Upward::Upward(Run &run, const Poll &poll) : run_(run), layout_(*run.layout_), skeleton_(run.skeleton_), meter_(poll) {}
Upward::~Upward() = default;

// ---- any algebra -----------------------------------------------------------------------------------------------

void Upward::pack_scores(std::int32_t t) {
    if (packed_ == t) return;
    packed_ = t;
    const Index size = skeleton_.steps[t].score_size;
    if (static_cast<Index>(scores_.size()) < size + kLanes) scores_.resize(size + kLanes);
    const auto refs = skeleton_.score_refs[t];
    const Index first = skeleton_.score_refs.begin[t], count = static_cast<Index>(refs.size());
    const auto loops = [&](Index i) { return skeleton_.score_loops[first + i]; };
    const auto table = [&](Index i) { return run_.scores_[refs[i].block].row(refs[i].row); };
    if (count == 0) fill(scores_.data(), scores_.data() + size, 0);
    if (count == 2)  // a pairwise factor and a unary one: in one go
        for (Index i : {0, 1})
            if (contiguous(loops(i)) && constant_rows(loops(1 - i)))
                return pack_two(table(i), table(1 - i), loops(1 - i));
    for (Index i = 0; i < count; i++) {
        double *out = scores_.data();
        walk_factor(loops(i), [&](Index at, Index n, Index stride) {
            pack_stretch(table(i) + at, stride, out, n, i == 0);
            out += n;
        });
    }
}

void Upward::pack_two(const double *whole, const double *rows, std::span<const FactorLoop> loops) {
    run_.kernels_->offset_rows(whole, rows, loops[0].stride, scores_.data(), loops[0].count, loops[1].count);
}

void Upward::pack_stretch(const double *from, Index stride, double *out, Index n, bool first) {
    if (first && stride == 1) std::memcpy(out, from, static_cast<std::size_t>(n) * sizeof(double));
    else if (first)
        for (Index x = 0; x < n; x++) out[x] = from[x * stride];
    else if (stride == 1) run_.kernels_->add(from, out, n);
    else if (stride == 0)
        for (Index x = 0; x < n; x++) out[x] += *from;
    else
        for (Index x = 0; x < n; x++) out[x] += from[x * stride];
}

template <class Algebra>
void Upward::unit(std::int32_t t) {
    const auto &table = layout_.tables[t];
    double *data = run_.arena_.data() + table.base;
    fill(data, data + table.size, Algebra::zero());
    const Index start = layout_.start[table.runs_begin];
    for (Index s = 0; s < table.states; s++) data[s * table.stride + start] = Algebra::one();
}

// Cells of the output that `range` holds take x[l - offset] * f; those beyond `folded`, if that is not zero, go into
// the last one.
template <class Value>
void Upward::add_term(const Value *x, Value f, Index offset, Index length, Range range, Index folded) {
    const Index first = std::max(offset, range.first), last = std::min(offset + length, range.last);
    if (first < last) terms_.push_back({x - offset + range.first, f, first - range.first, last - range.first});
    for (Index i = std::max<Index>(folded - offset, 0); folded && i < length; i++)
        terms_.push_back({x + i - (folded - 1), f, folded - 1, folded});
}

template <class Algebra>
void Upward::eliminate(Algebra &algebra, std::int32_t t, Part part) {
    pack_scores(t);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const Runs in(layout_, step.a), out(layout_, t);
    const Lot lot(part, step.kept_states, step.fresh * out.count);
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

template <class Algebra>
void Upward::join(Algebra &algebra, std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    const PairList pairs = layout_.step(t).pairs;
    const Runs a(layout_, step.a), b(layout_, step.b), out(layout_, t);
    const Lot lot(part, step.kept_states, out.count);
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

// ---- max-plus, rows ----------------------------------------------------------------------------------------------

// Everything around the runs of a row is -inf, up to the first run of the next row: neighbours share what lies
// between them. Kernels write whole blocks, and -inf behind the last cell unless a window cut the run short. Here for
// some of the runs: what lies before each of them, and what lies behind the last one of the row.
void Upward::fill_gaps(std::int32_t t, double *row, Range range) {
    const Runs runs(layout_, t);
    if (range.empty()) return;
    Index end = row == run_.row(t, 0) ? 0 : runs.start[0];
    if (range.first > 0) end = round_up(runs.start[range.first - 1] + runs.length[range.first - 1]);
    for (Index r = range.first; r < range.last; r++) {
        clear_blocks(row + end, row + runs.start[r]);
        end = runs.start[r] + runs.length[r];
        if (layout_.clipped) fill(row + end, row + round_up(end), kNegativeInfinity);
        end = round_up(end);
    }
    if (range.last == runs.count) clear_blocks(row + end, row + layout_.tables[t].stride + runs.start[0]);
}

// What lies above a cap goes into the last cell.
static void fold(const double *natural, Index natural_length, double *out, Index length) {
    std::memcpy(out, natural, static_cast<std::size_t>(length) * sizeof(double));
    fill(out + length, out + round_up(length), kNegativeInfinity);
    for (Index i = length; i < natural_length; i++)
        if (natural[i] > out[length - 1]) out[length - 1] = natural[i];
}

void Upward::eliminate_rows(std::int32_t t, Part part) {
    pack_scores(t);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const Runs in(layout_, step.a), out(layout_, t);
    const Index in_stride = layout_.tables[step.a].stride, stride = layout_.tables[t].stride;
    const Index js = step.kept_states * stride, values = step.gone.count;
    const Index blocks = step.shift_has_fresh ? step.fresh : 1, nj = step.shift_has_fresh ? 1 : step.fresh;
    const double *in_base = run_.row(step.a, 0);
    x_.resize(values * std::max<Index>(in.count, 1));
    f_.resize(x_.size());
    const Lot lot(part, step.kept_states, blocks * out.count);
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index p = rows.first; p < rows.last; p++, at.next())
        for (Index block = 0; block < blocks; block++) {
            double *row = run_.row(t, block * step.kept_states + p);
            const double *score = scores_.data() + at.score + block * step.fresh_score;
            const std::int32_t *classes = s.class_of + at.shift + (step.shift_has_fresh ? block : 0);
            Range done{out.count, 0};
            for (Index r = 0; r < out.count; r++) {
                const Index n = out.length[r], natural = out.natural[r];
                const Box box(lot, p, block * out.count + r, nj, n, natural > n);
                if (box.empty()) continue;
                Index terms = 0;
                for (Index v = 0; v < values; v++) {
                    const Index d = classes[v * step.gone.shift], group = r * s.classes + d;
                    for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++, terms++) {
                        const Index ra = s.pairs.a[q];
                        x_[terms] = in_base + (at.a + v * step.gone.a) * in_stride + in.start[ra] -
                                    (in.low[ra] + s.class_shift[d] - out.low[r]) + box.cells.first;
                        f_[terms] = score + v * step.gone.score + box.rows.first * step.fresh_score;
                    }
                }
                const Index height = box.rows.last - box.rows.first, width = box.cells.last - box.cells.first;
                double *to = row + box.rows.first * js + out.start[r] + box.cells.first;
                if (natural <= n) {
                    run_.kernels_->mix(terms, x_.data(), f_.data(), step.fresh_score, height, to, js, round_up(width));
                } else {
                    const Index ns = round_up(natural);
                    natural_.resize(height * ns);
                    run_.kernels_->mix(terms, x_.data(), f_.data(), step.fresh_score, height, natural_.data(), ns, ns);
                    for (Index j = 0; j < height; j++) fold(natural_.data() + j * ns, natural, to + j * js, n);
                }
                meter_.spend(static_cast<double>(terms * height * (natural <= n ? width : natural) + 32));
                if (!lot.sliced()) done = {std::min(done.first, r), r + 1};
                else if (box.cells.last == n)
                    for (Index j = box.rows.first; j < box.rows.last; j++) fill_gaps(t, row + j * js, {r, r + 1});
            }
            for (Index j = 0; j < nj; j++) fill_gaps(t, row + j * js, done);
        }
}

void Upward::join_rows(std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    const PairList pairs = layout_.step(t).pairs;
    // The operand with the longer rows is the one that is moved along, from a padded copy.
    const auto &left = layout_.tables[step.a], &right = layout_.tables[step.b];
    const bool swap = left.cells * right.runs > right.cells * left.runs;
    const std::int32_t ta = swap ? step.b : step.a, tb = swap ? step.a : step.b;
    const std::int32_t *pair_a = swap ? pairs.b : pairs.a, *pair_b = swap ? pairs.a : pairs.b;
    const Runs a(layout_, ta), b(layout_, tb), out(layout_, t);
    std::vector<Index> guarded(b.count);
    Index size = 0;
    for (Index r = 0; r < b.count; r++) {
        guarded[r] = size + kGuard;
        size += round_up(b.length[r]) + 2 * kGuard;
    }
    padded_.assign(size, kNegativeInfinity);
    Index copied = -1;
    const Lot lot(part, step.kept_states, out.count);
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index s = rows.first; s < rows.last; s++, at.next()) {
        const Index state_a = swap ? at.b : at.a, state_b = swap ? at.a : at.b;
        const double *row_a = run_.row(ta, state_a), *row_b = run_.row(tb, state_b);
        if (copied != state_b)
            for (Index r = 0; r < b.count; r++)
                std::memcpy(padded_.data() + guarded[r], row_b + b.start[r],
                            static_cast<std::size_t>(b.length[r]) * sizeof(double));
        copied = state_b;
        double *row = run_.row(t, s);
        Range done{out.count, 0};
        for (Index r = 0; r < out.count; r++) {
            const Index n = out.length[r], natural = out.natural[r];
            const Range range = lot.cells(s, r, n, natural > n);
            if (range.empty()) continue;
            pairs_.clear();
            double operations = 0;
            Index shortest = kUncapped;
            for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
                const Index ra = pair_a[q], rb = pair_b[q];
                pairs_.push_back({row_a + a.start[ra], a.length[ra], padded_.data() + guarded[rb], b.length[rb],
                                  a.low[ra] + b.low[rb] - out.low[r]});
                operations += static_cast<double>(a.length[ra]) * static_cast<double>(b.length[rb]);
                shortest = std::min({shortest, a.length[ra], b.length[rb]});
            }
            double *to = row + out.start[r];
            if (shortest >= 128 && range.last - range.first == n) {
                join_long(to, n, natural, operations);
            } else if (natural <= n) {
                convolve(to, range,
                         operations * static_cast<double>(range.last - range.first) / static_cast<double>(n));
            } else {
                natural_.resize(round_up(natural));
                convolve(natural_.data(), {0, natural}, operations);
                fold(natural_.data(), natural, to, n);
            }
            if (!lot.sliced()) done = {std::min(done.first, r), r + 1};
            else if (range.last == n) fill_gaps(t, row, {r, r + 1});
        }
        fill_gaps(t, row, done);
    }
}

// In pieces small enough to look up between them.
void Upward::convolve(double *to, Range range, double operations) {
    const auto count = static_cast<Index>(pairs_.size());
    const Index pieces = 1 + static_cast<Index>(operations / 4e6);
    const Index piece = ((range.last - range.first) / pieces + 16) / 16 * 16;
    for (Index first = range.first; first < range.last; first += piece) {
        run_.kernels_->convolve(pairs_.data(), count, to, first, std::min(round_up(range.last), first + piece));
        meter_.spend(operations / static_cast<double>(pieces) + 64);
    }
}

// Long rows: operands copied to whole aligned vectors, the natural range of every pair in one buffer.
void Upward::join_long(double *to, Index n, Index natural, double operations) {
    Index low = 0, high = natural;
    for (const auto &c : pairs_) {
        low = std::min(low, c.offset);
        high = std::max(high, c.offset + c.na + c.nb);
    }
    natural_.assign(high - low + 4 * kLanes, kNegativeInfinity);
    for (const auto &c : pairs_) {
        const Index va = round_up(c.na) / kLanes, vb = round_up(c.nb) / kLanes;
        long_.assign((va + vb + 3) * kLanes, kNegativeInfinity);
        double *pa = long_.data();
        pa += (64 - reinterpret_cast<std::uintptr_t>(pa) % 64) % 64 / sizeof(double);
        double *pb = pa + (va + 1) * kLanes;
        std::memcpy(pa, c.a, static_cast<std::size_t>(c.na) * sizeof(double));
        std::memcpy(pb, c.b, static_cast<std::size_t>(c.nb) * sizeof(double));
        const Index vectors = va + vb, pieces = 1 + static_cast<Index>(operations / 4e6);
        const Index piece = (vectors / pieces + 2) / 2 * 2;
        for (Index first = 0; first < vectors; first += piece) {
            run_.kernels_->convolve_long(pa, va, pb, vb, natural_.data() + c.offset - low, first,
                                         std::min(vectors, first + piece));
            meter_.spend(operations / static_cast<double>(pieces));
        }
    }
    const double *first = natural_.data() - low;
    fold(first, std::max(natural, n), to, n);
}

// ---- max-plus, cells ----------------------------------------------------------------------------------------------

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
const double *Upward::turn(std::int32_t t, std::vector<Loop> &kept, Index &gone_stride) {
    const Step &step = skeleton_.steps[t];
    const auto &table = layout_.tables[step.a];
    const double *input = run_.arena_.data() + table.base;
    Index passive = 1, contiguous = 1;
    for (std::size_t i = kept.size(); i-- > 0 && kept[i].score == 0 && kept[i].shift == 0;) {
        if (kept[i].a == contiguous && contiguous == passive) contiguous *= kept[i].count;
        passive *= kept[i].count;
    }
    if (contiguous >= 16 || passive < 4 * contiguous) return input;
    turned_.resize(table.runs * table.states);
    double *to = turned_.data();
    for (Index r = 0; r < table.runs && turned_step_ != t; r++)
        for (Index v = 0; v < step.gone.count; v++) {
            const double *from = input + r * table.states + v * step.gone.a;
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

void Upward::eliminate_cells(std::int32_t t, Part part) {
    pack_scores(t);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const auto &in = layout_.tables[step.a];
    const auto &out = layout_.tables[t];
    const auto loops = skeleton_.kept[t];
    std::vector<Loop> kept(loops.begin(), loops.end());
    Index gone_stride = step.gone.a;
    const double *input = turn(t, kept, gone_stride);
    const Index row = passive_row(kept), rows = step.kept_states / row;
    const bool along_fresh = step.kept_states == 1 && !step.shift_has_fresh && step.fresh > 1 && step.fresh_score == 1;
    const Index blocks = step.shift_has_fresh ? step.fresh : 1, nj = step.shift_has_fresh ? 1 : step.fresh;
    x_.resize(step.gone.count * std::max<Index>(in.runs, 1));
    f_.resize(x_.size());
    double *out_base = run_.arena_.data() + out.base;
    const Lot lot(part, rows, blocks * out.runs);
    const Range some = lot.rows();
    Odometer at(kept, some.first);
    for (Index p = some.first; p < some.last; p++, at.next())
        for (Index block = 0; block < blocks; block++)
            for (Index r = 0; r < out.runs; r++) {
                const Box box(lot, p, block * out.runs + r, nj, row);
                if (box.empty()) continue;
                Index terms = 0;
                for (Index v = 0; v < step.gone.count; v++) {
                    const Index d = s.class_of[at.shift + v * step.gone.shift + (step.shift_has_fresh ? block : 0)];
                    const Index group = r * s.classes + d;
                    for (Index q = s.pairs.begin[group]; q < s.pairs.begin[group + 1]; q++, terms++) {
                        x_[terms] = input + s.pairs.a[q] * in.states + at.a + v * gone_stride + box.cells.first;
                        f_[terms] = scores_.data() + at.score + v * step.gone.score +
                                    (block + box.rows.first) * step.fresh_score;
                    }
                }
                const Index height = box.rows.last - box.rows.first, width = box.cells.last - box.cells.first;
                double *to =
                    out_base + r * out.states + (block + box.rows.first) * step.kept_states + p * row + box.cells.first;
                if (along_fresh && r + 1 == out.runs && box.rows.last == nj)
                    // the row runs along the factor; behind the table is room
                    run_.kernels_->mix(terms, f_.data(), x_.data(), 0, 1, to, 0, height);
                else if (along_fresh) run_.kernels_->mix_exact(terms, f_.data(), x_.data(), 0, 1, to, 0, height);
                else
                    run_.kernels_->mix_exact(terms, x_.data(), f_.data(), step.fresh_score, height, to,
                                             step.kept_states, width);
                meter_.spend(static_cast<double>(terms * height * width + 32));
            }
}

void Upward::join_cells(std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    const PairList pairs = layout_.step(t).pairs;
    const auto &table = layout_.tables[t];
    const bool by_states = table.states >= table.runs;
    const Range states = by_states ? share(part, table.states) : Range{0, table.states};
    const Range runs = by_states ? Range{0, table.runs} : share(part, table.runs);
    const Index size = states.last - states.first;
    std::vector<std::int64_t> at_a(size), at_b(size);
    Odometer at(skeleton_.kept[t], states.first);
    for (Index s = 0; s < size; s++, at.next()) {
        at_a[s] = at.a;
        at_b[s] = at.b;
    }
    const Index states_a = layout_.tables[step.a].states, states_b = layout_.tables[step.b].states;
    for (Index r = runs.first; r < runs.last; r++) {
        double *to = run_.arena_.data() + table.base + r * table.states + states.first;
        fill(to, to + size, kNegativeInfinity);
        for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
            const double *a = run_.row(step.a, 0) + pairs.a[q] * states_a,
                         *b = run_.row(step.b, 0) + pairs.b[q] * states_b;
            for (Index s = 0; s < size; s++) {
                const double v = a[at_a[s]] + b[at_b[s]];
                to[s] = v > to[s] ? v : to[s];
            }
            meter_.spend(static_cast<double>(size));
        }
    }
}

// ---- charts -------------------------------------------------------------------------------------------------------

template <class Algebra>
void Upward::chart(Algebra &algebra, std::int32_t t) {
    if (layout_.chart->plain()) {
        if (!chart_widths_) chart_widths_ = std::make_unique<ChartWidths>(run_, meter_);
        chart_widths_->step(t);
    } else {
        if (!chart_rows_) chart_rows_ = std::make_unique<ChartRows>(run_, meter_);
        chart_rows_->step(algebra, t);
    }
}

// ---- dispatch -------------------------------------------------------------------------------------------------------

template <class Algebra>
void Upward::step(Algebra &algebra, std::int32_t t, Part part) {
    const Verb verb = skeleton_.steps[t].verb;
    if (verb == Verb::Unit) return unit<Algebra>(t);
    if (layout_.chart) return chart(algebra, t);
    if constexpr (std::is_same_v<Algebra, MaxPlus>) {
        if (layout_.rows) return verb == Verb::Join ? join_rows(t, part) : eliminate_rows(t, part);
        return verb == Verb::Join ? join_cells(t, part) : eliminate_cells(t, part);
    }
    return verb == Verb::Join ? join(algebra, t, part) : eliminate(algebra, t, part);
}

template void Upward::step(MaxPlus &, std::int32_t, Part);
template void Upward::step(LogSumExp &, std::int32_t, Part);
template void Upward::step(CountingModulo &, std::int32_t, Part);

}  // namespace tallytree
