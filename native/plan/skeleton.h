// The skeleton of a plan: the program of steps, which depends only on scopes and cardinalities.
#pragma once

#include <memory>

#include "common.h"

namespace tallytree {

// The last three are for charts: the lexicon's scores of a word, the best of all splits and rules, the best of all
// paths of unary rules.
enum class Verb : std::int32_t { Unit = 0, Join = 1, Eliminate = 2, Word = 3, Combine = 4, Unary = 5 };

// Row `row` of block `block` of the factors (or of the statistics).
struct FactorRef {
    std::int32_t block;
    std::int32_t row;
};

// One loop of a step: how far each operand moves when the variable's state goes up by one.
struct Loop {
    Index count;  // cardinality
    Index a;      // states of the (first) input table
    Index b;      // states of the second input table (join only)
    Index score;  // entries of the local score table (eliminate only)
    Index shift;  // entries of the local shift table (eliminate only)
};

// One loop of a factor over a local table, which is walked front to back; 0 repeats the same entry.
struct FactorLoop {
    Index count;
    Index stride;
};

// Scopes that live as long as the skeleton.
struct OwnedScopes {
    std::vector<std::vector<std::int32_t>> storage;
    std::vector<ScopeBlock> blocks;
    explicit OwnedScopes(std::span<const ScopeBlock> source = {}) {
        for (const auto &block : source) storage.emplace_back(block.data, block.data + block.count * block.arity);
        for (std::size_t i = 0; i < source.size(); i++)
            blocks.push_back({storage[i].data(), source[i].count, source[i].arity});
    }
    OwnedScopes(const OwnedScopes &other) : OwnedScopes(std::span(other.blocks)) {}
    OwnedScopes(OwnedScopes &&) = default;
    OwnedScopes &operator=(OwnedScopes &&) = default;
};

// A step makes table `number of the step`. For `Eliminate`:
//   kept   the loops over the output's variables that the input has; output stride 1 on the last
//   fresh  the number of joint states of the variables that only factors bring in; outermost in the output
//   gone   the loop over the eliminated variable
// The local shift table is laid out [kept.., gone(, fresh)]; the local score table likewise, or [kept.., fresh,
// gone] where its largest factor lies that way round: `fresh_score` is the distance between fresh states.
// The inputs of a `Combine` are the closed tables of all splits of its span; `Unary` has the open one, `a`, and itself.
struct Step {
    Verb verb;
    std::int32_t a = -1, b = -1, variable = -1;
    Index kept_states = 1;  // product over `kept`; for a join, all states of the output
    Index fresh = 1;
    Index fresh_score = 1;
    Index score_size = 0, shift_size = 0;
    bool shift_has_fresh = false;
    std::int32_t late = -1;  // which of its factors is over the fresh states alone, if one is set apart
    Loop gone{1, 0, 0, 0, 0};
    std::int32_t start = 0, width = 0;  // the span of a chart's table
    std::int32_t together = 1;          // steps from this one on that are done at once: spans of one width
};

// What a program is for: tables with tallies; plain passes, whose tables are laid out so that steps run along rows of
// states; or nothing but its cost, so that it has no steps: several orders have drafts, and one of them is kept. That
// of a small model keeps its outline, so that it can be laid out for tables. Linked tables are those with tallies,
// where no two of them count for one statistic: they are joined before the step that adds to it, even if they share no
// variable, so that a statistic is complete when the last of its variables goes.
enum class Purpose : int { Tables = 0, Passes = 1, Draft = 2, Outline = 3, Linked = 4 };

struct ChartShape;
struct Outline;

struct Skeleton {
    std::vector<std::int32_t> cardinalities;
    std::vector<std::int32_t> order;
    OwnedScopes score_scopes, shift_scopes;
    std::vector<std::int32_t> statistic_of;  // per block of shift_scopes
    Index statistics = 0;
    std::vector<Index> caps;  // as the cost model sees them

    std::vector<Step> steps;
    Ragged<std::int32_t> scopes;     // of each step's table, outermost variable first
    std::vector<double> states;      // of each step's table
    Ragged<Loop> kept;               // per step, outermost first
    Ragged<FactorRef> score_refs;    // factors absorbed by each step
    Ragged<FactorRef> shift_refs;    // statistics' factors absorbed by each step
    Ragged<FactorLoop> score_loops;  // per score ref: how to walk it along the local score table
    Ragged<FactorLoop> shift_loops;  // per shift ref
    std::vector<FactorRef> constant_scores, constant_shifts;  // empty scopes
    std::vector<std::int32_t> consumer;                       // the step that uses each table; -1 for the last

    Index width = 0;             // τ: variables in the largest step, less one
    Index degree = 0;            // ν: messages that meet at one variable, and one out
    double cost = 0;             // by the cost model, with unit statistics
    double pass_operations = 0;  // of a plain pass, without tallies
    bool feasible = true;        // false: some table is beyond counting
    Index bytes = 0;             // of all these lists
    Index step_count = 0;        // a draft has this many, and none of them

    std::shared_ptr<const ChartShape> chart;  // what a chart has besides
    std::shared_ptr<Outline> outline;         // of a draft
};

Index bytes_of(const Skeleton &skeleton);

// What a plan for so many variables and factors takes at least, whatever its tables hold: the steps that eliminate the
// variables, and their places in a layout; and of other steps, where it is known how many there are.
double least_plan_bytes(Index variables, Index factors, Index others);

struct PlanShape;

// A program for an order in which variables go. There is room for `expected_steps`; a program may have more.
Skeleton build_skeleton(const std::shared_ptr<const PlanShape> &shape, std::span<const std::int32_t> order,
                        Purpose purpose = Purpose::Tables, Index expected_steps = 0);

// The program for tables that a draft with an outline is of. It takes the outline.
Skeleton lay_out(Skeleton &draft);

}  // namespace tallytree
