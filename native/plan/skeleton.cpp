// Bucket elimination turned into a program. Each variable, in the given order, joins the messages that
// mention it (two at a time, small ones first, on the smallest scope that holds both) and is then
// eliminated together with the factors and statistics that no earlier step has taken.
#include "plan/skeleton.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "plan/buckets.h"
#include "plan/cost_model.h"
#include "plan/depth_first.h"
#include "plan/local_table.h"

namespace tallytree {
namespace {

constexpr double kTooManyStates = 1e12;
constexpr Index kTooManyVariables = 64;

using Scope = std::vector<std::int32_t>;

class Builder {
  public:
    Builder(std::span<const std::int32_t> cardinalities, std::span<const ScopeBlock> scores,
            std::span<const ScopeBlock> shifts, std::span<const std::int32_t> statistic_of, std::span<const Index> caps,
            std::span<const Index> scales, std::span<const std::int32_t> order, Purpose purpose)
        : scores_(scores),
          shifts_(shifts),
          statistic_of_(statistic_of),
          draft_(purpose == Purpose::Draft),
          plain_(caps.empty() || purpose == Purpose::Passes),
          costs_(caps, scales) {
        s_.cardinalities.assign(cardinalities.begin(), cardinalities.end());
        s_.order.assign(order.begin(), order.end());
        s_.caps.assign(caps.begin(), caps.end());
        s_.statistics = static_cast<Index>(caps.size());
        position_.resize(cardinalities.size());
        for (std::size_t i = 0; i < order.size(); i++) position_[order[i]] = static_cast<std::int32_t>(i);
        mark_.assign(cardinalities.size(), -1);
    }

    Skeleton build(Index expected_steps) {
        if (!draft_) own_scopes(expected_steps);
        score_buckets_ = Buckets(scores_, position_, s_.constant_scores);
        shift_buckets_ = Buckets(shifts_, position_, s_.constant_shifts);
        messages_.resize(s_.order.size());
        for (std::size_t i = 0; i < s_.order.size() && s_.feasible; i++) eliminate(s_.order[i], messages_[i]);
        if (!s_.feasible) {
            s_.cost = std::numeric_limits<double>::infinity();
            return std::move(s_);
        }
        if (roots_.empty()) roots_.push_back(unit(-1));
        join_all(roots_);
        if (draft_) return drafted();
        order_steps();
        s_.step_count = static_cast<Index>(s_.steps.size());
        s_.bytes = bytes_of(s_);
        return std::move(s_);
    }

  private:
    Skeleton drafted() {
        s_.step_count = static_cast<Index>(s_.states.size());
        s_.scopes = {};
        s_.states = {};
        return std::move(s_);
    }

    void own_scopes(Index expected_steps) {
        s_.score_scopes = OwnedScopes(scores_);
        s_.shift_scopes = OwnedScopes(shifts_);
        s_.statistic_of.assign(statistic_of_.begin(), statistic_of_.end());
        scores_ = s_.score_scopes.blocks;
        shifts_ = s_.shift_scopes.blocks;
        const auto variables = static_cast<Index>(s_.order.size());
        make_room(s_, std::max(variables + variables / 16 + 16, expected_steps));  // in chains hardly more than these
    }

    void order_steps() {
        score_buckets_ = shift_buckets_ = {};
        messages_ = {};
        auto cells = costs_.cells(s_.states);
        costs_ = CostModel({}, {});
        order_depth_first(s_, std::move(cells));
    }

    double count_states(std::span<const std::int32_t> scope) const {
        double n = 1;
        for (auto v : scope) n *= s_.cardinalities[v];
        return n;
    }
    void check(std::span<const std::int32_t> scope, double extra = 1) {
        if (static_cast<Index>(scope.size()) > kTooManyVariables || count_states(scope) * extra > kTooManyStates)
            s_.feasible = false;
    }

    // ---- steps ---------------------------------------------------------------------------------------
    std::int32_t push(const Step &step, std::span<const std::int32_t> scope, std::span<const Loop> loops,
                      std::span<const FactorRef> scores, std::span<const FactorRef> shifts) {
        s_.scopes.push_row(scope);
        s_.states.push_back(count_states(scope));
        check(scope);
        if (!draft_) {
            s_.steps.push_back(step);
            s_.kept.push_row(loops);
            s_.score_refs.push_row(scores);
            s_.shift_refs.push_row(shifts);
        }
        return static_cast<std::int32_t>(s_.states.size()) - 1;
    }

    std::int32_t unit(std::int32_t variable) {
        const Step step{.verb = Verb::Unit, .variable = variable};
        const Scope scope = variable < 0 ? Scope{} : Scope{variable};
        costs_.add_table({});
        return push(step, scope, {}, {}, {});
    }

    void join_all(std::vector<std::int32_t> &tables) {
        if (tables.size() < 2) return;
        std::map<Scope, std::vector<std::int32_t>> groups;
        for (auto t : tables) {
            Scope key(s_.scopes[t].begin(), s_.scopes[t].end());
            std::sort(key.begin(), key.end());
            groups[key].push_back(t);
        }
        tables.clear();
        for (auto &[scope, group] : groups) tables.push_back(join_small_first(group));
        while (tables.size() > 1 && s_.feasible) join_cheapest_pair(tables);
    }

    // Tables on one scope, fewest tallies first, as in Huffman's code.
    std::int32_t join_small_first(const std::vector<std::int32_t> &group) {
        using Entry = std::pair<double, std::int32_t>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
        for (auto t : group) queue.push({costs_.tallies(t), t});
        while (queue.size() > 1) {
            const auto a = queue.top().second;
            queue.pop();
            const auto b = queue.top().second;
            queue.pop();
            const auto c = join(a, b);
            queue.push({costs_.tallies(c), c});
        }
        return queue.top().second;
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
    Scope union_of(std::int32_t a, std::int32_t b) {
        if (s_.states[a] < s_.states[b]) std::swap(a, b);
        Scope scope;
        const auto stamp = ++stamp_;
        for (auto v : s_.scopes[a]) mark_[v] = stamp;
        for (auto v : s_.scopes[b])
            if (mark_[v] != stamp) scope.push_back(v);
        scope.insert(scope.end(), s_.scopes[a].begin(), s_.scopes[a].end());
        return scope;
    }

    std::int32_t join(std::int32_t a, std::int32_t b) {
        const Scope scope = union_of(a, b);
        check(scope);
        Step step{.verb = Verb::Join, .a = a, .b = b};
        std::vector<Loop> loops;
        for (auto v : scope) loops.push_back({s_.cardinalities[v], stride(a, v), stride(b, v), 0, 0});
        for (auto v : scope) step.kept_states *= s_.feasible ? s_.cardinalities[v] : 1;
        s_.cost += costs_.join(a, b, count_states(scope));
        s_.pass_operations += count_states(scope);
        const std::int32_t inputs[] = {a, b};
        costs_.add_table(inputs);
        return push(step, scope, loops, {}, {});
    }

    // How many states of table `t` lie between neighbouring states of `v`; 0 where it does not mention v.
    Index stride(std::int32_t t, std::int32_t v) const {
        Index n = 1;
        const auto scope = s_.scopes[t];
        for (std::size_t i = scope.size(); i-- > 0;) {
            if (scope[i] == v) return n;
            n *= s_.cardinalities[scope[i]];
        }
        return 0;
    }

    void eliminate(std::int32_t variable, std::vector<std::int32_t> &messages) {
        const Index bucket = position_[variable];
        s_.degree = std::max(s_.degree, static_cast<Index>(messages.size()) + 1);
        if (messages.empty()) messages.push_back(unit(variable));
        join_all(messages);
        if (!s_.feasible) return;
        const auto a = messages.front();
        auto scores = score_buckets_.left(bucket);
        const auto shifts = shift_buckets_.left(bucket);

        Scope kept, fresh;
        const auto in_a = ++stamp_;
        for (auto v : s_.scopes[a]) mark_[v] = in_a;
        const auto add_fresh = [&](std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs) {
            for (auto ref : refs)
                for (auto v : blocks[ref.block].row(ref.row))
                    if (mark_[v] != in_a) {
                        mark_[v] = in_a;
                        fresh.push_back(v);
                    }
        };
        add_fresh(scores_, scores);
        add_fresh(shifts_, shifts);
        for (auto v : s_.scopes[a])
            if (v != variable) kept.push_back(v);
        if (plain_) passive_last(kept, scores, shifts);
        const auto late = fresh.size() == 1 ? take_along(fresh.front(), scores) : -1;
        push_eliminate(variable, a, kept, fresh, scores, shifts, late);
    }

    // A step that brings in one variable takes a factor over it alone along: it is added to what the step has found,
    // so that the step's other factors need not be summed with it. Returns its place in `scores`.
    std::int32_t take_along(std::int32_t fresh, std::vector<FactorRef> &scores) {
        const auto ref = score_buckets_.take_unary(position_[fresh]);
        if (!ref) return -1;
        scores.push_back(*ref);
        return static_cast<std::int32_t>(scores.size()) - 1;
    }

    // A plain pass runs along the last variables of a table, those that the step's factors do not mention: they
    // come last, and among them those that go last.
    void passive_last(Scope &kept, std::span<const FactorRef> scores, std::span<const FactorRef> shifts) {
        const auto active = ++stamp_;
        for (auto ref : scores)
            for (auto v : scores_[ref.block].row(ref.row)) mark_[v] = active;
        for (auto ref : shifts)
            for (auto v : shifts_[ref.block].row(ref.row)) mark_[v] = active;
        double row = 1;  // states that are passive and last already
        for (std::size_t i = kept.size(); i-- > 0 && mark_[kept[i]] != active;) row *= s_.cardinalities[kept[i]];
        if (row >= 32) return;
        std::stable_sort(kept.begin(), kept.end(), [&](auto u, auto v) {
            const bool au = mark_[u] == active, av = mark_[v] == active;
            return au != av ? au : position_[u] < position_[v];
        });
    }

    void push_eliminate(std::int32_t variable, std::int32_t a, const Scope &kept, const Scope &fresh,
                        std::span<const FactorRef> scores, std::span<const FactorRef> shifts, std::int32_t late) {
        Scope scope(fresh);
        scope.insert(scope.end(), kept.begin(), kept.end());
        Scope whole(scope);
        whole.push_back(variable);
        check(whole);
        s_.width = std::max(s_.width, static_cast<Index>(whole.size()) - 1);
        if (!s_.feasible) return;
        s_.cost += costs_.eliminate(a, count_states(whole), count_states(scope));
        s_.pass_operations += count_states(whole);
        const std::int32_t inputs[] = {a};
        costs_.add_table(inputs);
        for (auto ref : shifts) costs_.add_scope(statistic_of_[ref.block]);
        Step step{.verb = Verb::Eliminate, .a = a, .variable = variable, .late = late};
        std::vector<Loop> loops;
        if (!draft_) lay_out(step, kept, fresh, scores, shifts, loops);
        hand_on(push(step, scope, loops, scores, shifts), scope);
    }

    // The loops of an elimination, and how its factors are walked.
    void lay_out(Step &step, const Scope &kept, const Scope &fresh, std::span<const FactorRef> scores,
                 std::span<const FactorRef> shifts, std::vector<Loop> &loops) {
        const auto a = step.a, variable = step.variable;
        for (auto v : fresh) step.fresh *= s_.cardinalities[v];
        for (auto v : kept) step.kept_states *= s_.cardinalities[v];
        const bool turned = s_.statistics > 0 && lies_turned(scores_, scores, variable, fresh);
        if (turned) step.fresh_score = s_.cardinalities[variable];
        step.shift_has_fresh = mentions_any(shifts_, shifts, fresh);
        const auto score_table = local_table(scores_, scores, kept, variable, fresh, turned);
        const auto shift_table =
            local_table(shifts_, shifts, kept, variable, step.shift_has_fresh ? fresh : Scope{}, false);
        step.score_size = score_table.size();
        step.shift_size = shift_table.size();
        const auto loop = [&](std::int32_t v) {
            return Loop{s_.cardinalities[v], stride(a, v), 0, score_table.stride(v), shift_table.stride(v)};
        };
        for (auto v : kept) loops.push_back(loop(v));
        step.gone = loop(variable);
        for (auto ref : scores) score_table.push_walk(scores_[ref.block].row(ref.row), s_.score_loops);
        for (auto ref : shifts) shift_table.push_walk(shifts_[ref.block].row(ref.row), s_.shift_loops);
    }

    // A message waits for the first of its variables to go.
    void hand_on(std::int32_t table, const Scope &scope) {
        if (scope.empty()) return roots_.push_back(table);
        std::int32_t next = std::numeric_limits<std::int32_t>::max();
        for (auto v : scope) next = std::min(next, position_[v]);
        messages_[next].push_back(table);
    }

    // Laid out [kept variables that the factors mention, eliminated variable, fresh ones], or the last two turned.
    LocalTable local_table(std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs, const Scope &kept,
                           std::int32_t variable, const Scope &fresh, bool turned) {
        const auto used = ++stamp_;
        for (auto ref : refs)
            for (auto v : blocks[ref.block].row(ref.row)) mark_[v] = used;
        LocalTable table(s_.cardinalities);
        if (turned) table.add(variable);
        for (std::size_t i = fresh.size(); i-- > 0;) table.add(fresh[i]);
        if (!turned) table.add(variable);
        for (std::size_t i = kept.size(); i-- > 0;)
            if (mark_[kept[i]] == used) table.add(kept[i]);
        return table;
    }

    std::span<const ScopeBlock> scores_, shifts_;
    std::span<const std::int32_t> statistic_of_;
    bool draft_, plain_;
    Skeleton s_;
    std::vector<std::int32_t> position_;
    std::vector<std::int32_t> mark_;
    std::int32_t stamp_ = 0;
    Buckets score_buckets_, shift_buckets_;
    std::vector<std::vector<std::int32_t>> messages_;  // waiting for the variable at each position
    std::vector<std::int32_t> roots_;
    CostModel costs_;
};

}  // namespace

Skeleton build_skeleton(std::span<const std::int32_t> cardinalities, std::span<const ScopeBlock> scores,
                        std::span<const ScopeBlock> shifts, std::span<const std::int32_t> statistic_of,
                        std::span<const Index> caps, std::span<const Index> scales, std::span<const std::int32_t> order,
                        Purpose purpose, Index expected_steps) {
    return Builder(cardinalities, scores, shifts, statistic_of, caps, scales, order, purpose).build(expected_steps);
}

}  // namespace tallytree
