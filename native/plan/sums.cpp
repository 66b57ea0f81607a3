#include "plan/sums.h"

#include <algorithm>

namespace tallytree {

// ---- sums ------------------------------------------------------------------------------------------------------

namespace {

constexpr double kLargestKey = 4e18;
constexpr Index kMostMerged = Index{1} << 24;  // pairs
constexpr double kMergedBytes = 40;            // a pair takes 32 while lists are merged, and 8 in the plan

}  // namespace

StretchSums::StretchSums(bool rows, std::vector<Index> caps, bool clipped)
    : rows_(rows),
      clipped_(clipped),
      prefix_size_(static_cast<Index>(caps.size()) - (rows ? 1 : 0)),
      caps_(std::move(caps)) {
    const bool uncapped = std::all_of(caps_.begin(), caps_.end(), [](Index cap) { return cap == kUncapped; });
    plain_ = !clipped && uncapped;
    in_order_ = plain_ || (uncapped && !rows && prefix_size_ == 1);
}

void StretchSums::add(StretchView a, StretchView b, const Bounds &w, double room, Meter &meter,
                      const std::function<void(Index)> &guard) {
    const Index pairs = a.count * b.count;
    prefixes_.clear();
    merged_.clear();
    meter.spend(static_cast<double>(pairs) * 20 + 100);
    const double volume = prefix_size_ ? prefix_box(a, b, w) : 0;
    const bool dense = volume <= std::max<double>(64, 4.0 * static_cast<double>(pairs));
    const bool few = pairs <= kMostMerged && (pairs <= 1024 || static_cast<double>(pairs) * kMergedBytes <= room);
    merging_ = !dense && in_order_ && volume < kLargestKey && few;
    if (merging_) return add_merged(a, b, guard);
    if (!few) merged_ = scratch_ = {};  // memory is short
    target_.assign(pairs, -1);
    if (prefix_size_ == 0) add_to_one(a, b, w);
    else if (dense) add_dense(a, b, w, static_cast<Index>(volume));
    else add_hashed(a, b, w, meter, guard);
}

void StretchSums::reset_hulls(Index count) {
    hull_low_.assign(count, kLarge);
    hull_high_.assign(count, kSmall);
    hull_natural_.assign(count, kSmall);
}

// Widens hull `id` by the interval that two stretches give; false where the window leaves nothing of it.
bool StretchSums::offer(Index id, StretchView a, Index ra, StretchView b, Index rb, const Bounds &w) {
    Index low = a.low[ra] + b.low[rb];
    Index high = low + a.length[ra] + b.length[rb] - 2, natural = high;
    if (rows_) {
        const Index i = prefix_size_, cap = caps_[i];
        if (low > cap) {  // all of it is folded, from the cap on: see `landing`
            low = cap;
            natural = cap + a.length[ra] + b.length[rb] - 1;
        }
        high = std::min(high, cap);
        pruned_ += low < w.low[i] || high > w.high[i];
        low = std::max(low, w.low[i]);
        high = std::min(high, w.high[i]);
        if (low > high) return false;
        if (high < cap) natural = high;
    }
    hull_low_[id] = std::min(hull_low_[id], low);
    hull_high_[id] = std::max(hull_high_[id], high);
    hull_natural_[id] = std::max(hull_natural_[id], natural);
    return true;
}

// One statistic along the stretch, or none at all: there is one stretch at most.
void StretchSums::add_to_one(StretchView a, StretchView b, const Bounds &w) {
    reset_hulls(1);
    for (Index ra = 0; ra < a.count; ra++)
        for (Index rb = 0; rb < b.count; rb++)
            if (offer(0, a, ra, b, rb, w)) target_[ra * b.count + rb] = 0;
    stretches_ = hull_low_[0] == kLarge ? 0 : 1;
}

// ---- dense: an array over the box of prefixes --------------------------------------------------------------------

double StretchSums::prefix_box(StretchView a, StretchView b, const Bounds &w) {
    const Index q = prefix_size_;
    box_low_.assign(q, 0);
    box_extent_.assign(q, 0);
    low_b_.assign(q, 0);
    double volume = a.count && b.count ? 1 : 0;
    const auto range = [&](StretchView v, Index i) {
        Index lo = kLarge, hi = kSmall;
        for (Index r = 0; r < v.count; r++) {
            lo = std::min(lo, v.prefix[r * q + i]);
            hi = std::max(hi, v.prefix[r * q + i]);
        }
        return std::pair(lo, hi);
    };
    for (Index i = 0; i < q && volume > 0; i++) {
        const auto [alo, ahi] = range(a, i);
        const auto [blo, bhi] = range(b, i);
        low_b_[i] = blo;
        box_low_[i] = std::max(capped_sum(i, alo, blo), w.low[i]);
        const Index high = std::min(capped_sum(i, ahi, bhi), w.high[i]);
        box_extent_[i] = std::max<Index>(high - box_low_[i] + 1, 0);
        volume *= static_cast<double>(box_extent_[i]);
    }
    return volume;
}

void StretchSums::add_dense(StretchView a, StretchView b, const Bounds &w, Index volume) {
    reset_hulls(volume);
    if (plain_) add_plainly(a, b);
    else add_checked(a, b, w);
    number_dense(volume);
}

// Without caps and windows sums are plain, and so is the place of a sum of prefixes. Each operand counts from its own
// lowest prefix, so that no place is beyond the box: what overflows is in no order.
void StretchSums::place_prefixes(StretchView a, StretchView b) {
    const Index q = prefix_size_;
    const auto place = [&](const Index *prefix, bool of_b) {
        Index id = 0;
        for (Index i = 0; i < q; i++)
            id = id * box_extent_[i] + prefix[i] - (of_b ? low_b_[i] : box_low_[i] - low_b_[i]);
        return id;
    };
    place_a_.resize(a.count);
    place_b_.resize(b.count);
    for (Index ra = 0; ra < a.count; ra++) place_a_[ra] = place(a.prefix + ra * q, false);
    for (Index rb = 0; rb < b.count; rb++) place_b_[rb] = place(b.prefix + rb * q, true);
}

void StretchSums::add_plainly(StretchView a, StretchView b) {
    place_prefixes(a, b);
    for (Index ra = 0; ra < a.count; ra++)
        for (Index rb = 0; rb < b.count; rb++) {
            const Index id = place_a_[ra] + place_b_[rb], bottom = a.low[ra] + b.low[rb];
            hull_low_[id] = std::min(hull_low_[id], bottom);
            hull_high_[id] = std::max(hull_high_[id], bottom + a.length[ra] + b.length[rb] - 2);
            target_[ra * b.count + rb] = static_cast<std::int32_t>(id);
        }
    hull_natural_ = hull_high_;
}

void StretchSums::add_checked(StretchView a, StretchView b, const Bounds &w) {
    const Index q = prefix_size_;
    for (Index ra = 0; ra < a.count; ra++)
        for (Index rb = 0; rb < b.count; rb++) {
            Index id = 0;
            bool inside = true;
            for (Index i = 0; i < q; i++) {
                const Index at = capped_sum(i, a.prefix[ra * q + i], b.prefix[rb * q + i]) - box_low_[i];
                inside &= at >= 0 && at < box_extent_[i];
                id = id * box_extent_[i] + at;
            }
            if (!inside) pruned_++;
            else if (offer(id, a, ra, b, rb, w)) target_[ra * b.count + rb] = static_cast<std::int32_t>(id);
        }
}

// Numbers the prefixes that were reached; the box is walked in lexicographic order.
void StretchSums::number_dense(Index volume) {
    const Index q = prefix_size_;
    rank_.assign(volume, -1);
    prefixes_.resize(std::count_if(hull_low_.begin(), hull_low_.end(), [](Index low) { return low != kLarge; }) * q);
    stretches_ = 0;
    for (Index id = 0; id < volume; id++) {
        if (hull_low_[id] == kLarge) continue;
        rank_[id] = static_cast<std::int32_t>(stretches_);
        hull_low_[stretches_] = hull_low_[id];
        hull_high_[stretches_] = hull_high_[id];
        hull_natural_[stretches_] = hull_natural_[id];
        Index *prefix = prefixes_.data() + stretches_++ * q;
        Index rest = id;
        for (Index i = q; i-- > 1; rest /= box_extent_[i]) prefix[i] = box_low_[i] + rest % box_extent_[i];
        prefix[0] = box_low_[0] + rest;
    }
    renumber_targets();
}

void StretchSums::renumber_targets() {
    for (auto &id : target_)
        if (id >= 0) id = rank_[id];
}

// ---- merged: the box is too large for what is in it, but a place in it is still one number -----------------------

void StretchSums::add_merged(StretchView a, StretchView b, const std::function<void(Index)> &guard) {
    place_prefixes(a, b);
    merge_sums(place_a_, place_b_, merged_, scratch_);
    if (clipped_) drop_outside();
    reset_hulls(0);
    const Index q = prefix_size_;
    Index last = -1;
    stretches_ = 0;
    for (PairSum &sum : merged_) {
        const Index bottom = a.low[sum.a] + b.low[sum.b], top = bottom + a.length[sum.a] + b.length[sum.b] - 2;
        if (sum.key != last) {
            last = sum.key;
            if (++stretches_ % 1024 == 0) guard(stretches_);
            hull_low_.push_back(bottom);
            hull_high_.push_back(top);
            for (Index i = 0; i < q; i++) prefixes_.push_back(a.prefix[sum.a * q + i] + b.prefix[sum.b * q + i]);
        } else {
            hull_low_.back() = std::min(hull_low_.back(), bottom);
            hull_high_.back() = std::max(hull_high_.back(), top);
        }
        sum.key = stretches_ - 1;
    }
    hull_natural_ = hull_high_;
}

// One axis alone: its places go beyond the box at both ends.
void StretchSums::drop_outside() {
    const auto outside = [&](const PairSum &sum) { return sum.key < 0 || sum.key >= box_extent_[0]; };
    pruned_ += static_cast<Index>(std::erase_if(merged_, outside));
}

// ---- hashed: with caps or windows, or too many numbers -----------------------------------------------------------

void StretchSums::add_hashed(StretchView a, StretchView b, const Bounds &w, Meter &meter,
                             const std::function<void(Index)> &guard) {
    const Index q = prefix_size_;
    PrefixSet set(q, a.count + b.count);
    reset_hulls(0);
    std::vector<Index> sum(q);
    const auto inside = [&] {
        for (Index i = 0; i < q; i++)
            if (sum[i] < w.low[i] || sum[i] > w.high[i]) return false;
        return true;
    };
    for (Index ra = 0; ra < a.count; ra++) {
        meter.spend(static_cast<double>(b.count * (20 + 4 * q)));
        for (Index rb = 0; rb < b.count; rb++) {
            const Index *pa = a.prefix + ra * q, *pb = b.prefix + rb * q;
            for (Index i = 0; i < q; i++) sum[i] = capped_sum(i, pa[i], pb[i]);
            if (clipped_ && !inside()) {
                pruned_++;
                continue;
            }
            const auto id = set.insert(sum.data());
            if (set.count() > static_cast<Index>(hull_low_.size())) {
                hull_low_.push_back(kLarge);
                hull_high_.push_back(kSmall);
                hull_natural_.push_back(kSmall);
                if (set.count() % 1024 == 0) guard(set.count());
            }
            if (offer(id, a, ra, b, rb, w)) target_[ra * b.count + rb] = id;
        }
    }
    number_hashed(set);
}

void StretchSums::number_hashed(const PrefixSet &set) {
    const Index q = prefix_size_;
    std::vector<std::int32_t> sorted;
    for (Index id = 0; id < set.count(); id++)
        if (hull_low_[id] != kLarge) sorted.push_back(static_cast<std::int32_t>(id));
    std::sort(sorted.begin(), sorted.end(),
              [&](auto x, auto y) { return std::lexicographical_compare(set[x], set[x] + q, set[y], set[y] + q); });
    rank_.assign(set.count(), -1);
    const auto low = hull_low_, high = hull_high_, natural = hull_natural_;
    stretches_ = 0;
    for (auto id : sorted) {
        rank_[id] = static_cast<std::int32_t>(stretches_);
        prefixes_.insert(prefixes_.end(), set[id], set[id] + q);
        hull_low_[stretches_] = low[id];
        hull_high_[stretches_] = high[id];
        hull_natural_[stretches_] = natural[id];
        stretches_++;
    }
    renumber_targets();
}

}  // namespace tallytree
