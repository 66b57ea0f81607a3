#include "bounds/local_tables.h"

#include <utility>

#include "plan/layout.h"

namespace tallytree::bounds {

namespace {

bool as_it_lies(std::span<const FactorLoop> loops, Index size) {
    return size == 1 || (loops.size() == 1 && loops[0].stride == 1 && loops[0].count == size);
}

// Writes or adds the entries of a factor, in the order of a local table.
void add_factor(std::span<const FactorLoop> loops, const double *table, double *out, bool more) {
    walk_factor(loops, [&](Index at, Index n, Index stride) {
        if (more)
            for (Index x = 0; x < n; x++) *out++ += table[at + x * stride];
        else
            for (Index x = 0; x < n; x++) *out++ = table[at + x * stride];
    });
}

// The size of the largest entry that is finite.
double largest_of(const double *table, Index size) {
    double most = 0;
    for (Index i = 0; i < size; i++) {
        const double x = std::abs(table[i]);
        most = x > most && x < kInfinity ? x : most;
    }
    return most;
}

// The factor of a step that is not the late one, if it is the first or the second.
Index main_factor(const Step &step) { return step.late == 0 ? 1 : 0; }

}  // namespace

// Whether the scores of a step are those of one factor, so that no table of sums is made.
bool LocalTables::lies_there(const Skeleton &skeleton, Index t) {
    const Step &step = skeleton.steps[t];
    const auto others = static_cast<Index>(skeleton.score_refs[t].size()) - (step.late >= 0 ? 1 : 0);
    return others == 1 &&
           as_it_lies(skeleton.score_loops[skeleton.score_refs.begin[t] + main_factor(step)], step.score_size);
}

LocalTables::LocalTables(const Skeleton &skeleton, std::vector<TableBlock<double>> scores,
                         std::vector<TableBlock<std::int64_t>> counts, const ChainKernels &kernels)
    : kernels_(&kernels), skeleton_(&skeleton), scores_(std::move(scores)), counts_(std::move(counts)) {
    if (!skeleton.chart) begin(false);
    fill();
}

void LocalTables::load(const Skeleton &skeleton, std::span<const TableBlock<double>> scores,
                       std::span<const TableBlock<std::int64_t>> counts) {
    const bool same = skeleton_ == &skeleton;
    skeleton_ = &skeleton;
    scores_.assign(scores.begin(), scores.end());
    counts_.assign(counts.begin(), counts.end());
    if (!skeleton.chart) begin(same);
    fill();
}

// Scores and counts of all steps.
void LocalTables::fill() {
    const auto size = static_cast<Index>(skeleton_->steps.size());
    steps_.assign(size, {});
    facts_ = {.operations = facts_.operations};
    facts_.constant_counts = facts_.range.low = facts_.range.high = Tally(statistics());
    levels_.clear();
    further_.assign(size * facts_.range.low.more(), 0);
    main_ = late_ = {};
    shared_ = unshared_ = 0;
    shifts_.clear();
    shift_rows_.clear();
    met_.clear();
    shift_places_.clear();
    keyed_ = true;
    fits_ = !skeleton_->chart;
    if (!fits_) return;
    shift_places_.reserve(size);
    constexpr Index kAhead = 8;  // tables may be larger than the cache
    for (Index t = 0; t < size; t++) {
        if (t + kAhead < size)
            for (const auto ref : skeleton_->score_refs[t + kAhead])
                __builtin_prefetch(scores_[ref.block].row(ref.row));
        if (skeleton_->steps[t].verb != Verb::Eliminate) continue;
        add_scores(t, steps_[t]);
        add_counts(t, steps_[t]);
    }
    for (const auto &[t, place] : shift_places_) steps_[t].counts = shifts_.data() + place;
    add_constants();
    find_range();
}

void LocalTables::load(const Skeleton &skeleton, std::span<const TableBlock<double>> scores, const KindCounts &counts) {
    const bool same = skeleton_ == &skeleton;
    skeleton_ = &skeleton;
    scores_.assign(scores.begin(), scores.end());
    const auto size = static_cast<Index>(skeleton.steps.size()), kinds = std::ssize(counts.ranges) / statistics();
    shared_ = kinds;
    steps_.assign(size, {});
    main_ = late_ = {};
    facts_ = {.operations = facts_.operations};
    begin(same);
    for (Index t = 0; t < size; t++) {
        const Step &step = skeleton.steps[t];
        if (step.verb != Verb::Eliminate) continue;
        add_scores(t, steps_[t]);
        add_kind(steps_[t], counts, step.variable);
    }
    add_constants();
}

// What depends on the program alone, and room for sums.
void LocalTables::begin(bool same_program) {
    summed_ = 0;
    if (same_program) return;
    const auto size = static_cast<Index>(skeleton_->steps.size());
    std::size_t sums = 0;
    facts_.operations = 0;
    kept_.begin.assign(1, 0);
    kept_.begin.reserve(size + 1);
    kept_.data.clear();
    for (Index t = 0; t < size; t++) {
        facts_.operations += operations(*skeleton_, t);
        merge_loops(t);
        const Step &step = skeleton_->steps[t];
        if (step.verb == Verb::Eliminate && !lies_there(*skeleton_, t)) sums += step.score_size;
    }
    sums_.resize(sums);
}

double LocalTables::kept() const {
    return static_cast<double>(steps_.capacity() * sizeof(LocalStep) + kept_.data.capacity() * sizeof(Loop) +
                               kept_.begin.capacity() * sizeof(Index) + sums_.capacity() * sizeof(double) +
                               (shifts_.capacity() + levels_.capacity()) * sizeof(std::int32_t));
}

double LocalTables::operations(const Skeleton &skeleton) {
    double sum = 0;
    for (std::size_t t = 0; t < skeleton.steps.size(); t++) sum += operations(skeleton, static_cast<Index>(t));
    return sum;
}

double LocalTables::pass_work(const Skeleton &skeleton, double operations) {
    const auto steps = static_cast<double>(skeleton.steps.size());
    if (skeleton.width > 1) return 0.75 * operations + 70 * steps;
    const bool chain = skeleton.steps.size() <= skeleton.cardinalities.size() + 1;
    return chain ? 0.25 * operations + 14 * steps : 0.4 * operations + 18 * steps;
}

double LocalTables::operations(const Skeleton &skeleton, Index t) {
    const Step &step = skeleton.steps[t];
    return skeleton.states[t] * (step.verb == Verb::Eliminate ? static_cast<double>(step.gone.count) : 1);
}

void LocalTables::add_scores(Index t, LocalStep &local) {
    const Step &step = skeleton_->steps[t];
    const auto refs = skeleton_->score_refs[t];
    const Index first = skeleton_->score_refs.begin[t], count = static_cast<Index>(refs.size());
    const auto table = [&](Index i) { return scores_[refs[i].block].row(refs[i].row); };
    if (step.late >= 0) {
        local.late = table(step.late);
        local.largest += largest(local.late, step.fresh, late_);
    }
    if (lies_there(*skeleton_, t)) {
        local.scores = table(main_factor(step));
    } else {
        double *sum = sums_.data() + summed_;
        summed_ += step.score_size;
        bool any = false;
        for (Index i = 0; i < count; i++) {
            if (i == step.late) continue;
            add_factor(skeleton_->score_loops[first + i], table(i), sum, std::exchange(any, true));
        }
        if (!any) std::fill_n(sum, step.score_size, 0.0);
        local.scores = sum;
    }
    local.largest += largest(local.scores, step.score_size, main_);
    facts_.magnitude += local.largest;
    local.roundings = 8 + static_cast<double>(refs.size() + 2 * statistics());
}

void LocalTables::merge_loops(Index t) {
    if (skeleton_->kept[t].empty()) return kept_.close_row();
    auto &loops = loops_;
    loops.clear();
    for (const Loop &loop : skeleton_->kept[t]) {
        if (loop.count == 1) continue;
        if (!loops.empty()) {
            Loop &outer = loops.back();
            const Index n = loop.count;
            if (outer.a == loop.a * n && outer.b == loop.b * n && outer.score == loop.score * n &&
                outer.shift == loop.shift * n) {
                outer = {outer.count * n, loop.a, loop.b, loop.score, loop.shift};
                continue;
            }
        }
        loops.push_back(loop);
    }
    kept_.push_row(loops);
}

void LocalTables::add_constants() {
    for (auto ref : skeleton_->constant_scores) facts_.constant += *scores_[ref.block].row(ref.row);
    if (facts_.constant != kNegativeInfinity) facts_.magnitude += std::abs(facts_.constant);
    for (auto ref : skeleton_->constant_shifts)
        facts_.constant_counts[skeleton_->statistic_of[ref.block]] += *counts_[ref.block].row(ref.row);
}

Ends LocalTables::ends(const Skeleton &skeleton, std::span<const TableBlock<std::int64_t>> counts) {
    Ends found{std::vector<double>(skeleton.statistics), std::vector<double>(skeleton.statistics)};
    for (std::size_t b = 0; b < counts.size(); b++) {
        const auto p = skeleton.statistic_of[b];
        const double times = counts[b].count == 1 ? static_cast<double>(skeleton.shift_scopes.blocks[b].count) : 1;
        for (Index k = 0; k < counts[b].count; k++) {
            const std::int64_t *row = counts[b].row(k);
            Index least = row[0], most = row[0];
            for (Index x = 1; x < counts[b].size; x++) {
                least = std::min(least, row[x]);
                most = std::max(most, row[x]);
            }
            found.low[p] += times * static_cast<double>(least);
            found.high[p] += times * static_cast<double>(most);
        }
    }
    return found;
}

void LocalTables::find_range() {
    const auto [low, high] = ends(*skeleton_, counts_);
    for (Index p = 0; p < statistics(); p++) {
        keyed_ &= Packing(statistics()).holds(high[p] - low[p]);
        fits_ &= std::max(std::abs(low[p]), std::abs(high[p])) < 1e15;
        if (!fits_) return;
        facts_.range.low[p] = static_cast<Index>(low[p]);
        facts_.range.high[p] = static_cast<Index>(high[p]);
    }
}

double LocalTables::largest(const double *table, Index size, Measured &last) const {
    constexpr Index kFew = 32;
    if (table != last.table)
        last = {table, size <= kFew ? largest_of(table, size) : kernels_->sizes(table, 1, size, size)};
    return last.largest;
}

double LocalTables::small_budget(double span) const {
    double states = 0;
    for (const auto n : skeleton_->cardinalities) states += n;
    states /= static_cast<double>(std::max<Index>(length(), 1));
    return std::min(60.0 / span, 0.3 / (1 + 0.1 * states));
}

Evaluated LocalTables::evaluate(const std::int64_t *labelling) const {
    Evaluated found{0, Tally(statistics())};
    Sum score;
    const auto each = [&](const ScopeBlock &scopes, const auto &tables, auto use) {
        constexpr Index kAhead = 12, kCached = 1 << 16;
        const bool far = tables.count * tables.size > kCached;  // beyond the cache
        const auto entry = [&](Index k) {
            Index at = 0;
            for (auto v : scopes.row(k)) at = at * skeleton_->cardinalities[v] + labelling[v];
            return tables.row(k) + at;
        };
        for (Index k = 0; k < scopes.count; k++) {
            if (far && k + kAhead < scopes.count) __builtin_prefetch(entry(k + kAhead));
            use(*entry(k));
        }
    };
    for (std::size_t b = 0; b < scores_.size(); b++)
        each(skeleton_->score_scopes.blocks[b], scores_[b], [&](double score_here) { score.add(score_here); });
    for (std::size_t b = 0; b < counts_.size(); b++)
        each(skeleton_->shift_scopes.blocks[b], counts_[b],
             [&](std::int64_t count) { found.tally[skeleton_->statistic_of[b]] += count; });
    found.score = score.total();
    return found;
}

}  // namespace tallytree::bounds
