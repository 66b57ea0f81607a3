#include "plan/local_table.h"

#include <algorithm>

namespace tallytree {

void LocalTable::add(std::int32_t variable) {
    strides_.push_back({variable, size_});
    size_ *= cardinalities_[variable];
}

Index LocalTable::stride(std::int32_t variable) const {
    for (auto [v, stride] : strides_)
        if (v == variable) return stride;
    return 0;
}

void LocalTable::push_walk(std::span<const std::int32_t> scope, Ragged<FactorLoop> &loops) const {
    const Index first = loops.begin.back();
    for (std::size_t d = strides_.size(); d-- > 0;) {  // outermost first
        const auto v = strides_[d].first;
        Index stride = 0, n = 1;
        for (std::size_t x = scope.size(); x-- > 0; n *= cardinalities_[scope[x]])
            if (scope[x] == v) stride = n;
        const Index count = cardinalities_[v];
        if (static_cast<Index>(loops.data.size()) > first && loops.data.back().stride == count * stride)
            loops.data.back() = {loops.data.back().count * count, stride};
        else loops.data.push_back({count, stride});
    }
    loops.close_row();
}

bool lies_turned(std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs, std::int32_t variable,
                 std::span<const std::int32_t> fresh) {
    std::size_t largest = 1;
    bool turned = false;
    for (auto ref : refs) {
        const auto scope = blocks[ref.block].row(ref.row);
        if (scope.size() <= largest || fresh.empty()) continue;
        const auto of_fresh = std::find(scope.begin(), scope.end(), fresh.back());
        if (of_fresh == scope.end()) continue;
        largest = scope.size();
        turned = of_fresh < std::find(scope.begin(), scope.end(), variable);
    }
    return turned;
}

bool mentions_any(std::span<const ScopeBlock> blocks, std::span<const FactorRef> refs,
                  std::span<const std::int32_t> variables) {
    for (auto ref : refs)
        for (auto v : blocks[ref.block].row(ref.row))
            if (std::find(variables.begin(), variables.end(), v) != variables.end()) return true;
    return false;
}

}  // namespace tallytree
