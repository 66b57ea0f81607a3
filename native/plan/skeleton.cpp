// A program from its outline: steps in the order in which they run, with the loops of each.
#include "plan/skeleton.h"

#include "plan/depth_first.h"
#include "plan/local_table.h"
#include "plan/outline.h"

namespace tallytree {
namespace {

using Variables = std::span<const std::int32_t>;

class Builder {
  public:
    Builder(Skeleton &skeleton, Outline &outline)
        : s_(skeleton), o_(outline), mark_(skeleton.cardinalities.size(), -1) {}

    void run() {
        const auto order = depth_first(o_.steps, o_.cells);
        std::vector<std::int32_t> number(order.size());
        for (std::size_t i = 0; i < order.size(); i++) number[order[i]] = static_cast<std::int32_t>(i);
        const bool taken = !o_.shape && std::is_sorted(order.begin(), order.end());  // the lists are as they will be
        make_room(taken);
        for (std::size_t i = 0; i < order.size(); i++) {
            Step step = laid_out(order[i]);
            for (auto *input : {&step.a, &step.b})
                if (*input >= 0) {
                    *input = number[*input];
                    s_.consumer[*input] = static_cast<std::int32_t>(i);
                }
            s_.steps.push_back(step);
            s_.kept.close_row();
            if (!taken) copy(order[i]);
        }
        if (taken) take_lists();
    }

  private:
    void make_room(bool taken) {
        const std::size_t steps = o_.steps.size(), scores = o_.score_refs.data.size(),
                          shifts = o_.shift_refs.data.size(), scoped = o_.scopes.data.size();
        s_.consumer.assign(steps, -1);
        s_.steps.reserve(steps);
        s_.kept.begin.reserve(steps + 1);
        make_room(s_.score_loops, scores, 2 * scores);
        make_room(s_.shift_loops, shifts, shifts);
        if (taken) return;
        s_.states.reserve(steps);
        make_room(s_.scopes, steps, scoped);
        make_room(s_.score_refs, steps, scores);
        make_room(s_.shift_refs, steps, shifts);
    }
    template <class T>
    static void make_room(Ragged<T> &rows, std::size_t count, std::size_t entries) {
        rows.begin.reserve(count + 1);
        rows.data.reserve(entries);
    }

    void copy(std::int32_t t) {
        s_.states.push_back(o_.states[t]);
        s_.scopes.push_row(o_.scopes[t]);
        s_.score_refs.push_row(o_.score_refs[t]);
        s_.shift_refs.push_row(o_.shift_refs[t]);
    }
    void take_lists() {
        s_.states = std::move(o_.states);
        s_.scopes = std::move(o_.scopes);
        s_.score_refs = std::move(o_.score_refs);
        s_.shift_refs = std::move(o_.shift_refs);
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
Skeleton drafted(const PlanShape &shape, std::vector<std::int32_t> order, const Outline &outline) {
    Skeleton s;
    s.cardinalities = shape.cardinalities;
    s.order = std::move(order);
    s.caps = shape.caps;
    s.statistics = std::ssize(shape.caps);
    s.constant_scores = shape.scores.constants();
    s.constant_shifts = shape.shifts.constants();
    s.width = outline.width;
    s.degree = outline.degree;
    s.cost = outline.cost;
    s.pass_operations = outline.pass_operations;
    s.feasible = outline.feasible;
    s.step_count = s.feasible ? std::ssize(outline.states) : 0;
    return s;
}

void add_scopes(Skeleton &s, const PlanShape &shape) {
    s.score_scopes = OwnedScopes(shape.score_scopes);
    s.shift_scopes = OwnedScopes(shape.shift_scopes);
    s.statistic_of = shape.statistic_of;
}

// Whether it is a chain as it stands, of which single variables are counted.
bool is_plain_chain(const PlanShape &shape) {
    const auto variables = std::ssize(shape.cardinalities);
    const auto scores = shape.scores.blocks();
    const auto single = [&](const ScopeBlock &block) { return is_chain_block(block, variables, 1); };
    return scores.size() == 2 && single(scores[0]) && is_chain_block(scores[1], variables, 2) &&
           std::ranges::all_of(shape.shifts.blocks(), single);
}

}  // namespace

Skeleton build_skeleton(const std::shared_ptr<const PlanShape> &shape, std::span<const std::int32_t> order,
                        Purpose purpose, Index expected_steps) {
    Outline outline = outline_of(*shape, order, purpose, expected_steps);
    Skeleton s = drafted(*shape, {order.begin(), order.end()}, outline);
    if (purpose == Purpose::Outline) {
        const std::shared_ptr<Outline> kept(new Outline(std::move(outline)), [](Outline *dropped) {
            recycle(std::move(*dropped));
            delete dropped;
        });
        kept->shape = shape;
        if (s.feasible) s.outline = kept;
        return s;
    }
    const bool draft = purpose == Purpose::Draft;
    if (draft && !is_plain_chain(*shape)) return s;
    add_scopes(s, *shape);
    if (draft || s.feasible) {
        if (!draft) Builder(s, outline).run();
        s.bytes = bytes_of(s);  // a search by bounds needs no more of a chain than its scopes
    }
    return s;
}

Skeleton lay_out(Skeleton &draft) {
    const auto outline = std::move(draft.outline);
    Skeleton s = drafted(*outline->shape, draft.order, *outline);
    add_scopes(s, *outline->shape);
    Builder(s, *outline).run();
    s.bytes = bytes_of(s);
    return s;
}

}  // namespace tallytree
