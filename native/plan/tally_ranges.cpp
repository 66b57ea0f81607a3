#include "plan/tally_ranges.h"

#include <algorithm>
#include <numeric>

namespace tallytree {

static constexpr Index kShortRange = 3;  // a statistic with fewer tallies gives rows that waste most of a vector

static std::pair<Index, Index> range_of(std::span<const std::int64_t> entries) {
    Index low = entries.empty() ? 0 : entries[0], high = low;
    for (const Index entry : entries) {
        low = std::min(low, entry);
        high = std::max(high, entry);
    }
    return {low, high};
}

TallyRanges::TallyRanges(const Skeleton &skeleton, const LayoutRequest &request)
    : skeleton_(skeleton), request_(request), total_low_(request.caps.size(), 0), total_high_(request.caps.size(), 0) {
    for (std::size_t block = 0; block < request.shifts.size(); block++) {
        const auto &tables = request.shifts[block];
        first_of_.push_back(static_cast<Index>(range_of_.size()));
        for (Index k = 0; k < tables.count; k++)
            range_of_.push_back(range_of(std::span(tables.row(k), static_cast<std::size_t>(tables.size))));
        const auto statistic = skeleton.statistic_of[block];
        for (Index k = 0; k < skeleton.shift_scopes.blocks[block].count; k++) {
            total_low_[statistic] += low(block, k);
            total_high_[statistic] += high(block, k);
        }
    }
}

Index TallyRanges::width(Index statistic) const {
    const Index spread = total_high_[statistic] - total_low_[statistic];
    if (!capped(statistic)) return spread;
    return std::min(spread, std::max<Index>(request_.caps[statistic] - total_low_[statistic], 0));
}

bool TallyRanges::all_short() const {
    for (Index k = 0; k < std::ssize(request_.caps); k++)
        if (width(k) >= kShortRange) return false;
    return true;
}

void TallyRanges::choose_axes(Layout &l, bool rows) const {
    const auto count = static_cast<Index>(request_.caps.size());
    l.rows = rows && count > 0;
    l.permutation.resize(count);
    std::iota(l.permutation.begin(), l.permutation.end(), 0);
    if (l.rows) {
        const auto rank = [&](std::int32_t k) { return std::pair(!capped(k) && width(k) > kLanes, width(k)); };
        auto best = std::max_element(l.permutation.begin(), l.permutation.end(),
                                     [&](auto i, auto j) { return rank(i) < rank(j); });
        std::rotate(best, best + 1, l.permutation.end());
    }
    l.prefix_size = count - (l.rows ? 1 : 0);
    for (auto k : l.permutation) {
        l.user_caps.push_back(request_.caps[k]);
        l.floors.push_back(capped(k) ? total_low_[k] : 0);
        l.caps.push_back(capped(k) ? std::max<Index>(request_.caps[k] - total_low_[k], 0) : kUncapped);
    }
    const auto axis = axis_of(l);
    for (auto ref : skeleton_.constant_shifts) {  // in a capped statistic the total already holds them
        const auto k = skeleton_.statistic_of[ref.block];
        if (!capped(k)) l.floors[axis[k]] += *request_.shifts[ref.block].row(ref.row);
    }
}

std::vector<Index> axis_of(const Layout &layout) {
    std::vector<Index> axis(layout.permutation.size());
    for (std::size_t i = 0; i < axis.size(); i++) axis[layout.permutation[i]] = static_cast<Index>(i);
    return axis;
}

// ---- windows -------------------------------------------------------------------------------------------------------

Windows::Windows(const LayoutRequest &request, const TallyRanges &ranges, const Layout &layout)
    : request_(request), layout_(layout), count_(layout.statistics) {
    window_.low.assign(count_, kSmall);
    window_.high.assign(count_, kLarge);
    if (!request.window.open) find_sums(ranges);
}

void Windows::find_sums(const TallyRanges &ranges) {
    const Skeleton &skeleton = *layout_.skeleton;
    const auto axis = axis_of(layout_);
    const auto n = static_cast<Index>(skeleton.steps.size());
    below_low_.assign(n * count_, 0);
    below_high_.assign(n * count_, 0);
    for (Index t = 0; t < n; t++) {
        const Step &step = skeleton.steps[t];
        for (auto input : {step.a, step.b})
            for (Index i = 0; i < count_ && input >= 0; i++) {
                below_low_[t * count_ + i] += below_low_[input * count_ + i];
                below_high_[t * count_ + i] += below_high_[input * count_ + i];
            }
        for (auto ref : skeleton.shift_refs[t]) {
            const Index i = axis[skeleton.statistic_of[ref.block]];
            const Index low = ranges.low(ref.block, ref.row), high = ranges.high(ref.block, ref.row);
            below_low_[t * count_ + i] += layout_.caps[i] == kUncapped ? low : 0;
            below_high_[t * count_ + i] += layout_.caps[i] == kUncapped ? high : high - low;
        }
    }
}

const Bounds &Windows::of(Index table) {
    if (request_.window.open) return window_;
    window_.low.assign(count_, kSmall);
    window_.high.assign(count_, kLarge);
    for (Index i = 0; i < count_; i++) narrow(table, i);
    return window_;
}

void Windows::narrow(Index table, Index i) {
    const auto k = layout_.permutation[i];
    const Index low = request_.window.low[k], high = request_.window.high[k];
    const Index cap = layout_.caps[i], user_cap = request_.caps[k], floor = layout_.floors[i];
    const Index root = (static_cast<Index>(layout_.skeleton->steps.size()) - 1) * count_ + i, at = table * count_ + i;
    if (user_cap != kUncapped && user_cap < floor) {  // every tally is the cap itself
        if (user_cap < low || user_cap > high) window_.low[i] = kLarge;
        return;
    }
    if (low > kSmall) {
        const bool never = cap != kUncapped && low - floor > cap;  // beyond the cap
        window_.low[i] = never ? kLarge : low - floor - (below_high_[root] - below_high_[at]);
    }
    if (high < kLarge && (cap == kUncapped || high - floor < cap))
        window_.high[i] = high - floor - (below_low_[root] - below_low_[at]);
}

}  // namespace tallytree
