// The upward pass. `eliminate` is absorb and project in one: no joined or absorbed table is ever stored.
#include "upward.h"

#include <algorithm>
#include <cstring>

#include "chart_rows.h"
#include "chart_widths.h"
#include "concave.h"

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

// From this many cells of the first operand on, half of it on average in each pair, `convolve_many` is the quicker one.
constexpr Index kManyCells = 24;

// Arenas of more numbers than this do not stay near the processor: it is told what will be written next.
constexpr Index kBeyondCache = Index{1} << 17;

bool contiguous(std::span<const FactorLoop> loops) { return loops.size() == 1 && loops[0].stride == 1; }
bool constant_rows(std::span<const FactorLoop> loops) { return loops.size() == 2 && loops[1].stride == 0; }

}  // namespace

Upward::Upward(Run &run, const Poll &poll) : run_(run), layout_(*run.layout_), skeleton_(run.skeleton_), meter_(poll) {}
Upward::~Upward() = default;

// ---- any algebra -----------------------------------------------------------------------------------------------

// The sum of a step's factors, but for number `without`.
void Upward::pack_scores(std::int32_t t, Index without) {
    if (packed_ == t && packed_without_ == without) return;
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
    if (none) fill(scores_.data(), scores_.data() + size, 0);
}

// The factor over the fresh states alone apart from the others, and these as they lie where there is only one.
Upward::LocalScores Upward::split_scores(std::int32_t t, bool whole_vectors) {
    const Step &step = skeleton_.steps[t];
    const auto refs = skeleton_.score_refs[t];
    const Index others = static_cast<Index>(refs.size()) - (step.late >= 0 ? 1 : 0), main = step.late == 0 ? 1 : 0;
    const auto table = [&](FactorRef ref, Roomy &roomy) {
        const auto &block = run_.scores_[ref.block];
        return whole_vectors ? roomy.of(block, ref.row) : block.row(ref.row);
    };
    LocalScores local{nullptr, nullptr};
    if (step.late >= 0) local.late = table(refs[step.late], late_);
    if (others == 1 && contiguous(skeleton_.score_loops[skeleton_.score_refs.begin[t] + main])) {
        local.main = table(refs[main], main_);
    } else {
        pack_scores(t, step.late);
        local.main = scores_.data();
    }
    return local;
}

const double *Upward::Roomy::of(const TableBlock<double> &block, Index row) {
    const double *table = block.row(row);
    if ((block.count - 1 - row) * block.size >= kLanes) return table;
    if (from_ != table) {
        cells_.assign(table, table + block.size);
        cells_.resize(block.size + kLanes);
        from_ = table;
    }
    return cells_.data();
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
// between them. Kernels write whole blocks, and -inf behind the last cell unless a window cut the run short.
void Upward::find_gaps(std::int32_t t) {
    if (gaps_step_ == t) return;
    gaps_step_ = t;
    const Runs runs(layout_, t);
    const Index stride = layout_.tables[t].stride;
    gaps_.clear();
    for (Index r = 0; r < runs.count; r++) {
        const Index end = runs.start[r] + runs.length[r], from = layout_.clipped ? end : round_up(end);
        const Index to = r + 1 < runs.count ? runs.start[r + 1] : stride + runs.start[0];
        if (from < to) gaps_.push_back({r, from, to});
    }
}

// For some of the runs: what lies behind each of them, and before the first one of the table.
void Upward::fill_gaps(std::int32_t t, double *row, Range range) const {
    if (range.empty()) return;
    if (range.first == 0 && row == run_.row(t, 0)) clear_blocks(row, row + layout_.start[layout_.tables[t].runs_begin]);
    for (const auto &gap : gaps_) {
        if (gap.run < range.first || gap.run >= range.last) continue;
        const Index blocks = round_up(gap.from);
        if (gap.from < blocks) fill(row + gap.from, row + blocks, kNegativeInfinity);
        clear_blocks(row + blocks, row + gap.to);
    }
}

// What lies above a cap goes into the last cell.
static void fold(const double *natural, Index natural_length, double *out, Index length) {
    std::memcpy(out, natural, static_cast<std::size_t>(length) * sizeof(double));
    fill(out + length, out + round_up(length), kNegativeInfinity);
    for (Index i = length; i < natural_length; i++)
        if (natural[i] > out[length - 1]) out[length - 1] = natural[i];
}

// For each pair of the step, where its input run begins in a state's row once it is moved to the output run's cells.
void Upward::move_runs(std::int32_t t) {
    if (moved_step_ == t) return;
    moved_step_ = t;
    const StepView s = layout_.step(t);
    const Runs in(layout_, skeleton_.steps[t].a), out(layout_, t);
    moved_.resize(s.pairs.count());
    for (Index r = 0, q = 0; r < out.count; r++)
        for (const Index end = s.pairs.begin[(r + 1) * s.classes]; q < end; q++) {
            const Index ra = s.pairs.a[q];
            moved_[q] = in.start[ra] - in.low[ra] - s.class_shift[s.pairs.b[q]] + out.low[r];
        }
}

void Upward::eliminate_rows(std::int32_t t, Part part) {
    const LocalScores local = split_scores(t, false);
    move_runs(t);
    find_gaps(t);
    const Step &step = skeleton_.steps[t];
    const StepView s = layout_.step(t);
    const Runs out(layout_, t);
    const Index in_stride = layout_.tables[step.a].stride, stride = layout_.tables[t].stride;
    const Index js = step.kept_states * stride, values = step.gone.count, gone_stride = step.gone.a * in_stride;
    const Index blocks = step.shift_has_fresh ? step.fresh : 1, nj = step.shift_has_fresh ? 1 : step.fresh;
    const Index ahead = layout_.arena >= kBeyondCache && step.kept_states == 1 ? layout_.tables[t].size : 0;
    x_.resize(values * std::max<Index>(layout_.tables[step.a].runs, 1));
    f_.resize(x_.size());
    const Lot lot(part, step.kept_states, blocks * out.count);
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index p = rows.first; p < rows.last; p++, at.next())
        for (Index block = 0; block < blocks; block++) {
            double *row = run_.row(t, block * step.kept_states + p);
            const double *input = run_.row(step.a, at.a);
            const double *score = local.main + at.score + block * step.fresh_score;
            const std::int32_t *classes = s.class_of + at.shift + (step.shift_has_fresh ? block : 0);
            Range done{out.count, 0};
            for (Index r = 0; r < out.count; r++) {
                const Index n = out.length[r], natural = out.natural[r];
                const Box box(lot, p, block * out.count + r, nj, n, natural > n);
                if (box.empty()) continue;
                const Index *begin = s.pairs.begin + r * s.classes;
                const double *x = input + box.cells.first, *f = score + box.rows.first * step.fresh_score;
                const std::int32_t *d = classes;
                Index terms = 0;
                for (Index v = 0; v < values; v++, x += gone_stride, f += step.gone.score, d += step.gone.shift)
                    for (Index q = begin[*d]; q < begin[*d + 1]; q++, terms++) {
                        x_[terms] = x + moved_[q];
                        f_[terms] = f;
                    }
                const double *late = local.late ? local.late + block + box.rows.first : nullptr;
                const Index height = box.rows.last - box.rows.first, width = box.cells.last - box.cells.first;
                double *to = row + box.rows.first * js + out.start[r] + box.cells.first;
                if (natural <= n) {
                    run_.kernels_->mix(
                        {terms, x_.data(), f_.data(), step.fresh_score, late, height, to, js, round_up(width), ahead});
                } else {
                    const Index ns = round_up(natural);
                    natural_.resize(height * ns);
                    run_.kernels_->mix(
                        {terms, x_.data(), f_.data(), step.fresh_score, late, height, natural_.data(), ns, ns});
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

void GuardedRuns::reset(const Runs &runs) {
    start_.resize(runs.count);
    Index size = kLanes;  // for the alignment
    for (Index r = 0; r < runs.count; r++) {
        start_[r] = size - kLanes + kGuard;
        size += round_up(runs.length[r]) + 2 * kGuard;
    }
    cells_.assign(size, kNegativeInfinity);
    base_ = cells_.data() + (64 - reinterpret_cast<std::uintptr_t>(cells_.data()) % 64) % 64 / sizeof(double);
    state_ = -1;
}

void GuardedRuns::copy(const Runs &runs, const double *row, Index state) {
    if (state == state_) return;
    state_ = state;
    for (Index r = 0; r < runs.count; r++)
        std::memcpy(base_ + start_[r], row + runs.start[r], static_cast<std::size_t>(runs.length[r]) * sizeof(double));
}

// The operand with the longer rows is the one that is moved along.
void Upward::join_rows(std::int32_t t, Part part) {
    const Step &step = skeleton_.steps[t];
    const PairList pairs = layout_.step(t).pairs;
    const auto &left = layout_.tables[step.a], &right = layout_.tables[step.b];
    const bool swap = left.cells * right.runs > right.cells * left.runs;
    const std::int32_t ta = swap ? step.b : step.a, tb = swap ? step.a : step.b;
    const std::int32_t *pair_a = swap ? pairs.b : pairs.a, *pair_b = swap ? pairs.a : pairs.b;
    const Runs a(layout_, ta), b(layout_, tb), out(layout_, t);
    const bool many = layout_.tables[ta].cells >= kManyCells;
    if (many) guarded_a_.reset(a);
    guarded_b_.reset(b);
    find_gaps(t);
    const Lot lot(part, step.kept_states, out.count);
    const Range rows = lot.rows();
    Odometer at(skeleton_.kept[t], rows.first);
    for (Index s = rows.first; s < rows.last; s++, at.next()) {
        const Index state_a = swap ? at.b : at.a, state_b = swap ? at.a : at.b;
        const double *row_a = run_.row(ta, state_a);
        if (many) guarded_a_.copy(a, row_a, state_a);
        guarded_b_.copy(b, run_.row(tb, state_b), state_b);
        double *row = run_.row(t, s);
        Range done{out.count, 0};
        for (Index r = 0; r < out.count; r++) {
            const Index n = out.length[r], natural = out.natural[r];
            const Range range = lot.cells(s, r, n, natural > n);
            if (range.empty()) continue;
            Index count = 0, cells = 0;
            double operations = 0;
            pairs_.resize(pairs.begin[r + 1] - pairs.begin[r]);
            for (Index q = pairs.begin[r]; q < pairs.begin[r + 1]; q++) {
                const Index ra = pair_a[q], rb = pair_b[q];
                pairs_[count++] = {many ? guarded_a_[ra] : row_a + a.start[ra], a.length[ra], guarded_b_[rb],
                                   b.length[rb], a.low[ra] + b.low[rb] - out.low[r]};
                operations += static_cast<double>(a.length[ra]) * static_cast<double>(b.length[rb]);
                cells += a.length[ra];
            }
            const auto kernel = many && cells >= kManyCells && 2 * cells >= kManyCells * count
                                    ? run_.kernels_->convolve_many
                                    : run_.kernels_->convolve;
            double *to = row + out.start[r];
            if (natural <= n) {
                convolve(kernel, count, to, range,
                         operations * static_cast<double>(range.last - range.first) / static_cast<double>(n));
            } else {
                natural_.resize(round_up(natural));
                convolve(kernel, count, natural_.data(), {0, natural}, operations);
                fold(natural_.data(), natural, to, n);
            }
            if (!lot.sliced()) done = {std::min(done.first, r), r + 1};
            else if (range.last == n) fill_gaps(t, row, {r, r + 1});
        }
        fill_gaps(t, row, done);
    }
}

// In pieces small enough to look up between them.
void Upward::convolve(ConvolveKernel kernel, Index count, double *to, Range range, double operations) {
    if (range.first == 0 && count == 1 && join_concave(pairs_[0], to, range.last, merged_))
        return meter_.spend(static_cast<double>(8 * range.last));
    const Index pieces = 1 + static_cast<Index>(operations / 4e6);
    const Index piece = ((range.last - range.first) / pieces + 16) / 16 * 16;
    for (Index first = range.first; first < range.last; first += piece) {
        kernel(pairs_.data(), count, to, first, std::min(round_up(range.last), first + piece));
        meter_.spend(operations / static_cast<double>(pieces) + 64);
    }
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

// Nothing but a factor between the variable that goes and one that comes, as on a chain: a row along the latter.
void Upward::eliminate_along(std::int32_t t) {
    const LocalScores local = split_scores(t, true);
    const Step &step = skeleton_.steps[t];
    run_.kernels_->mix_along(step.gone.count, run_.row(step.a, 0), local.main, step.gone.score, local.late,
                             run_.row(t, 0), step.fresh);
    meter_.spend(static_cast<double>(step.gone.count * step.fresh + 32));
}

void Upward::eliminate_cells(std::int32_t t, Part part) {
    const LocalScores local = split_scores(t, true);
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
                        f_[terms] =
                            local.main + at.score + v * step.gone.score + (block + box.rows.first) * step.fresh_score;
                    }
                }
                const Index height = box.rows.last - box.rows.first, width = box.cells.last - box.cells.first;
                double *to =
                    out_base + r * out.states + (block + box.rows.first) * step.kept_states + p * row + box.cells.first;
                const double *late = local.late ? local.late + block + box.rows.first : nullptr;
                if (along_fresh) {                                               // the row runs along the factor
                    const bool room = r + 1 == out.runs && box.rows.last == nj;  // behind the table
                    (room ? run_.kernels_->mix
                          : run_.kernels_->mix_exact)({terms, f_.data(), x_.data(), 0, nullptr, 1, to, 0, height});
                    if (late) run_.kernels_->add(late, to, height);
                } else {
                    run_.kernels_->mix_exact(
                        {terms, x_.data(), f_.data(), step.fresh_score, late, height, to, step.kept_states, width});
                }
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
        if (verb == Verb::Join) return join_cells(t, part);
        const Step &step = skeleton_.steps[t];
        const bool along = layout_.statistics == 0 && step.kept_states == 1 && step.fresh > 1 && part.of == 1;
        return along ? eliminate_along(t) : eliminate_cells(t, part);
    }
    return verb == Verb::Join ? join(algebra, t, part) : eliminate(algebra, t, part);
}

template void Upward::step(MaxPlus &, std::int32_t, Part);
template void Upward::step(LogSumExp &, std::int32_t, Part);
template void Upward::step(CountingModulo &, std::int32_t, Part);

}  // namespace tallytree
