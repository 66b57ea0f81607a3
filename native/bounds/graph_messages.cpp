#include "bounds/graph_messages.h"
#include "tables/upward.h"

namespace tallytree::bounds {

namespace {

constexpr std::int32_t kDeep = 64;  // steps after which messages are brought back to about 0
constexpr double kSlower = 10;      // operations of a whole table for a unit of work; of a pass over a small tree:
constexpr double kNarrow = 2.5, kEachStep = 200, kManySteps = 256;

// Whether a join adds up tables of the same states in the same order, as in trees.
bool is_aligned(std::span<const Loop> loops) {
    return loops.empty() || (loops.size() == 1 && loops[0].a == 1 && loops[0].b == 1);
}

}  // namespace

void GraphMessages::begin(const LocalTables &tables) {
    const bool same = skeleton_ == &tables.skeleton();  // as that of the last model, which is still there
    tables_ = &tables;
    skeleton_ = &tables.skeleton();
    if (!same) begin_program();
    for (Kept &kept : kept_) kept.there = false;
    held_ = {};
    where_.assign(static_cast<std::size_t>(begin_.back()));
    live_count_.assign(skeleton_->steps.size(), 0);
    counts_.clear();
    shared_.assign(tables.shared(), -1);
    Index places = 1;  // those that count nothing share places, which stay 0
    for (const Step &step : skeleton_->steps) places = std::max(places, step.shift_size);
    for (std::size_t t = 0; t < skeleton_->steps.size(); t++) {
        const LocalStep &local = tables[static_cast<Index>(t)];
        priced_begin_[t] = 0;
        if (!local.counts) continue;
        Index own = -1, &place = local.shared >= 0 ? shared_[local.shared] : own;
        if (place < 0) {
            place = places;
            places += skeleton_->steps[t].shift_size;
            counts_.push_back({local.counts, skeleton_->steps[t].shift_size, local.apart, place});
        }
        priced_begin_[t] = place;
    }
    priced_.assign(places, 0);
}

// What depends on the program alone.
void GraphMessages::begin_program() {
    const std::size_t size = skeleton_->steps.size();
    packing_ = Packing(skeleton_->statistics);
    begin_.assign(size + 1, 0);
    for (std::size_t t = 0; t < size; t++) begin_[t + 1] = begin_[t] + static_cast<Index>(skeleton_->states[t]);
    for (Kept &kept : kept_) {
        kept.values = Arena(begin_.back() * static_cast<Index>(sizeof(double)), std::move(kept.values));
        kept.from.assign(static_cast<std::size_t>(begin_.back()));
        for (std::size_t t = 0; t < size; t++)  // tables that know nothing are written here alone
            if (skeleton_->steps[t].verb == Verb::Unit)
                std::fill_n(static_cast<double *>(kept.values.data()) + begin_[t], begin_[t + 1] - begin_[t], 0.0);
    }
    current_ = 0;
    for (auto *list : {&best_state_, &best_place_, &live_begin_, &priced_begin_}) list->assign(size, 0);
    largest_.assign(size, 0);
    depth_.assign(size, 0);
    labelling_.assign(skeleton_->cardinalities.size(), 0);
    Index choices = 0;
    for (const Step &step : skeleton_->steps) choices = std::max(choices, step.gone.count);
    weighed_.assign(choices, 0);
}

double GraphMessages::bytes(const Skeleton &skeleton, double passes) {
    double states = 0, counts = 0;
    for (const double n : skeleton.states) states += n;
    for (const Step &step : skeleton.steps) counts += static_cast<double>(step.shift_size);
    constexpr double kStep = 7 * sizeof(Index) + sizeof(Counts);  // places of lists, and the best of it
    return states * (passes * (sizeof(double) + sizeof(std::int32_t)) + sizeof(std::int32_t)) +
           counts * sizeof(double) + kStep * static_cast<double>(skeleton.steps.size());
}

double GraphMessages::kept() const {
    double messages = 0;
    for (const Kept &kept : kept_) messages += static_cast<double>(kept.values.bytes()) + kept.from.bytes();
    return messages + merger_.bytes() +
           static_cast<double>(cells_.capacity() * sizeof(Reached) + ways_.capacity() * sizeof(Way) +
                               live_.capacity() * sizeof(Live)) +
           where_.bytes();
}

Measures GraphMessages::measures() const {
    Measures found{tables_->range(), static_cast<double>(skeleton_->cardinalities.size()), tables_->magnitude()};
    found.sums = tables_->operations();
    const auto steps = static_cast<double>(skeleton_->steps.size());
    const bool small = skeleton_->width <= 1 && steps <= kManySteps;
    found.pass = small ? kNarrow * found.sums + kEachStep * steps : kSlower * tables_->pass_work();
    found.cell = kSlower * tables_->cell();
    for (const auto n : skeleton_->cardinalities) found.few += 4.0 * n;
    return found;
}

// ---- a plain pass --------------------------------------------------------------------------------------------------

Pass GraphMessages::pass(const Prices &prices, Meter &meter) {
    current_ = (current_ + 1) % kept_.size();
    if (kept_.size() > 1 && kept_[current_].there && kept_[current_].prices == held_)
        current_ = (current_ + 1) % kept_.size();
    use(prices);
    taken_ = {};
    slips_ = 0;
    for (std::size_t t = 0; t < skeleton_->steps.size(); t++) {
        const auto verb = skeleton_->steps[t].verb;
        meter.spend(skeleton_->states[t] * static_cast<double>(skeleton_->steps[t].gone.count));
        if (verb == Verb::Eliminate) eliminate(static_cast<Index>(t));
        if (verb == Verb::Join) join(static_cast<Index>(t));
        if (depth_[t] > kDeep) normalise(static_cast<Index>(t));
    }
    taken_.add(values_[begin_.back() - 1]);
    taken_.add(tables_->constant());
    taken_.add(paid(prices, tables_->constant_counts()));
    Pass found{prices, taken_.total(), Tally(tables_->statistics())};
    if (found.most != kNegativeInfinity) found.tally = find_best();
    found.tolerance = kUnit * (slips_ + 16 * (std::abs(found.most) + tables_->range().reach(prices)));
    return found;
}

bool GraphMessages::recall(const Prices &prices) {
    for (std::size_t i = 0; i < kept_.size(); i++)
        if (kept_[i].there && kept_[i].prices == prices) {
            const bool other = current_ != i;
            current_ = i;
            if (!other) return true;
            use(prices);
            if (values_[begin_.back() - 1] != kNegativeInfinity) find_best();
            return true;
        }
    return false;
}

// The messages at hand are those of some prices.
void GraphMessages::use(const Prices &prices) {
    Kept &kept = kept_[current_];
    kept.there = true;
    kept.prices = prices_ = prices;
    values_ = static_cast<double *>(kept.values.data());
    from_ = kept.from.data();
    price_counts();
}

// All counts at the prices of this pass; steps with the same counts share them.
void GraphMessages::price_counts() {
    for (const auto &[counts, size, apart, place] : counts_) {
        double *priced = priced_.data() + place;
        for (Index i = 0; i < size; i++) priced[i] = prices_[0] * counts[i];
        for (Index p = 1; p < tables_->statistics(); p++)
            for (Index i = 0; i < size; i++) priced[i] += prices_[p] * counts[p * apart + i];
    }
}

// out[fresh, kept] = late[fresh] + max over v of (a[kept, v] + λ·g) + f, in this order of additions everywhere.
void GraphMessages::eliminate(Index t) {
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    double largest = largest_[step.a] + local.largest;
    for (Index p = 0; p < tables_->statistics(); p++) largest += std::abs(prices_[p]) * tables_->reach(t, p);
    largest_[t] = largest;
    slips_ += local.roundings * largest;
    depth_[t] = depth_[step.a] + 1;
    if (notes(step)) return eliminate_noting(t);
    if (step.kept_states == 1) return eliminate_fresh(t);

    const auto loops = tables_->kept(t);
    if (is_long(loops)) return eliminate_rows(t);
    if (is_choppy(loops, step.kept_states)) return eliminate_listed(t);
    const Loop inner = loops.empty() ? Loop{1, 0, 0, 0, 0} : loops.back();
    const double *a = values_ + begin_[step.a];
    for (Index fresh = 0; fresh < step.fresh; fresh++) {
        const Index more = step.shift_has_fresh ? fresh : 0;
        const double add = local.late ? local.late[fresh] : 0;
        double *out = values_ + begin_[t] + fresh * step.kept_states;
        Odometer at(loops.empty() ? loops : loops.first(loops.size() - 1));
        for (Index k = 0; k < step.kept_states; k += inner.count, out += inner.count, at.next())
            for (Index v = 0; v < step.gone.count; v++) {
                const double *x = a + at.a + v * step.gone.a;
                const double *g = priced(t) + at.shift + v * step.gone.shift + more;
                const double *f = local.scores + at.score + v * step.gone.score + fresh * step.fresh_score;
                for (Index i = 0; i < inner.count; i++) {
                    const double y = (x[i * inner.a] + g[i * inner.shift]) + f[i * inner.score];
                    out[i] = v > 0 && out[i] >= y ? out[i] : y;
                }
            }
        if (local.late)
            for (double *x = out - step.kept_states; x < out; x++) *x += add;
    }
}

// The same where nothing is kept, as in chains and trees; which choice is the best is noted on the way.
void GraphMessages::eliminate_noting(Index t) {
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    const Loop gone = step.gone;
    const double *a = values_ + begin_[step.a];
    double *out = values_ + begin_[t], *x = weighed_.data();
    std::int32_t *from = from_ + begin_[t];
    for (Index fresh = 0; fresh < step.fresh; fresh++) {
        if (fresh == 0 || step.shift_has_fresh) {
            const double *g = priced(t) + fresh;
            for (Index v = 0; v < gone.count; v++) x[v] = a[v * gone.a] + g[v * gone.shift];
        }
        const double *f = local.scores + fresh * step.fresh_score;
        double best = kNegativeInfinity;
        Index chosen = 0;
        for (Index v = 0; v < gone.count; v++) {
            const double y = x[v] + f[v * gone.score];
            chosen = y > best ? v : chosen;
            best = y > best ? y : best;
        }
        out[fresh] = local.late ? best + local.late[fresh] : best;
        from[fresh] = static_cast<std::int32_t>(chosen);
    }
}

// The same by a kernel, which notes nothing.
void GraphMessages::eliminate_fresh(Index t) {
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    const Loop gone = step.gone;
    const double *a = values_ + begin_[step.a];
    double *out = values_ + begin_[t], *x = weighed_.data();
    const bool rows = gone.score == 1;
    const Index each = step.shift_has_fresh ? 1 : step.fresh;  // how many fresh states have the same counts
    for (Index fresh = 0; fresh < step.fresh; fresh += each) {
        const double *g = priced(t) + fresh, *f = local.scores + fresh * step.fresh_score;
        for (Index v = 0; v < gone.count; v++) x[v] = a[v * gone.a] + g[v * gone.shift];
        const StepTable table{gone.count, each, rows ? step.fresh_score : gone.score, x, f, out + fresh};
        (rows ? kernels_.along : kernels_.down)(table);
    }
    if (!local.late) return;
    for (Index fresh = 0; fresh < step.fresh; fresh++) out[fresh] += local.late[fresh];
}

void GraphMessages::join(Index t) {
    const Step &step = skeleton_->steps[t];
    const double *a = values_ + begin_[step.a], *b = values_ + begin_[step.b];
    double *out = values_ + begin_[t];
    const auto loops = tables_->kept(t);
    if (is_aligned(loops)) {
        for (Index k = 0; k < step.kept_states; k++) out[k] = a[k] + b[k];
    } else if (is_long(loops)) {
        join_rows(t);
    } else if (is_choppy(loops, step.kept_states)) {
        join_listed(t);
    } else {
        Odometer at(loops);
        for (Index k = 0; k < step.kept_states; k++, at.next()) out[k] = a[at.a] + b[at.b];
    }
    largest_[t] = largest_[step.a] + largest_[step.b];
    slips_ += 2 * largest_[t];
    depth_[t] = depth_[step.a] + depth_[step.b];
}

void GraphMessages::normalise(Index t) {
    double *from = values_ + begin_[t], *to = values_ + begin_[t + 1];
    double most = kNegativeInfinity, least = kInfinity;
    for (double *x = from; x < to; x++) {
        most = std::max(most, *x);
        if (*x != kNegativeInfinity) least = std::min(least, *x);
    }
    depth_[t] = 0;
    if (most == kNegativeInfinity) return;
    for (double *x = from; x < to; x++) *x -= most;
    taken_.add(most);
    slips_ += 2 * largest_[t];
    largest_[t] = most - least;
}

GraphMessages::Operands GraphMessages::operands(Index t, Index state) const {
    const Step &step = skeleton_->steps[t];
    const bool all_fresh = step.kept_states == 1, all_kept = step.fresh == 1;  // divisions take long
    const Index fresh = all_fresh ? state : all_kept ? 0 : state / step.kept_states;
    Index rest = state - fresh * step.kept_states;
    Operands at;
    const auto loops = tables_->kept(t);
    for (std::size_t i = loops.size(); i-- > 0; rest = i > 0 ? rest / loops[i].count : 0) {
        const Index digit = i > 0 ? rest % loops[i].count : rest;
        at.a += digit * loops[i].a;
        at.b += digit * loops[i].b;
        at.score += digit * loops[i].score;
        at.shift += digit * loops[i].shift;
    }
    at.score += fresh * step.fresh_score;
    if (step.shift_has_fresh) at.shift += fresh;
    return at;
}

double GraphMessages::weigh(Index t, const Operands &at) {
    const Step &step = skeleton_->steps[t];
    const Loop &gone = step.gone;
    const double *a = values_ + begin_[step.a] + at.a, *g = priced(t) + at.shift;
    const double *f = (*tables_)[t].scores + at.score;
    double best = kNegativeInfinity;
    for (Index v = 0; v < gone.count; v++) {
        weighed_[v] = (a[v * gone.a] + g[v * gone.shift]) + f[v * gone.score];
        best = std::max(best, weighed_[v]);
    }
    return best;
}

Index GraphMessages::key_of(Index t, Index place) const {
    const std::int32_t *counts = (*tables_)[t].counts;
    if (!counts) return 0;
    const Index apart = (*tables_)[t].apart;
    return packing_.pack([&](Index p) { return counts[p * apart + place]; });
}

// From the last table down, always the first of the best states.
Tally GraphMessages::find_best() {
    Tally tally = tables_->constant_counts();
    for (auto t = static_cast<Index>(skeleton_->steps.size()); t-- > 0;) {
        const Step &step = skeleton_->steps[t];
        const Index state = best_state_[t];
        if (step.verb == Verb::Unit) continue;
        if (step.verb == Verb::Join) {
            const bool aligned = is_aligned(tables_->kept(t));
            const Operands at = aligned ? Operands{state, state} : operands(t, state);
            best_state_[step.a] = at.a;
            best_state_[step.b] = at.b;
            continue;
        }
        const bool noted = notes(step);
        const Operands at = noted ? Operands{0, 0, 0, step.shift_has_fresh ? state : 0} : operands(t, state);
        const Index v = noted ? from_[begin_[t] + state] : first_best(t, at);
        labelling_[step.variable] = v;
        best_state_[step.a] = at.a + v * step.gone.a;
        const std::int32_t *counts = (*tables_)[t].counts;
        best_place_[t] = at.shift + v * step.gone.shift;
        for (Index p = 0; counts && p < tables_->statistics(); p++)
            tally[p] += counts[p * (*tables_)[t].apart + best_place_[t]];
    }
    return tally;
}

Index GraphMessages::first_best(Index t, const Operands &at) {
    const double best = weigh(t, at);
    return std::find(weighed_.begin(), weighed_.begin() + skeleton_->steps[t].gone.count, best) - weighed_.begin();
}

double GraphMessages::best(std::int64_t *labelling) const {
    std::copy(labelling_.begin(), labelling_.end(), labelling);
    return tables_->evaluate(labelling).score;
}

}  // namespace tallytree::bounds
