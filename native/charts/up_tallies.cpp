#include "charts/up_tallies.h"

#include <algorithm>

namespace tallytree {

UpTallies::UpTallies(Run &run, Meter &meter)
    : run_(run),
      layout_(run.layout()),
      chart_(*layout_.chart),
      grammar_(*layout_.skeleton->chart->grammar),
      spans_(layout_.skeleton->chart->spans),
      meter_(meter) {}

template <class Algebra>
void UpTallies::step(Algebra &algebra, std::int32_t t) {
    for (const auto end = t + layout_.skeleton->steps[t].together; t < end; t++) {
        const Step &step = layout_.skeleton->steps[t];
        const auto &table = layout_.tables[t];
        if (table.size == 0) continue;
        span_ = spans_.number(step.start, step.width);
        std::fill(run_.row(t, 0), run_.row(t, 0) + table.size, Algebra::zero());
        if (step.verb == Verb::Word) take_word<Algebra>(t, step.start);
        else if (step.verb == Verb::Unary)
            for (auto target : grammar_.targets) unary(algebra, t, target);
        else
            for (Index split = 1; split < step.width; split++)
                combine(algebra, t, spans_.table(Layer::Closed, step.start, split),
                        spans_.table(Layer::Closed, step.start + split, step.width - split));
    }
}

template <class Algebra>
void UpTallies::take_word(std::int32_t t, Index word) {
    const double *scores = run_.scores()[kWords].row(word);
    for (std::int32_t s = 0; s < grammar_.symbols; s++)
        if (const auto state = chart_.state_of(t, s); state >= 0) *run_.row(t, state) = Algebra::lift(scores[s]);
}

// ---- combine -----------------------------------------------------------------------------------------------------

template <class Algebra>
void UpTallies::combine(Algebra &algebra, std::int32_t t, std::int32_t left, std::int32_t right) {
    if (layout_.tables[left].size == 0 || layout_.tables[right].size == 0) return;
    find_pairs(t, left, right);
    for (std::int32_t parent = 0; parent < grammar_.symbols; parent++)
        if (chart_.state_of(t, parent) >= 0 && !grammar_.groups[parent].empty())
            join_parent(algebra, t, parent, left, right);
}

void UpTallies::find_pairs(std::int32_t t, std::int32_t left, std::int32_t right) {
    const Stretches a(layout_, left), b(layout_, right), out(layout_, t);
    const Index q = layout_.prefix_size;
    pairs_.resize(out.count);
    for (auto &pairs : pairs_) pairs.clear();
    prefix_.resize(q);
    for (Index x = 0; x < a.count; x++)
        for (Index y = 0; y < b.count; y++) {
            for (Index i = 0; i < q; i++)
                prefix_[i] = std::min(layout_.caps[i], a.prefix[x * q + i] + b.prefix[y * q + i]);
            if (const auto r = chart_.stretch_of(t, prefix_.data()); r >= 0)
                pairs_[r].push_back({x, y, landing(a.low[x] + b.low[y], out.low[r], out.length[r])});
        }
    meter_.spend(8.0 * static_cast<double>(a.count) * static_cast<double>(b.count));
}

// The groups that are there, each mixed into a row of its own.
template <class Algebra>
void UpTallies::join_parent(Algebra &algebra, std::int32_t t, std::int32_t parent, std::int32_t left,
                            std::int32_t right) {
    const auto groups = grammar_.groups[parent];
    const bool shared_left = groups[0].left;
    const auto shared = shared_left ? left : right, mixed = shared_left ? right : left;
    find_guards(mixed);
    shared_rows_.clear();
    if (static_cast<Index>(mixes_.size()) < guarded_size_ * static_cast<Index>(groups.size()))
        mixes_.resize(guarded_size_ * groups.size());
    for (const auto &group : groups) {
        const auto state = chart_.state_of(shared, group.shared);
        if (state < 0) continue;
        double *to = mixes_.data() + guarded_size_ * static_cast<Index>(shared_rows_.size());
        if (mix(algebra, group, mixed, to)) shared_rows_.push_back(run_.row(shared, state));
    }
    if (shared_rows_.empty()) return;
    const Stretches a(layout_, shared), b(layout_, mixed), out(layout_, t);
    double *row = run_.row(t, chart_.state_of(t, parent));
    for (Index r = 0; r < out.count; r++) {
        operands_.clear();
        double operations = 0;
        for (const auto &pair : pairs_[r]) {
            const Index x = shared_left ? pair.left : pair.right, y = shared_left ? pair.right : pair.left;
            for (std::size_t g = 0; g < shared_rows_.size(); g++)
                operands_.push_back({shared_rows_[g] + a.start[x], a.length[x],
                                     mixes_.data() + guarded_size_ * static_cast<Index>(g) + guards_[y], b.length[y],
                                     pair.offset});
            operations += static_cast<double>(a.length[x] * b.length[y]);
        }
        if (operands_.empty()) continue;
        convolve(algebra, row + out.start[r], out.length[r], out.natural[r]);
        meter_.spend(operations * static_cast<double>(shared_rows_.size()) + 32);
    }
}

// Where the stretches of a table lie in a row with neutral cells around each of them.
void UpTallies::find_guards(std::int32_t table) {
    const Stretches stretches(layout_, table);
    guards_.resize(stretches.count);
    guarded_size_ = 0;
    for (Index r = 0; r < stretches.count; r++) {
        guards_[r] = guarded_size_ + kGuard;
        guarded_size_ += round_up(stretches.length[r]) + 2 * kGuard;
    }
}

// False where no rule of the group can be used.
template <class Algebra>
bool UpTallies::mix(Algebra &algebra, const RuleGroup &group, std::int32_t table, double *to) {
    rows_.clear();
    factors_.clear();
    for (Index q = group.begin; q < group.end; q++) {
        const auto number = grammar_.by_group[q];
        const auto &rule = grammar_.rules[number];
        const auto state = chart_.state_of(table, group.left ? rule.right : rule.left);
        const double *f = anchored(run_.scores()[kRules], number, span_);
        if (state < 0 || *f == kNegativeInfinity) continue;
        rows_.push_back(run_.row(table, state));
        factors_.push_back(f);
    }
    if (rows_.empty()) return false;
    const Stretches stretches(layout_, table);
    std::fill(to, to + guarded_size_, Algebra::zero());
    for (Index r = 0; r < stretches.count; r++) {
        mix_stretch(algebra, stretches.start[r], stretches.length[r], to + guards_[r]);
        meter_.spend(static_cast<double>(stretches.length[r] * static_cast<Index>(rows_.size())));
    }
    return true;
}

void UpTallies::mix_stretch(MaxPlus &, Index start, Index length, double *to) {
    x_.clear();
    for (const double *row : rows_) x_.push_back(row + start);
    run_.kernels()->mix(
        {static_cast<Index>(x_.size()), x_.data(), factors_.data(), 0, nullptr, 1, to, 0, round_up(length)});
}
template <class Algebra>
void UpTallies::mix_stretch(Algebra &algebra, Index start, Index length, double *to) {
    terms_.clear();
    for (std::size_t i = 0; i < rows_.size(); i++)
        terms_.push_back({rows_[i] + start, Algebra::lift(*factors_[i]), 0, length});
    algebra.combine(terms_, to, length);
}

// The convolutions of all operands, added to what the row holds; above a cap, to its last cell.
void UpTallies::convolve(MaxPlus &, double *to, Index n, Index natural) {
    buffer_.resize(round_up(natural) + kGuard);
    run_.kernels()->convolve(operands_.data(), static_cast<Index>(operands_.size()), buffer_.data(), 0,
                             round_up(natural));
    run_.kernels()->raise(buffer_.data(), 0, to, n);
    for (Index i = n; i < natural; i++) to[n - 1] = std::max(to[n - 1], buffer_[i]);
}
template <class Algebra>
void UpTallies::convolve(Algebra &algebra, double *to, Index n, Index natural) {
    buffer_.assign(to, to + n);
    terms_.assign(1, {buffer_.data(), Algebra::one(), 0, n});
    for (const auto &c : operands_)
        for (Index i = 0; i < c.na; i++) add_terms<Algebra>(c.b, c.a[i], c.offset + i, c.nb, n, natural);
    algebra.combine(terms_, to, n);
}

// Cell k of x goes to cell k + offset, and to the last one above a cap.
template <class Algebra>
void UpTallies::add_terms(const double *x, double f, Index offset, Index length, Index n, Index natural) {
    if (f == Algebra::zero()) return;
    const Index first = std::max<Index>(offset, 0), last = std::min(n, offset + length);
    if (first < last) terms_.push_back({x - offset, f, first, last});
    if (natural > n)
        for (Index k = std::max<Index>(n - offset, 0); k < length; k++)
            terms_.push_back({x + k - (n - 1), f, n - 1, n});
}

// ---- unary ------------------------------------------------------------------------------------------------------

template <class Algebra>
void UpTallies::unary(Algebra &algebra, std::int32_t t, std::int32_t target) {
    const auto state = chart_.state_of(t, target);
    if (state < 0) return;
    const Stretches out(layout_, t);
    collected_.resize(out.count);
    for (auto &terms : collected_) terms.clear();
    for (auto number : grammar_.by_target[target]) collect<Algebra>(t, number);
    for (Index r = 0; r < out.count; r++) {
        algebra.combine(collected_[r], run_.row(t, state) + out.start[r], out.length[r]);
        meter_.spend(static_cast<double>(out.length[r] * static_cast<Index>(collected_[r].size() + 1)));
    }
}

template <class Algebra>
void UpTallies::collect(std::int32_t t, std::int32_t number) {
    const Step &step = layout_.skeleton->steps[t];
    const UnaryPath &path = grammar_.paths[number];
    const auto from = path.from_closed ? t : step.a;
    const auto state = chart_.state_of(from, path.source);
    const double f = Algebra::lift(*anchored(run_.scores()[kPaths], number, span_));
    if (state < 0 || f == Algebra::zero()) return;
    const Stretches in(layout_, from), out(layout_, t);
    const Index q = layout_.prefix_size, p = layout_.statistics;
    const auto *shift = chart_.shift(path, span_, step.width == 1);
    prefix_.resize(q);
    for (Index x = 0; x < in.count; x++) {
        for (Index i = 0; i < q; i++)
            prefix_[i] = std::min(layout_.caps[i], in.prefix[x * q + i] + (shift ? shift[i] : 0));
        const auto r = chart_.stretch_of(t, prefix_.data());
        if (r < 0) continue;
        terms_.clear();
        add_terms<Algebra>(run_.row(from, state) + in.start[x], f, in.low[x] + (shift ? shift[p - 1] : 0) - out.low[r],
                           in.length[x], out.length[r], out.natural[r]);
        collected_[r].insert(collected_[r].end(), terms_.begin(), terms_.end());
    }
}

template void UpTallies::step(MaxPlus &, std::int32_t);
template void UpTallies::step(LogSumExp &, std::int32_t);
template void UpTallies::step(CountingModulo &, std::int32_t);

}  // namespace tallytree
