#include "plan/depth_first.h"

#include <algorithm>

namespace tallytree {
namespace {

using Numbers = std::vector<std::int32_t>;

template <class T>
Ragged<T> permuted(const Ragged<T> &rows, const Numbers &order) {
    Ragged<T> result;
    result.data.reserve(rows.data.size());
    result.begin.reserve(rows.begin.size());
    for (auto t : order) result.push_row(rows[t]);
    return result;
}

// In place, cycle by cycle: of long lists there is no room for another.
template <class T>
void permute(std::vector<T> &list, const Numbers &order) {
    std::vector<bool> placed(list.size(), false);
    for (std::size_t first = 0; first < list.size(); first++) {
        if (placed[first]) continue;
        const T kept = list[first];
        std::size_t to = first;
        for (auto from = static_cast<std::size_t>(order[to]); from != first; from = order[to]) {
            list[to] = list[from];
            placed[to] = true;
            to = from;
        }
        list[to] = kept;
        placed[to] = true;
    }
}

// Rows that belong to the references of steps.
Ragged<FactorLoop> permuted_refs(const Ragged<FactorLoop> &rows, const Ragged<FactorRef> &refs, const Numbers &order) {
    Ragged<FactorLoop> result;
    result.data.reserve(rows.data.size());
    result.begin.reserve(rows.begin.size());
    for (auto t : order)
        for (Index i = refs.begin[t]; i < refs.begin[t + 1]; i++) result.push_row(rows[i]);
    return result;
}

// Step i is to be the one that was number order[i].
void renumber(Skeleton &s, const Numbers &order) {
    Numbers number(order.size());
    for (std::size_t i = 0; i < order.size(); i++) number[order[i]] = static_cast<std::int32_t>(i);
    for (auto &step : s.steps)
        for (auto *input : {&step.a, &step.b})
            if (*input >= 0) *input = number[*input];
    permute(s.steps, order);
    permute(s.states, order);
    s.scopes = permuted(s.scopes, order);
    s.kept = permuted(s.kept, order);
    s.score_loops = permuted_refs(s.score_loops, s.score_refs, order);
    s.shift_loops = permuted_refs(s.shift_loops, s.shift_refs, order);
    s.score_refs = permuted(s.score_refs, order);
    s.shift_refs = permuted(s.shift_refs, order);
}

}  // namespace

void order_depth_first(Skeleton &skeleton, std::vector<double> work) {
    for (std::size_t t = 0; t < work.size(); t++)
        for (auto input : {skeleton.steps[t].a, skeleton.steps[t].b})
            if (input >= 0) work[t] += work[input];
    Numbers order, stack{static_cast<std::int32_t>(work.size()) - 1};
    while (!stack.empty()) {  // the root first, then turned round
        const auto t = stack.back();
        stack.pop_back();
        order.push_back(t);
        auto first = skeleton.steps[t].a, second = skeleton.steps[t].b;
        if (second >= 0 && work[second] > work[first]) std::swap(first, second);
        if (first >= 0) stack.push_back(first);
        if (second >= 0) stack.push_back(second);
    }
    std::reverse(order.begin(), order.end());
    if (!std::is_sorted(order.begin(), order.end())) renumber(skeleton, order);
    skeleton.consumer.assign(skeleton.steps.size(), -1);
    for (std::size_t t = 0; t < skeleton.steps.size(); t++)
        for (auto input : {skeleton.steps[t].a, skeleton.steps[t].b})
            if (input >= 0) skeleton.consumer[input] = static_cast<std::int32_t>(t);
}

}  // namespace tallytree
