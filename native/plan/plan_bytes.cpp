// What plans take in memory, besides their tables.
#include "plan/layout.h"

namespace tallytree {

Index bytes_of(const Skeleton &s) {
    Index bytes = bytes_of(s.cardinalities) + bytes_of(s.order) + bytes_of(s.statistic_of) + bytes_of(s.steps) +
                  bytes_of(s.scopes) + bytes_of(s.states) + bytes_of(s.kept) + bytes_of(s.score_refs) +
                  bytes_of(s.shift_refs) + bytes_of(s.score_loops) + bytes_of(s.shift_loops) +
                  bytes_of(s.constant_scores) + bytes_of(s.constant_shifts) + bytes_of(s.consumer);
    for (const auto *scopes : {&s.score_scopes, &s.shift_scopes})
        for (const auto &list : scopes->storage) bytes += bytes_of(list);
    return bytes;
}

double least_plan_bytes(Index variables, Index factors, Index others) {
    constexpr std::size_t lists = sizeof(Step) + 7 * sizeof(Index) + sizeof(std::int32_t);  // of a step
    constexpr std::size_t places = sizeof(TableLayout) + sizeof(StepLayout) + 8 * sizeof(Index) + sizeof(std::int32_t);
    constexpr std::size_t refs = sizeof(FactorRef) + sizeof(Index) + sizeof(FactorLoop) + sizeof(std::int32_t);
    constexpr std::size_t bare = sizeof(Step) + sizeof(TableLayout) + sizeof(StepLayout) + 5 * sizeof(Index);
    return static_cast<double>(variables) * static_cast<double>(lists + places) +
           static_cast<double>(others) * static_cast<double>(bare) +
           static_cast<double>(factors) * static_cast<double>(refs);
}

}  // namespace tallytree
