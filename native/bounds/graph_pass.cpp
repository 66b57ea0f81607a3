// A plain pass over the program of any graph: the list of its steps, the messages, and the best labelling.
#include "bounds/graph_messages.h"
#include "tables/upward.h"

namespace tallytree::bounds {

namespace {

constexpr std::int32_t kDeep = 64;  // steps after which messages are brought back to about 0
constexpr double kSmall = 64;       // states of a table that is read in no time

// Whether a join adds up tables of the same states in the same order, as in trees.
bool is_aligned(std::span<const Loop> loops) {
    return loops.empty() || (loops.size() == 1 && loops[0].a == 1 && loops[0].b == 1);
}

}  // namespace

// ---- the list of steps ---------------------------------------------------------------------------------------------

GraphMessages::Manner GraphMessages::manner_of(Index t) const {
    const Step &step = skeleton_->steps[t];
    const auto loops = tables_->kept(t);
    const bool long_rows = is_long(loops), choppy = is_choppy(loops, step.kept_states);
    if (step.verb == Verb::Join)
        return is_aligned(loops) ? Manner::Add
               : long_rows       ? Manner::AddRows
               : choppy          ? Manner::AddListed
                                 : Manner::AddLoops;
    if (step.kept_states == 1) {
        const bool along = step.gone.a == 1 || step.gone.count == 1;
        return along && step.gone.count <= kFewChoices ? Manner::Few : Manner::Fresh;
    }
    if (joins_rows(t)) return Manner::JoinedRows;
    return long_rows ? Manner::Rows : choppy ? Manner::Listed : Manner::Loops;
}

GraphMessages::Move GraphMessages::move_of(Index t) const {
    const Step &step = skeleton_->steps[t];
    const bool joins = step.verb == Verb::Join;
    return {.a = begin_[step.a],
            .b = joins ? begin_[step.b] : 0,
            .out = begin_[t],
            .t = static_cast<std::int32_t>(t),
            .from = step.a,
            .other = step.b,
            .variable = step.variable,
            .choices = static_cast<std::int32_t>(step.gone.count),
            .states = static_cast<std::int32_t>(begin_[t + 1] - begin_[t]),
            .input = static_cast<std::int32_t>(step.gone.a),
            .score = static_cast<std::int32_t>(step.gone.score),
            .fresh_score = static_cast<std::int32_t>(step.fresh_score),
            .shift = static_cast<std::int32_t>(step.gone.shift),
            .manner = manner_of(t),
            .own_counts = step.shift_has_fresh,
            .deep = false};
}

void GraphMessages::list_moves() {
    const auto order = order_of_moves();
    std::vector<std::int32_t> depth(skeleton_->steps.size(), 0);
    moves_.clear();
    moves_.reserve(order.size());
    const auto later = [&](Index t) {  // whether a join is
        const Index consumer = skeleton_->consumer[t];
        return skeleton_->steps[t].verb == Verb::Join && consumer >= 0 && joins_rows(consumer);
    };
    for (const Index t : order) {
        const Step &step = skeleton_->steps[t];
        moves_.push_back(move_of(t));
        depth[t] = depth[step.a] + (step.verb == Verb::Join ? depth[step.b] : 1);
        if (later(t)) moves_.back().manner = Manner::AddLater;
        moves_.back().deep = depth[t] > kDeep && moves_.back().manner != Manner::AddLater;
        if (moves_.back().deep) depth[t] = 0;
    }
}

// The steps that do something. Where tables are small, a step waits for its inputs rather than for memory. So steps
// that do not wait for each other come one after the other, and among them those that are done alike.
std::vector<std::int32_t> GraphMessages::order_of_moves() const {
    const auto &steps = skeleton_->steps;
    const auto size = static_cast<std::int32_t>(steps.size());
    const bool small = std::ranges::none_of(skeleton_->states, [](double states) { return states > kSmall; });
    std::vector<std::int32_t> group(size, 0);  // by levels, of eliminations and of joins
    std::vector<Index> begin(1, 0);            // of each group in the list
    for (std::int32_t t = 0; t < size; t++) {
        if (steps[t].verb == Verb::Unit) continue;
        if (small) {
            const auto below = std::max(group[steps[t].a] / 2, steps[t].b >= 0 ? group[steps[t].b] / 2 : 0);
            group[t] = 2 * (below + 1) + (steps[t].b >= 0 ? 1 : 0);
        }
        const auto at = static_cast<std::size_t>(group[t]);
        if (begin.size() < at + 2) begin.resize(at + 2, 0);
        begin[at + 1]++;
    }
    for (std::size_t i = 1; i < begin.size(); i++) begin[i] += begin[i - 1];
    std::vector<std::int32_t> order(begin.back());
    for (std::int32_t t = 0; t < size; t++)
        if (steps[t].verb != Verb::Unit) order[begin[group[t]]++] = t;
    return order;
}

// What a step of a pass takes, in units of work, with a look at it on the way back: inner loops, and sums in them.
// Fitted to the passes of random questions, most of which take 0.8 to 1.4 times as long.
double GraphMessages::work_of(const Move &move) const {
    const auto loops = tables_->kept(move.t);
    const auto states = static_cast<double>(move.states);
    const double sums = states * static_cast<double>(move.choices);
    const double rows = loops.empty() ? 1 : states / static_cast<double>(loops.back().count);
    const double pairs = rows * static_cast<double>((move.choices + 1) / 2);  // of choices along rows
    switch (move.manner) {
        case Manner::Few:
            return 13 + 1.65 * sums;
        case Manner::Fresh:
            return 20 + (move.own_counts ? 30 * states : 30) + sums;
        case Manner::Rows:
            return 300 + 15 * pairs + 0.15 * sums;
        case Manner::JoinedRows:
            return 300 + 30 * pairs + 0.3 * sums;
        case Manner::Listed:
            return 50 + 12 * pairs + 0.2 * sums;
        case Manner::Loops:
            return 45 + 9 * pairs + 0.7 * sums;
        case Manner::Add:
            return 9 + 0.5 * states;
        case Manner::AddRows:
            return 30 + 2 * rows + 0.65 * states;
        case Manner::AddListed:
            return 30 + 0.5 * states;
        case Manner::AddLoops:
            return 30 + 2 * rows + states;
        case Manner::AddLater:
            return 0;
    }
    return 0;
}

// The size of a value is at most that of the messages that it is made from and of what its step adds. So what a step
// adds counts once for each rounding of its own value, and of all values made from it until a message is brought back.
void GraphMessages::weigh_slips() {
    constexpr double kJoin = 2, kBack = 2;  // roundings
    const auto &tables = *tables_;
    roundings_.assign(skeleton_->steps.size() + 1,
                      0);  // of all values that are made from that of a step, itself included
    score_slips_ = 0;
    count_slips_.assign(tables.statistics(), 0);
    deep_slips_.clear();
    for (const Move &move : std::views::reverse(moves_)) {
        const Index consumer = skeleton_->consumer[move.t];
        const double later = consumer < 0 ? 0 : roundings_[consumer];
        const bool joins = move.other >= 0;
        double &all = roundings_[move.t] = joins ? kJoin : tables[move.t].roundings;
        all += move.deep ? kBack : later;
        if (move.deep) deep_slips_.push_back(later);
        if (joins) continue;
        score_slips_ += all * tables[move.t].largest;
        for (Index p = 0; p < tables.statistics(); p++) count_slips_[p] += all * tables.reach(move.t, p);
    }
    std::ranges::reverse(deep_slips_);
}

// ---- messages ------------------------------------------------------------------------------------------------------

Pass GraphMessages::pass(const Prices &prices, Meter &meter) {
    constexpr Index kOften = 4096;
    current_ = (current_ + 1) % kept_.size();
    if (kept_.size() > 1 && kept_[current_].there && kept_[current_].prices == held_)
        current_ = (current_ + 1) % kept_.size();
    use(prices);
    taken_ = {};
    double slips = score_slips_;
    for (Index p = 0; p < tables_->statistics(); p++) slips += std::abs(prices[p]) * count_slips_[p];
    auto deep_slips = deep_slips_.begin();
    Index done = 0;
    const Move *const end = moves_.data() + moves_.size();
    for (const Move &move : moves_) {
        if (constexpr Index kAhead = 6; end - &move > kAhead) {  // tables may be larger than the cache
            const Move &later = *(&move + kAhead);
            __builtin_prefetch(later.scores);
            __builtin_prefetch(values_ + later.a);
        }
        run(move);
        if (move.deep) slips += *deep_slips++ * normalise(move.t);
        done += Index{move.states} * move.choices;
        if (done < kOften) continue;
        meter.spend(static_cast<double>(std::exchange(done, 0)));
    }
    meter.spend(static_cast<double>(done));
    taken_.add(values_[begin_.back() - 1]);
    taken_.add(tables_->constant());
    taken_.add(paid(prices, tables_->constant_counts()));
    Pass found{prices, taken_.total(), Tally(tables_->statistics())};
    if (found.most != kNegativeInfinity) found.tally = find_best();
    found.tolerance = kUnit * (slips + 16 * (std::abs(found.most) + tables_->range().reach(prices)));
    return found;
}

inline void GraphMessages::run(const Move &move) {
    switch (move.manner) {
        case Manner::Few:
            if (move.choices == 2) return eliminate_few<2>(move);
            if (move.choices == 3) return eliminate_few<3>(move);
            if (move.choices == 4) return eliminate_few<4>(move);
            return eliminate_few<0>(move);
        case Manner::Fresh:
            return eliminate_fresh(move.t);
        case Manner::Rows:
            return eliminate_rows(move.t);
        case Manner::JoinedRows:
            return eliminate_joined_rows(move.t);
        case Manner::Listed:
            return eliminate_listed(move.t);
        case Manner::Loops:
            return eliminate(move.t);
        case Manner::Add:
            return add(move);
        case Manner::AddRows:
            return join_rows(move.t);
        case Manner::AddListed:
            return join_listed(move.t);
        case Manner::AddLoops:
            return join(move.t);
        case Manner::AddLater:
            return;
    }
}

// out[fresh] = late[fresh] + max over v of (a[v] + λ·g) + f, where nothing is kept, as in trees; which choice is the
// best is noted on the way. The number of choices may be known to the compiler.
template <int choices>
inline void GraphMessages::eliminate_few(const Move &move) {
    const Index count = choices > 0 ? choices : move.choices;
    const double *a = values_ + move.a, *g = priced_.data() + move.b, *f = move.scores;
    double *out = values_ + move.out, x[choices > 0 ? choices : kFewChoices];
    std::uint8_t *from = from_ + move.out;
    for (Index fresh = 0; fresh < move.states; fresh++, f += move.fresh_score) {
        if (fresh == 0 || move.own_counts)
            for (Index v = 0; v < count; v++) x[v] = a[v] + g[v * move.shift + (move.own_counts ? fresh : 0)];
        double best = kNegativeInfinity;
        int chosen = 0;
        for (Index v = 0; v < count; v++) {
            const double y = x[v] + f[v * move.score];
            chosen = y > best ? static_cast<int>(v) : chosen;
            best = y > best ? y : best;
        }
        out[fresh] = move.late ? best + move.late[fresh] : best;
        from[fresh] = static_cast<std::uint8_t>(chosen);
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

// out[fresh, kept] = late[fresh] + max over v of (a[kept, v] + λ·g) + f, in this order of additions everywhere.
void GraphMessages::eliminate(Index t) {
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    const auto loops = tables_->kept(t);
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

inline void GraphMessages::add(const Move &move) {
    const double *a = values_ + move.a, *b = values_ + move.b;
    double *out = values_ + move.out;
    for (Index k = 0; k < move.states; k++) out[k] = a[k] + b[k];
}

void GraphMessages::join(Index t) {
    const Step &step = skeleton_->steps[t];
    const double *a = values_ + begin_[step.a], *b = values_ + begin_[step.b];
    double *out = values_ + begin_[t];
    Odometer at(tables_->kept(t));
    for (Index k = 0; k < step.kept_states; k++, at.next()) out[k] = a[at.a] + b[at.b];
}

// Brings a message back to about 0; returns the size of its values then.
double GraphMessages::normalise(Index t) {
    double *from = values_ + begin_[t], *to = values_ + begin_[t + 1];
    const auto [least, most] = kernels_.ends(from, to - from);
    if (most == kNegativeInfinity) return 0;
    for (double *x = from; x < to; x++) *x -= most;
    taken_.add(most);
    return most - least;
}

// From the last table down, always the first of the best states.
Tally GraphMessages::find_best() {
    Tally tally = tables_->constant_counts();
    const Index statistics = tables_->statistics();
    for (const Move &move : std::views::reverse(moves_)) {
        const Operands at = best_operands(move);
        if (move.other >= 0) {
            best_state_[move.from] = at.a;
            best_state_[move.other] = at.b;
            continue;
        }
        const bool few = move.manner == Manner::Few;
        const Index v = few ? from_[move.out + best_state_[move.t]] : first_best(move, at);
        labelling_[move.variable] = v;
        best_state_[move.from] = at.a + v * move.input;
        const Index place = at.shift + v * move.shift;
        for (Index p = 0; move.counts && p < statistics; p++) tally[p] += move.counts[p * move.apart + place];
    }
    return tally;
}

Index GraphMessages::first_best(const Move &move, const Operands &at) {
    const double best = weigh(move, at);
    return std::find(weighed_.begin(), weighed_.begin() + move.choices, best) - weighed_.begin();
}

}  // namespace tallytree::bounds
