#include "charts/ranges.h"

#include <algorithm>

namespace tallytree {

ChartRanges::ChartRanges(const Layout &layout, const Ragged<std::int32_t> &shifts)
    : spans_(layout.skeleton->chart->spans), shifts_(shifts), p_(layout.statistics) {
    for (const auto &table : layout.tables) there_.push_back(table.states > 0);
    const auto size = layout.tables.size() * static_cast<std::size_t>(p_);
    for (auto *bounds : {&inside_, &outside_}) {
        bounds->low.assign(size, kLarge);
        bounds->high.assign(size, kSmall);
    }
    for (Index width = 1; width <= spans_.words; width++)
        for (Index start = 0; start < spans_.starts(width); start++) find_inside(start, width);
    const Index root = spans_.table(Layer::Closed, 0, spans_.words);
    for (Index i = 0; i < p_; i++) outside_.low[root * p_ + i] = outside_.high[root * p_ + i] = 0;
    for (Index width = spans_.words; width >= 1; width--)
        for (Index start = 0; start < spans_.starts(width); start++) find_outside(start, width);
}

void ChartRanges::widen(Bounds &to, Index table, const Bounds &from, Index source, Index i, Index least,
                        Index most) const {
    Index &low = to.low[table * p_ + i], &high = to.high[table * p_ + i];
    low = std::min(low, from.low[source * p_ + i] + least);
    high = std::max(high, from.high[source * p_ + i] + most);
}

void ChartRanges::widen_by_shifts(Bounds &to, Index table, const Bounds &from, Index source, Index span,
                                  Index i) const {
    const auto shifts = shifts_[span];
    for (std::size_t at = i; at < shifts.size(); at += p_) widen(to, table, from, source, i, shifts[at], shifts[at]);
}

void ChartRanges::find_inside(Index start, Index width) {
    const Index open = spans_.table(Layer::Open, start, width), closed = spans_.table(Layer::Closed, start, width);
    for (Index i = 0; i < p_; i++) {
        if (width == 1) inside_.low[open * p_ + i] = inside_.high[open * p_ + i] = 0;
        for (Index split = 1; split < width; split++) {
            const Index a = spans_.table(Layer::Closed, start, split);
            const Index b = spans_.table(Layer::Closed, start + split, width - split);
            if (some(inside_, a, i) && some(inside_, b, i)) widen(inside_, open, inside_, a, i, low(b, i), high(b, i));
        }
        if (some(inside_, open, i)) widen_by_shifts(inside_, closed, inside_, open, spans_.number(start, width), i);
    }
}

void ChartRanges::find_outside(Index start, Index width) {
    const Index open = spans_.table(Layer::Open, start, width), closed = spans_.table(Layer::Closed, start, width);
    for (Index i = 0; i < p_; i++) {
        if (some(outside_, closed, i))
            widen_by_shifts(outside_, open, outside_, closed, spans_.number(start, width), i);
        if (!some(outside_, open, i)) continue;
        for (Index split = 1; split < width; split++) {
            const Index a = spans_.table(Layer::Closed, start, split);
            const Index b = spans_.table(Layer::Closed, start + split, width - split);
            if (!some(inside_, a, i) || !some(inside_, b, i)) continue;
            widen(outside_, a, outside_, open, i, low(b, i), high(b, i));
            widen(outside_, b, outside_, open, i, low(a, i), high(a, i));
        }
    }
}

bool ChartRanges::find_window(Index table, const ChartRequest &request, Bounds &window) const {
    window.low.assign(p_, kSmall);
    window.high.assign(p_, kLarge);
    for (Index i = 0; i < p_; i++) {
        if (!some(inside_, table, i) || !some(outside_, table, i)) return false;
        const Index cap = request.caps[i];
        if (request.window.low[i] > kSmall) {
            if (request.window.low[i] > cap) return false;
            window.low[i] = request.window.low[i] - outside_.high[table * p_ + i];
        }
        if (request.window.high[i] < std::min(kLarge, cap))
            window.high[i] = request.window.high[i] - outside_.low[table * p_ + i];
    }
    return true;
}

}  // namespace tallytree
