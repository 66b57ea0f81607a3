#include "bounds/graph_messages.h"
#include "tables/upward.h"

namespace tallytree::bounds {

namespace {

// Units of work of loading a model: for each step and each state, of a tree and of a wide graph, and for each step
// beyond those that stay in the cache.
constexpr double kLoaded = 70, kLoadedState = 4, kLoadedWide = 170, kLoadedWideState = 1, kLoadedFar = 20, kNear = 256;
constexpr double kPriced = 1.1;  // of a pass: a count at the prices

}  // namespace

void GraphMessages::begin(const LocalTables &tables) {
    const bool same = skeleton_ == &tables.skeleton();  // as that of the last model, which is still there
    tables_ = &tables;
    skeleton_ = &tables.skeleton();
    if (same) forget_band();
    else begin_program();
    begin_messages();
    held_ = {};
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
    counts_work_ = kPriced * static_cast<double>(places * tables.statistics());
    for (Move &move : moves_) {
        const LocalStep &local = tables[move.t];
        if (skeleton_->steps[move.t].verb == Verb::Eliminate) move.b = priced_begin_[move.t];
        move.scores = local.scores;
        move.late = local.late;
        move.counts = local.counts;
        move.apart = local.apart;
    }
    weigh_slips();
}

// What depends on the program alone.
void GraphMessages::begin_program() {
    const std::size_t size = skeleton_->steps.size();
    packing_ = Packing(skeleton_->statistics);
    begin_.assign(size + 1, 0);
    for (std::size_t t = 0; t < size; t++) begin_[t + 1] = begin_[t] + static_cast<Index>(skeleton_->states[t]);
    for (Kept &kept : kept_) {
        kept.size = 0;
        kept.from.assign(static_cast<std::size_t>(begin_.back()));
    }
    where_.assign(static_cast<std::size_t>(begin_.back()));
    live_count_.assign(size, 0);
    reached_.clear();
    current_ = 0;
    for (auto *list : {&best_state_, &live_begin_, &priced_begin_}) list->assign(size, 0);
    best_cells_.assign(size, {0, 1});
    labelling_.assign(skeleton_->cardinalities.size(), 0);
    Index choices = 0;
    for (const Step &step : skeleton_->steps) choices = std::max(choices, step.gone.count);
    weighed_.assign(choices, 0);
    list_moves();
    program_work_ = 0;
    for (const Move &move : moves_) program_work_ += work_of(move);
}

// Room for messages. Tables that know nothing are written here alone.
void GraphMessages::begin_messages() {
    const Index size = begin_.back();
    for (Kept &kept : kept_) {
        kept.there = false;
        if (kept.size == size) continue;
        kept.size = size;
        kept.values = Arena(size * static_cast<Index>(sizeof(double)), std::move(kept.values));
        for (std::size_t t = 0; t < skeleton_->steps.size(); t++)
            if (skeleton_->steps[t].verb == Verb::Unit)
                std::fill_n(static_cast<double *>(kept.values.data()) + begin_[t], begin_[t + 1] - begin_[t], 0.0);
    }
}

double GraphMessages::rest() {
    constexpr std::size_t kLarge = 4 << 20;
    for (Kept &kept : kept_)
        if (kept.values.bytes() > kLarge) {
            kept.values = {};
            kept.size = 0;
        }
    return kept();
}

double GraphMessages::bytes(const Skeleton &skeleton, double passes) {
    double states = 0, counts = 0;
    for (const double n : skeleton.states) states += n;
    for (const Step &step : skeleton.steps) counts += static_cast<double>(step.shift_size);
    constexpr double kStep = 8 * sizeof(Index) + sizeof(Counts) + sizeof(Move);  // places of lists, and the best of it
    return states * (passes * (sizeof(double) + sizeof(std::uint8_t)) + sizeof(std::int32_t)) +
           counts * sizeof(double) + kStep * static_cast<double>(skeleton.steps.size());
}

double GraphMessages::kept() const {
    double messages = 0;
    for (const Kept &kept : kept_) messages += static_cast<double>(kept.values.bytes()) + kept.from.bytes();
    return messages + merger_.bytes() +
           static_cast<double>(cells_.capacity() * sizeof(Reached) + ways_.capacity() * sizeof(Way) +
                               live_.capacity() * sizeof(Live) + moves_.capacity() * sizeof(Move)) +
           where_.bytes();
}

Measures GraphMessages::measures() const {
    Measures found{tables_->range(), static_cast<double>(skeleton_->cardinalities.size()), tables_->magnitude()};
    found.sums = tables_->operations();
    found.load = load_work();
    found.pass = pass_work();
    for (const auto n : skeleton_->cardinalities) found.few += 4 * tables_->cell() * n;
    return found;
}

double GraphMessages::load_work() const {
    const auto steps = static_cast<double>(skeleton_->steps.size()), states = static_cast<double>(begin_.back());
    const bool wide = skeleton_->width > 1;
    return (wide ? kLoadedWide : kLoaded) * steps + (wide ? kLoadedWideState : kLoadedState) * states +
           kLoadedFar * std::max(steps - kNear, 0.0);
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

// Of the best state, in a step of the list.
GraphMessages::Operands GraphMessages::best_operands(const Move &move) const {
    const Index state = best_state_[move.t];
    if (move.manner == Manner::Add) return {state, state};
    if (move.manner != Manner::Few) return operands(move.t, state);
    return {0, 0, state * move.fresh_score, move.own_counts ? state : 0};
}

// Of a join that is done later.
double GraphMessages::joined_message(Index table, Index state) const {
    const Step &step = skeleton_->steps[table];
    const Operands at = operands(table, state);
    return values_[begin_[step.a] + at.a] + values_[begin_[step.b] + at.b];
}

double GraphMessages::weigh(const Move &move, const Operands &at) {
    const bool joins = move.manner == Manner::JoinedRows;
    const double *a = values_ + move.a + at.a, *g = priced_.data() + move.b + at.shift, *f = move.scores + at.score;
    double best = kNegativeInfinity;
    for (Index v = 0; v < move.choices; v++) {
        const double x = joins ? joined_message(move.from, at.a + v * move.input) : a[v * move.input];
        weighed_[v] = (x + g[v * move.shift]) + f[v * move.score];
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

double GraphMessages::best(std::int64_t *labelling) const {
    std::copy(labelling_.begin(), labelling_.end(), labelling);
    return tables_->evaluate(labelling).score;
}

}  // namespace tallytree::bounds
