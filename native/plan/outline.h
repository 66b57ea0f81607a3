// What the steps of a program do, before they are laid out.
#pragma once

#include "plan/plan_shape.h"

namespace tallytree {

struct OutlineStep {
    Verb verb;
    std::int32_t a = -1, b = -1, variable = -1, late = -1;  // as in `Step`
    std::int32_t fresh = 0;                                 // the first variables of its scope, brought in by factors
};

// All lists are by step, in the order in which variables go. A draft has no steps and factors.
struct Outline {
    std::vector<OutlineStep> steps;
    Ragged<std::int32_t> scopes;
    std::vector<double> states, cells;  // cells: by the cost model
    Ragged<FactorRef> score_refs, shift_refs;
    Index width = 0, degree = 0;
    double cost = 0, pass_operations = 0;
    bool feasible = true;
    std::shared_ptr<const PlanShape> shape;  // of an outline that is kept
};

// Keeps the lists of an outline for the next ones of this thread: those in new memory take longer to write.
void recycle(Outline &&outline);

// There is room for `expected_steps`, so that long lists need not be copied while they grow.
Outline outline_of(const PlanShape &shape, std::span<const std::int32_t> order, Purpose purpose, Index expected_steps);

}  // namespace tallytree
