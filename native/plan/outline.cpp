// Bucket elimination. Each variable, in the given order, joins the messages that mention it (two at a time, small ones
// first, on the smallest scope that holds both) and is then eliminated together with the factors and statistics that no
// earlier step has taken.
#include "plan/outline.h"

#include <algorithm>
#include <map>

#include "plan/cost_model.h"
#include "plan/waiting.h"

namespace tallytree {
namespace {

constexpr double kTooManyStates = 1e12;
constexpr Index kTooManyVariables = 64;

using Scope = std::vector<std::int32_t>;

// The lists of outlines and of eliminations are kept, unless they are long.
constexpr std::size_t kSpare = 2, kMany = 50'000;
thread_local std::vector<Outline> spare_outlines;

template <class T>
void clear(Ragged<T> &rows) {
    rows.begin.assign(1, 0);
    rows.data.clear();
}

Outline spare_outline() {
    if (spare_outlines.empty()) return {};
    Outline spare = std::move(spare_outlines.back());
    spare_outlines.pop_back();
    return spare;
}

class Elimination {
  public:
    Outline run(const PlanShape &shape, std::span<const std::int32_t> order, Purpose purpose, Index expected_steps) {
        begin(shape, order, purpose, expected_steps);
        for (std::size_t i = 0; i < order.size() && o_.feasible; i++) {
            messages_.take(i, received_);
            if (linked_) std::erase_if(received_, [&](auto t) { return called(t); });
            eliminate(order[i], received_);
        }
        if (!o_.feasible) {
            o_.cost = o_.pass_operations = std::numeric_limits<double>::infinity();
            return std::move(o_);
        }
        if (linked_) std::erase_if(roots_, [&](auto t) { return called(t); });
        if (roots_.empty()) roots_.push_back(unit(-1));
        join_all(roots_);
        if (!draft_) costs_.cells(o_.states, o_.cells);
        return std::move(o_);
    }

  private:
    void begin(const PlanShape &shape, std::span<const std::int32_t> order, Purpose purpose, Index expected_steps) {
        const std::size_t variables = order.size();
        // Each variable is eliminated, and of a tree half of them are leaves, each with a table to begin with and a
        // join.
        const auto steps = expected_steps > 0 ? static_cast<std::size_t>(expected_steps) : 2 * variables + 16;
        shape_ = &shape;
        draft_ = purpose == Purpose::Draft;
        plain_ = shape.caps.empty() || purpose == Purpose::Passes;
        linked_ = purpose == Purpose::Linked;
        holder_.assign(linked_ ? shape.caps.size() : 0, -1);
        called_.clear();
        position_.resize(variables);
        for (std::size_t i = 0; i < variables; i++) position_[order[i]] = static_cast<std::int32_t>(i);
        mark_.assign(variables, -1);
        stamp_ = 0;
        untaken_scores_.begin(shape.scores);
        untaken_shifts_.begin(shape.shifts);
        messages_.begin(variables, draft_ ? 0 : steps);
        costs_.begin(shape, draft_ ? 0 : steps);
        roots_.clear();
        o_ = purpose == Purpose::Outline ? spare_outline() : Outline();
        if (!draft_) make_room(steps);
    }

    void make_room(std::size_t steps) {
        o_.steps.reserve(steps);
        o_.states.reserve(steps);
        for (auto *begin : {&o_.scopes.begin, &o_.score_refs.begin, &o_.shift_refs.begin}) begin->reserve(steps + 1);
        o_.scopes.data.reserve(steps);
        o_.score_refs.data.reserve(shape_->scores.count());
        o_.shift_refs.data.reserve(shape_->shifts.count());
    }

    double count_states(std::span<const std::int32_t> scope) const {
        double n = 1;
        for (auto v : scope) n *= shape_->cardinalities[v];
        return n;
    }
    void check(std::span<const std::int32_t> scope, double states) {
        if (static_cast<Index>(scope.size()) > kTooManyVariables || states > kTooManyStates) o_.feasible = false;
    }

    // ---- steps ---------------------------------------------------------------------------------------
    std::int32_t push(const OutlineStep &step, std::span<const std::int32_t> scope, double states,
                      std::span<const FactorRef> scores = {}, std::span<const FactorRef> shifts = {}) {
        o_.scopes.push_row(scope);
        o_.states.push_back(states);
        check(scope, states);
        if (!draft_) {
            o_.steps.push_back(step);
            o_.score_refs.push_row(scores);
            o_.shift_refs.push_row(shifts);
        }
        return static_cast<std::int32_t>(o_.states.size()) - 1;
    }

    std::int32_t unit(std::int32_t variable) {
        const std::span<const std::int32_t> scope(&variable, static_cast<std::size_t>(variable >= 0));
        costs_.add_table({}, {});
        return push({.verb = Verb::Unit, .variable = variable}, scope, count_states(scope));
    }

    void join_all(std::vector<std::int32_t> &tables) {
        if (tables.size() < 2) return;
        const auto same = [&](std::int32_t t) { return std::ranges::equal(o_.scopes[t], o_.scopes[tables.front()]); };
        if (std::ranges::all_of(tables, same)) {
            tables.assign(1, join_small_first(tables));
            return;
        }
        std::map<Scope, std::vector<std::int32_t>> groups;
        for (auto t : tables) {
            Scope key(o_.scopes[t].begin(), o_.scopes[t].end());
            std::sort(key.begin(), key.end());
            groups[key].push_back(t);
        }
        tables.clear();
        for (auto &[scope, group] : groups) tables.push_back(join_small_first(group));
        while (tables.size() > 1 && o_.feasible) join_cheapest_pair(tables);
    }

    // Tables on one scope, fewest tallies first, as in Huffman's code.
    std::int32_t join_small_first(const std::vector<std::int32_t> &group) {
        const auto less = [&](std::int32_t a, std::int32_t b) {
            return std::pair(costs_.tallies(a), a) < std::pair(costs_.tallies(b), b);
        };
        if (group.size() == 2) return less(group[1], group[0]) ? join(group[1], group[0]) : join(group[0], group[1]);
        heap_.clear();
        for (auto t : group) heap_.emplace_back(costs_.tallies(t), t);
        std::ranges::make_heap(heap_, std::greater<>());
        const auto pop = [&] {
            std::ranges::pop_heap(heap_, std::greater<>());
            const auto table = heap_.back().second;
            heap_.pop_back();
            return table;
        };
        while (heap_.size() > 1) {
            const auto a = pop(), b = pop(), c = join(a, b);
            heap_.emplace_back(costs_.tallies(c), c);
            std::ranges::push_heap(heap_, std::greater<>());
        }
        return pop();
    }

    void join_cheapest_pair(std::vector<std::int32_t> &tables) {
        std::size_t bi = 0, bj = 1;
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < tables.size(); i++)
            for (std::size_t j = i + 1; j < tables.size(); j++) {
                const double price = count_states(union_of(tables[i], tables[j])) * costs_.tallies(tables[i]) *
                                     costs_.tallies(tables[j]);
                if (price < best) {
                    best = price;
                    bi = i;
                    bj = j;
                }
            }
        const auto c = join(tables[bi], tables[bj]);
        tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(bj));
        tables[bi] = c;
    }

    // The larger table's order, what the other adds in front.
    const Scope &union_of(std::int32_t a, std::int32_t b) {
        if (o_.states[a] < o_.states[b]) std::swap(a, b);
        Scope &scope = scope_;
        scope.clear();
        const auto stamp = ++stamp_;
        for (auto v : o_.scopes[a]) mark_[v] = stamp;
        for (auto v : o_.scopes[b])
            if (mark_[v] != stamp) scope.push_back(v);
        scope.insert(scope.end(), o_.scopes[a].begin(), o_.scopes[a].end());
        return scope;
    }

    std::int32_t join(std::int32_t a, std::int32_t b) {
        const Scope &scope = union_of(a, b);
        const double states = count_states(scope);
        o_.cost += costs_.join(a, b, states);
        o_.pass_operations += states;
        const std::int32_t inputs[] = {a, b};
        costs_.add_table(inputs, {});
        return push({.verb = Verb::Join, .a = a, .b = b}, scope, states);
    }

    void eliminate(std::int32_t variable, std::vector<std::int32_t> &messages) {
        o_.degree = std::max(o_.degree, static_cast<Index>(messages.size()) + 1);
        if (messages.empty()) messages.push_back(unit(variable));
        untaken_scores_.take(variable, scores_);
        untaken_shifts_.take(variable, shifts_);
        if (linked_) call_in(messages);
        join_all(messages);
        if (!o_.feasible) return;
        const auto a = messages.front();

        scope_.clear();  // what factors bring in, then what is kept
        const auto in_a = ++stamp_;
        for (auto v : o_.scopes[a]) mark_[v] = in_a;
        const auto add_fresh = [&](std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs) {
            for (auto ref : refs)
                for (auto v : blocks[ref.block].row(ref.row))
                    if (mark_[v] != in_a) {
                        mark_[v] = in_a;
                        scope_.push_back(v);
                    }
        };
        add_fresh(shape_->scores.blocks(), scores_);
        add_fresh(shape_->shifts.blocks(), shifts_);
        const auto fresh = scope_.size();
        for (auto v : o_.scopes[a])
            if (v != variable) scope_.push_back(v);
        if (plain_) passive_last(std::span(scope_).subspan(fresh));
        OutlineStep step{.verb = Verb::Eliminate, .a = a, .variable = variable};
        step.fresh = static_cast<std::int32_t>(fresh);
        if (fresh == 1) step.late = take_along(scope_.front());
        push_eliminate(step);
    }

    bool called(std::int32_t table) const { return static_cast<std::size_t>(table) < called_.size() && called_[table]; }

    // The tables that count for what this step counts, wherever they wait.
    void call_in(std::vector<std::int32_t> &messages) {
        called_.resize(o_.states.size(), false);
        for (auto ref : shifts_) {
            const auto table = holder_[shape_->statistic_of[ref.block]];
            if (table < 0 || std::ranges::find(messages, table) != messages.end()) continue;
            messages.push_back(table);
            called_[table] = true;
        }
    }

    // A step that brings in one variable takes a factor over it alone along: it is added to what the step has found,
    // so that the step's other factors need not be summed with it. Returns its place among them.
    std::int32_t take_along(std::int32_t fresh) {
        const auto ref = untaken_scores_.take_unary(fresh);
        if (!ref) return -1;
        scores_.push_back(*ref);
        return static_cast<std::int32_t>(scores_.size()) - 1;
    }

    // A plain pass runs along the last variables of a table, those that the step's factors do not mention: they
    // come last, and among them those that go last.
    void passive_last(std::span<std::int32_t> kept) {
        if (kept.size() < 2) return;
        const auto active = ++stamp_;
        for (auto ref : scores_)
            for (auto v : shape_->scores.blocks()[ref.block].row(ref.row)) mark_[v] = active;
        for (auto ref : shifts_)
            for (auto v : shape_->shifts.blocks()[ref.block].row(ref.row)) mark_[v] = active;
        double row = 1;  // states that are passive and last already
        for (std::size_t i = kept.size(); i-- > 0 && mark_[kept[i]] != active;) row *= shape_->cardinalities[kept[i]];
        if (row >= 32) return;
        std::stable_sort(kept.begin(), kept.end(), [&](auto u, auto v) {
            const bool au = mark_[u] == active, av = mark_[v] == active;
            return au != av ? au : position_[u] < position_[v];
        });
    }

    void push_eliminate(const OutlineStep &step) {
        const double states = count_states(scope_), all = states * shape_->cardinalities[step.variable];
        if (static_cast<Index>(scope_.size()) >= kTooManyVariables || all > kTooManyStates) o_.feasible = false;
        o_.width = std::max(o_.width, static_cast<Index>(scope_.size()));
        if (!o_.feasible) return;
        o_.cost += costs_.eliminate(step.a, all, states);
        o_.pass_operations += all;
        const std::int32_t inputs[] = {step.a};
        costs_.add_table(inputs, shifts_);
        const auto table = push(step, scope_, states, scores_, shifts_);
        for (std::size_t k = 0; k < holder_.size(); k++)
            if (costs_.counts_for(table, static_cast<Index>(k))) holder_[k] = table;
        hand_on(table);
    }

    // A message waits for the first of its variables to go.
    void hand_on(std::int32_t table) {
        if (scope_.empty()) return roots_.push_back(table);
        std::int32_t next = std::numeric_limits<std::int32_t>::max();
        for (auto v : scope_) next = std::min(next, position_[v]);
        messages_.hand(table, next);
    }

    const PlanShape *shape_ = nullptr;
    bool draft_ = false, plain_ = false, linked_ = false;
    Outline o_;
    std::vector<std::int32_t> position_;
    std::vector<std::int32_t> mark_;
    std::int32_t stamp_ = 0;
    Untaken untaken_scores_, untaken_shifts_;
    Waiting messages_;
    std::vector<std::int32_t> received_, roots_;
    std::vector<std::int32_t> holder_;  // by statistic: the table that counts for it, of a linked program
    std::vector<bool> called_;          // by table: joined before any of its variables goes
    CostModel costs_;
    // Of the step at hand.
    Scope scope_;
    std::vector<FactorRef> scores_, shifts_;
    std::vector<std::pair<double, std::int32_t>> heap_;
};

}  // namespace

void recycle(Outline &&outline) {
    if (spare_outlines.size() == kSpare) return;
    Outline &spare = spare_outlines.emplace_back();
    spare.steps = std::move(outline.steps);
    spare.states = std::move(outline.states);
    spare.cells = std::move(outline.cells);
    spare.scopes = std::move(outline.scopes);
    spare.score_refs = std::move(outline.score_refs);
    spare.shift_refs = std::move(outline.shift_refs);
    spare.steps.clear();
    spare.states.clear();
    clear(spare.scopes);
    clear(spare.score_refs);
    clear(spare.shift_refs);
}

Outline outline_of(const PlanShape &shape, std::span<const std::int32_t> order, Purpose purpose, Index expected_steps) {
    thread_local std::unique_ptr<Elimination> kept;  // its lists, for the next one
    if (!kept) kept = std::make_unique<Elimination>();
    Outline found = kept->run(shape, order, purpose, expected_steps);
    if (order.size() > kMany) kept.reset();
    return found;
}

}  // namespace tallytree
