// Sums of stretches where prefixes are consecutive numbers.
#include <algorithm>
#include <numeric>

#include "plan/layout_builder.h"

namespace tallytree {

// Without caps and windows, and where the prefixes of `a` are consecutive numbers (those of `b` as well in a join,
// and not too far apart in an elimination), so are those of the sums: which stretches add up to which needs no
// search.
bool LayoutBuilder::in_line(StretchView a, StretchView b, bool shifts) const {
    const auto consecutive = [](StretchView v) {
        for (Index r = 1; r < v.count; r++)
            if (v.prefix[r] != v.prefix[0] + r) return false;
        return v.count > 0;
    };
    if (!plain_ || !l_.rows || l_.prefix_size != 1 || !consecutive(a)) return false;
    if (!shifts) return consecutive(b);
    const auto [low, high] = std::minmax_element(b.prefix, b.prefix + b.count);
    return b.count > 0 && *high - *low <= a.count;
}

void LayoutBuilder::add_lines(std::int32_t t, StretchView a, StretchView b) {
    auto &table = l_.tables[t];
    auto &s = l_.steps[t];
    const auto [low, high] = std::minmax_element(b.prefix, b.prefix + b.count);
    const Index first = a.prefix[0] + *low;
    table.stretches = a.count + *high - *low;
    meter_.spend(static_cast<double>(a.count * b.count) * 20 + 100);
    open_pairs(s, table.stretches, a.count * b.count);
    hull_low_.resize(table.stretches);
    hull_high_.resize(table.stretches);
    Index *begin = l_.pair_begin.data() + s.begin, pairs = 0;
    std::int32_t *pair_a = l_.pair_a.data() + s.pairs, *pair_b = l_.pair_b.data() + s.pairs;
    const Index lowest = *low, classes = s.classes;
    for (Index r = 0; r < table.stretches; r++) {
        Index bottom = kLarge, top = kSmall;
        const auto take = [&](Index ra, Index rb) {
            const Index sum = a.low[ra] + b.low[rb];
            bottom = std::min(bottom, sum);
            top = std::max(top, sum + a.length[ra] + b.length[rb] - 2);
            pair_a[pairs] = static_cast<std::int32_t>(ra);
            pair_b[pairs++] = static_cast<std::int32_t>(rb);
        };
        for (Index rb = 0; rb < classes; rb++) {
            *begin++ = pairs;
            const Index ra = r - (b.prefix[rb] - lowest);
            if (ra >= 0 && ra < a.count) take(ra, rb);
        }
        if (!classes) {
            *begin++ = pairs;
            const Index last = std::min(r, a.count - 1);
            for (Index ra = std::max<Index>(r - b.count + 1, 0); ra <= last; ra++) take(ra, r - ra);
        }
        hull_low_[r] = bottom;
        hull_high_[r] = top;
    }
    *begin = pairs;
    store_stretches(t, hull_low_.data(), hull_high_.data(), hull_high_.data());
    l_.prefix.resize(l_.prefix.size() + table.stretches);
    std::iota(l_.prefix.end() - table.stretches, l_.prefix.end(), first);
    count_bytes(t, pairs);
}

}  // namespace tallytree
