// A program from its outline: steps in the order in which they run, with the loops of each.
#include "plan/skeleton.h"

#include "plan/depth_first.h"
#include "plan/local_table.h"
#include "plan/outline.h"

namespace tallytree {
namespace {

using Variables = std::span<const std::int32_t>;

template <class T>
Ragged<T> permuted(Ragged<T> rows, std::span<const std::int32_t> order, bool same) {
    if (same) return rows;
    Ragged<T> result;
    result.data.reserve(rows.data.size());
    result.begin.reserve(rows.begin.size());
    for (auto t : order) result.push_row(rows[t]);
    return result;
}

class Builder {
  public:
    Builder(Skeleton &skeleton, Outline &outline)
        : s_(skeleton), o_(outline), mark_(skeleton.cardinalities.size(), -1) {}

    void run() {
        const auto order = depth_first(o_.steps, std::move(o_.cells));
        std::vector<std::int32_t> number(order.size());
        for (std::size_t i = 0; i < order.size(); i++) number[order[i]] = static_cast<std::int32_t>(i);
        make_room();
        for (std::size_t i = 0; i < order.size(); i++) {
            Step step = laid_out(order[i]);
            for (auto *input : {&step.a, &step.b})
                if (*input >= 0) {
                    *input = number[*input];
                    s_.consumer[*input] = static_cast<std::int32_t>(i);
                }
            s_.steps.push_back(step);
            s_.kept.close_row();
        }
        const bool same = std::is_sorted(order.begin(), order.end());
        o_.steps = {};
        for (std::size_t i = 0; i < order.size() && !same; i++) s_.states.push_back(o_.states[order[i]]);
        if (same) s_.states = std::move(o_.states);
        s_.scopes = permuted(std::move(o_.scopes), order, same);
        s_.score_refs = permuted(std::move(o_.score_refs), order, same);
        s_.shift_refs = permuted(std::move(o_.shift_refs), order, same);
    }

  private:
    void make_room() {
        s_.consumer.assign(o_.steps.size(), -1);
        s_.steps.reserve(o_.steps.size());
        s_.kept.begin.reserve(o_.steps.size() + 1);
        s_.score_loops.begin.reserve(o_.score_refs.data.size() + 1);
        s_.shift_loops.begin.reserve(o_.shift_refs.data.size() + 1);
    }

    // Its inputs are those of the outline; its loops over what is kept are appended.
    Step laid_out(std::int32_t t) {
        const OutlineStep &known = o_.steps[t];
        Step step{.verb = known.verb, .a = known.a, .b = known.b, .variable = known.variable, .late = known.late};
        if (known.verb == Verb::Join) lay_out_join(step, o_.scopes[t]);
        if (known.verb == Verb::Eliminate)
            lay_out(step, o_.scopes[t].subspan(known.fresh), o_.scopes[t].first(known.fresh), o_.score_refs[t],
                    o_.shift_refs[t]);
        return step;
    }

    void lay_out_join(Step &step, Variables scope) {
        for (auto v : scope) {
            const Index count = s_.cardinalities[v];
            s_.kept.data.push_back({count, stride(step.a, v), stride(step.b, v), 0, 0});
            step.kept_states *= count;
        }
    }

    // The loops of an elimination, and how its factors are walked.
    void lay_out(Step &step, Variables kept, Variables fresh, std::span<const FactorRef> scores,
                 std::span<const FactorRef> shifts) {
        const auto &score_blocks = s_.score_scopes.blocks, &shift_blocks = s_.shift_scopes.blocks;
        const auto a = step.a, variable = step.variable;
        for (auto v : fresh) step.fresh *= s_.cardinalities[v];
        for (auto v : kept) step.kept_states *= s_.cardinalities[v];
        const bool turned = s_.statistics > 0 && lies_turned(score_blocks, scores, variable, fresh);
        if (turned) step.fresh_score = s_.cardinalities[variable];
        step.shift_has_fresh = mentions_any(shift_blocks, shifts, fresh);
        const auto &score_table = local_table(score_table_, score_blocks, scores, kept, variable, fresh, turned);
        const auto &shift_table = local_table(shift_table_, shift_blocks, shifts, kept, variable,
                                              step.shift_has_fresh ? fresh : Variables{}, false);
        step.score_size = score_table.size();
        step.shift_size = shift_table.size();
        const auto loop = [&](std::int32_t v) {
            return Loop{s_.cardinalities[v], stride(a, v), 0, score_table.stride(v), shift_table.stride(v)};
        };
        for (auto v : kept) s_.kept.data.push_back(loop(v));
        step.gone = loop(variable);
        for (auto ref : scores) score_table.push_walk(score_blocks[ref.block].row(ref.row), s_.score_loops);
        for (auto ref : shifts) shift_table.push_walk(shift_blocks[ref.block].row(ref.row), s_.shift_loops);
    }

    // How many states of table `t` lie between neighbouring states of `v`; 0 where it does not mention v.
    Index stride(std::int32_t t, std::int32_t v) const {
        Index n = 1;
        const auto scope = o_.scopes[t];
        for (std::size_t i = scope.size(); i-- > 0;) {
            if (scope[i] == v) return n;
            n *= s_.cardinalities[scope[i]];
        }
        return 0;
    }

    // Laid out [kept variables that the factors mention, eliminated variable, fresh ones], or the last two turned.
    const LocalTable &local_table(LocalTable &table, std::span<const ScopeBlock> blocks,
                                  std::span<const FactorRef> refs, Variables kept, std::int32_t variable,
                                  Variables fresh, bool turned) {
        const auto used = ++stamp_;
        if (!kept.empty())
            for (auto ref : refs)
                for (auto v : blocks[ref.block].row(ref.row)) mark_[v] = used;
        table.begin(s_.cardinalities);
        if (turned) table.add(variable);
        for (std::size_t i = fresh.size(); i-- > 0;) table.add(fresh[i]);
        if (!turned) table.add(variable);
        for (std::size_t i = kept.size(); i-- > 0;)
            if (mark_[kept[i]] == used) table.add(kept[i]);
        return table;
    }

    Skeleton &s_;
    Outline &o_;
    std::vector<std::int32_t> mark_;
    std::int32_t stamp_ = 0;
    LocalTable score_table_, shift_table_;
};

// What a draft has, too.
Skeleton drafted(const PlanShape &shape, Outline &outline) {
    Skeleton s;
    s.cardinalities.assign(shape.cardinalities.begin(), shape.cardinalities.end());
    s.order.assign(shape.order.begin(), shape.order.end());
    s.caps.assign(shape.caps.begin(), shape.caps.end());
    s.statistics = static_cast<Index>(shape.caps.size());
    s.constant_scores = std::move(outline.constant_scores);
    s.constant_shifts = std::move(outline.constant_shifts);
    s.width = outline.width;
    s.degree = outline.degree;
    s.cost = outline.cost;
    s.pass_operations = outline.pass_operations;
    s.feasible = outline.feasible;
    s.step_count = s.feasible ? static_cast<Index>(outline.states.size()) : 0;
    return s;
}

// Whether it is a chain as it stands, of which single variables are counted.
bool is_plain_chain(const PlanShape &shape) {
    const auto variables = static_cast<Index>(shape.cardinalities.size());
    const auto single = [&](const ScopeBlock &block) { return is_chain_block(block, variables, 1); };
    return shape.scores.size() == 2 && single(shape.scores[0]) && is_chain_block(shape.scores[1], variables, 2) &&
           std::ranges::all_of(shape.shifts, single);
}

}  // namespace

Skeleton build_skeleton(std::span<const std::int32_t> cardinalities, std::span<const ScopeBlock> scores,
                        std::span<const ScopeBlock> shifts, std::span<const std::int32_t> statistic_of,
                        std::span<const Index> caps, std::span<const Index> scales, std::span<const std::int32_t> order,
                        Purpose purpose, Index expected_steps) {
    const PlanShape shape{cardinalities, scores, shifts, statistic_of, caps, scales, order};
    Outline outline = outline_of(shape, purpose, expected_steps);
    Skeleton s = drafted(shape, outline);
    const bool draft = purpose == Purpose::Draft;
    if (draft && !is_plain_chain(shape)) return s;
    s.score_scopes = OwnedScopes(scores);
    s.shift_scopes = OwnedScopes(shifts);
    s.statistic_of.assign(statistic_of.begin(), statistic_of.end());
    if (draft) s.bytes = bytes_of(s);  // a search by bounds needs no more of a chain than its scopes
    if (draft || !s.feasible) return s;
    if (purpose == Purpose::Outline) {
        s.outline = std::make_shared<Outline>(std::move(outline));
        return s;
    }
    Builder(s, outline).run();
    s.bytes = bytes_of(s);
    return s;
}

Skeleton lay_out(const Skeleton &draft) {
    Outline outline = *draft.outline;
    const PlanShape shape{draft.cardinalities, {}, {}, {}, draft.caps, {}, draft.order};
    Skeleton s = drafted(shape, outline);
    s.constant_scores = draft.constant_scores;
    s.constant_shifts = draft.constant_shifts;
    s.score_scopes = OwnedScopes(draft.score_scopes.blocks);
    s.shift_scopes = OwnedScopes(draft.shift_scopes.blocks);
    s.statistic_of = draft.statistic_of;
    Builder(s, outline).run();
    s.bytes = bytes_of(s);
    return s;
}

}  // namespace tallytree
