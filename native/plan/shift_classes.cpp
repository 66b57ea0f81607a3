#include "plan/shift_classes.h"

#include <algorithm>

namespace tallytree {

// Inline, for the few numbers that a tally has.
static bool same(const Index *x, const Index *y, Index n) {
    for (Index i = 0; i < n; i++)
        if (x[i] != y[i]) return false;
    return true;
}

ShiftClasses::ShiftClasses(const LayoutRequest &request, const TallyRanges &ranges, Layout &layout)
    : request_(request),
      ranges_(ranges),
      layout_(layout),
      skeleton_(*layout.skeleton),
      count_(layout.statistics),
      axis_(axis_of(layout)) {}

void ShiftClasses::make(std::int32_t t) {
    const Step &step = skeleton_.steps[t];
    Layout &l = layout_;
    auto &s = l.steps[t];
    s.class_of = static_cast<Index>(l.class_of.size());
    s.class_prefix = static_cast<Index>(l.class_prefix.size());
    s.class_shift = static_cast<Index>(l.class_shift.size());
    const auto refs = skeleton_.shift_refs[t];
    sums_.assign(refs.empty() ? count_ : step.shift_size * count_, 0);
    Index ref_index = skeleton_.shift_refs.begin[t];
    for (auto ref : refs) add_shift(ref, skeleton_.shift_loops[ref_index++]);
    if (!refs.empty()) cap_sums(step.shift_size);
    l.class_of.resize(s.class_of + step.shift_size, 0);
    s.classes = refs.empty() ? 1 : number(step.shift_size, l.class_of.data() + s.class_of);
    const Index *distinct = refs.empty() ? sums_.data() : distinct_.data();
    for (Index d = 0; d < s.classes; d++) {
        const Index *shift = distinct + d * count_;
        l.class_prefix.insert(l.class_prefix.end(), shift, shift + l.prefix_size);
        l.class_shift.push_back(l.rows ? shift[l.prefix_size] : 0);
    }
    note_gaps(std::span(l.class_shift.data() + s.class_shift, static_cast<std::size_t>(s.classes)));
}

void ShiftClasses::add_shift(FactorRef ref, std::span<const FactorLoop> loops) {
    const auto *table = request_.shifts[ref.block].row(ref.row);
    const Index i = axis_[skeleton_.statistic_of[ref.block]];
    const Index floor = layout_.caps[i] == kUncapped ? 0 : ranges_.low(ref.block, ref.row);
    Index *out = sums_.data() + i;
    walk_factor(loops, [&, n = count_](Index at, Index size, Index stride) {
        const Index minimum = floor, each = n;  // not to be looked up again after every entry
        const auto *entry = table + at;
        for (Index x = 0; x < size; x++, out += each, entry += stride) *out += *entry - minimum;
    });
}

// No sum is below zero where a statistic is capped, so that a shift beyond the cap does what the cap does: rows need no
// room for it.
void ShiftClasses::cap_sums(Index entries) {
    for (Index i = 0; i < count_; i++)
        for (Index e = 0; layout_.caps[i] != kUncapped && e < entries; e++)
            sums_[e * count_ + i] = std::min(sums_[e * count_ + i], layout_.caps[i]);
}

// Numbers the distinct rows of sums_ into `numbers`; the rows go to distinct_.
Index ShiftClasses::number(Index entries, std::int32_t *numbers) {
    constexpr Index kFew = 12;
    const Index n = count_;
    distinct_.clear();
    Index found = 0;
    for (Index e = 0; e < entries; e++) {
        Index d = 0;
        if (e > 0 && same(&sums_[e * n], &sums_[(e - 1) * n], n)) {  // often they come in a row
            numbers[e] = numbers[e - 1];
            continue;
        }
        while (d < found && !same(&sums_[e * n], &distinct_[d * n], n)) d++;
        if (d == found && ++found > kFew) return number_many(entries, numbers);
        if (d == found - 1 && static_cast<Index>(distinct_.size()) < found * n)
            distinct_.insert(distinct_.end(), sums_.begin() + e * n, sums_.begin() + (e + 1) * n);
        numbers[e] = static_cast<std::int32_t>(d);
    }
    return found;
}

Index ShiftClasses::number_many(Index entries, std::int32_t *numbers) {
    PrefixSet set(count_, entries);
    for (Index e = 0; e < entries; e++) numbers[e] = set.insert(&sums_[e * count_]);
    distinct_.assign(set[0], set[0] + set.count() * count_);
    return set.count();
}

void ShiftClasses::note_gaps(std::span<const Index> shifts) {
    if (!layout_.rows || gaps_ || shifts.size() < 2) return;
    sorted_.assign(shifts.begin(), shifts.end());
    std::sort(sorted_.begin(), sorted_.end());
    for (std::size_t i = 1; i < sorted_.size(); i++) gaps_ |= sorted_[i] - sorted_[i - 1] > 1;
}

}  // namespace tallytree
