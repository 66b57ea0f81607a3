#include "plan/depth_first.h"

namespace tallytree {

std::vector<std::int32_t> depth_first(std::span<const OutlineStep> steps, std::span<double> work) {
    for (std::size_t t = 0; t < work.size(); t++)
        for (auto input : {steps[t].a, steps[t].b})
            if (input >= 0) work[t] += work[input];
    // The root is first to be taken from the stack, and last to run.
    std::vector<std::int32_t> order(work.size()), stack{static_cast<std::int32_t>(work.size()) - 1};
    for (std::size_t at = order.size(); !stack.empty();) {
        const auto t = stack.back();
        stack.pop_back();
        order[--at] = t;
        auto first = steps[t].a, second = steps[t].b;
        if (second >= 0 && work[second] > work[first]) std::swap(first, second);
        if (first >= 0) stack.push_back(first);
        if (second >= 0) stack.push_back(second);
    }
    return order;
}

}  // namespace tallytree
