#include "plan/shift_kinds.h"

#include <algorithm>

namespace tallytree {
namespace {

constexpr std::size_t kMostKinds = 16;

// In how many ways n steps can choose among d shifts, whatever their order: (n + d - 1 over d - 1).
double multisets(Index n, Index d) {
    const Index few = std::min(n, d - 1);
    double found = 1;
    for (Index i = 1; i <= few && found < kBeyondMemory; i++)
        found *= static_cast<double>(n + d - 1 - few + i) / static_cast<double>(i);
    return found;
}

bool changed_by_one(const std::vector<std::vector<Index>> &shifts, Index axis, std::size_t one) {
    for (std::size_t j = 0; j < shifts.size(); j++)
        if ((shifts[j][axis] != 0) != (j == one)) return false;
    return true;
}

// An axis for each shift that it alone changes, so that different choices have different sums; nothing if one has none.
std::vector<Index> own_axes(const std::vector<std::vector<Index>> &shifts) {
    std::vector<Index> found;
    for (std::size_t i = 0; i < shifts.size(); i++) {
        Index axis = 0;
        while (axis < std::ssize(shifts[i]) && !changed_by_one(shifts, axis, i)) axis++;
        if (axis == std::ssize(shifts[i])) return {};
        found.push_back(axis);
    }
    return found;
}

// How often a shift can be taken, at least and at most, so that its sum from a base on is between the ends.
std::pair<Index, Index> often(Index base, Index shift, std::pair<Index, Index> ends, Index steps) {
    const auto inside = [&](Index n) { return ends.first <= base + n * shift && base + n * shift <= ends.second; };
    Index least = 0, most = steps;
    while (least <= most && !inside(least)) least++;
    while (most > least && !inside(most)) most--;
    return {least, most};
}

}  // namespace

void ShiftKinds::add(Steps &to, std::vector<std::vector<Index>> shifts) {
    std::sort(shifts.begin(), shifts.end());
    shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
    const std::vector<Index> first = shifts[0];
    to.base.resize(first.size());
    for (std::size_t k = 0; k < first.size(); k++) to.base[k] += first[k];
    if (shifts.size() == 1) return;
    shifts.erase(shifts.begin());
    for (auto &shift : shifts)
        for (std::size_t k = 0; k < shift.size(); k++) shift[k] -= first[k];
    const auto ways = static_cast<double>(shifts.size() + 1);
    auto kind = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind &k) { return k.shifts == shifts; });
    if (kind == kinds_.end() && kinds_.size() < kMostKinds) {
        auto own = own_axes(shifts);
        kind = kinds_.insert(kinds_.end(), {std::move(shifts), std::move(own)});
    }
    if (kind == kinds_.end()) {
        to.others = std::min(to.others * ways, kBeyondMemory);
        return;
    }
    to.of_kind.resize(kMostKinds);
    to.of_kind[kind - kinds_.begin()]++;
}

void ShiftKinds::join(Steps &to, const Steps &from) {
    to.others = std::min(to.others * from.others, kBeyondMemory);
    to.of_kind.resize(std::max(to.of_kind.size(), from.of_kind.size()));
    for (std::size_t k = 0; k < from.of_kind.size(); k++) to.of_kind[k] += from.of_kind[k];
    to.base.resize(std::max(to.base.size(), from.base.size()));
    for (std::size_t k = 0; k < from.base.size(); k++) to.base[k] += from.base[k];
}

double ShiftKinds::sums(const Steps &steps) const {
    double found = steps.others;
    for (std::size_t k = 0; k < std::min(steps.of_kind.size(), kinds_.size()); k++)
        found = std::min(found * multisets(steps.of_kind[k], std::ssize(kinds_[k].shifts) + 1), kBeyondMemory);
    return found;
}

double ShiftKinds::least_sums(const Steps &steps, const Ends &ends, Index left_out) const {
    double found = 0;
    for (std::size_t k = 0; k < std::min(steps.of_kind.size(), kinds_.size()); k++) {
        const Index count = std::min(steps.of_kind[k], kMostCounted);
        if (count > 0 && !kinds_[k].own.empty())
            found = std::max(found, between(kinds_[k], count, steps.base, ends, left_out));
    }
    return found;
}

// The number of ways to take each shift within its limits, at most so many in all.
double ShiftKinds::between(const Kind &kind, Index steps, const std::vector<Index> &base, const Ends &ends,
                           Index left_out) {
    for (Index k = 0; k < std::ssize(ends); k++) {
        if (std::find(kind.own.begin(), kind.own.end(), k) != kind.own.end()) continue;
        const auto changes = [k](const auto &shift) { return shift[k] != 0; };
        if (std::any_of(kind.shifts.begin(), kind.shifts.end(), changes)) return 0;
        if (base[k] < ends[k].first || base[k] > ends[k].second) return 0;
    }
    std::vector<double> ways(steps + 1), before(steps + 2);
    ways[0] = 1;
    for (std::size_t i = 0; i < kind.own.size(); i++) {
        const Index axis = kind.own[i];
        auto [least, most] = often(base[axis], kind.shifts[i][axis], ends[axis], steps);
        if (least > most) return 0;
        if (axis == left_out) most = least;
        for (Index n = 0; n <= steps; n++) before[n + 1] = before[n] + ways[n];
        for (Index n = 0; n <= steps; n++)
            ways[n] = n < least ? 0 : before[n - least + 1] - before[std::max<Index>(n - most, 0)];
    }
    double found = 0;
    for (const double some : ways) found += some;
    return found;
}

}  // namespace tallytree
