// The layout of a chart: which tallies a span can have, and where they lie. Tight: a table holds what the trees over
// its own span can count, less what can no longer end inside the window.
#include <algorithm>

#include "chart.h"
#include "placement.h"
#include "sums.h"

namespace tallytree {

ChartLayout plain_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, double memory_limit) {
    ChartLayout l;
    l.grammar = std::move(grammar);
    l.spans = {words};
    l.low = l.start = {0};
    l.length = l.natural = {1};
    l.tables.resize(2 * l.spans.count());
    const Index symbols = l.grammar->symbols;
    for (Index width = 1; width <= words; width++)
        for (int layer = 0; layer < 2; layer++) {
            // whole vectors are read at any start
            const Index stride = round_up(l.spans.starts(width) + kLanes);
            for (Index start = 0; start < l.spans.starts(width); start++)
                l.tables[2 * l.spans.number(start, width) + layer] = {l.arena + start, stride, 0, 1, 1, symbols, 0};
            l.arena += stride * symbols;
        }
    l.rank = {0};
    l.items = 2 * l.spans.count() * symbols;
    l.most_cells = 1;
    for (Index width = 2; width <= words; width++)
        l.operations +=
            static_cast<double>(l.grammar->rules.size()) * static_cast<double>((width - 1) * l.spans.starts(width));
    l.operations += static_cast<double>(l.grammar->chains.size()) * static_cast<double>(l.spans.count());
    if (8.0 * static_cast<double>(l.arena) > memory_limit) throw_budget(0, 8.0 * static_cast<double>(l.arena));
    return l;
}

namespace {

class Builder {
  public:
    Builder(std::shared_ptr<const ChartGrammar> grammar, const ChartRequest &request)
        : request_(request), meter_(request.poll) {
        l_.grammar = std::move(grammar);
        l_.plain = false;
        l_.spans = {request.words};
        l_.caps = request.caps;
        l_.statistics = static_cast<Index>(l_.caps.size());
        l_.prefix_size = std::max<Index>(l_.statistics - 1, 0);
        l_.shifts = request.shifts;
        l_.tables.resize(2 * l_.spans.count());
        const auto box = l_.tables.size() * static_cast<std::size_t>(l_.prefix_size);
        l_.box_low.assign(box, 0);
        l_.box_extent.assign(box, 0);
    }

    ChartLayout build() {
        take_items();
        find_shifts();
        bound_inside();
        bound_outside();
        for (Index width = 1; width <= l_.spans.words; width++)
            for (Index start = 0; start < l_.spans.starts(width); start++) {
                find_open(start, width);
                find_closed(l_.spans.number(start, width));
            }
        return std::move(l_);
    }

  private:
    Index p() const { return l_.statistics; }
    bool capped(Index i) const { return l_.caps[i] != kUncapped; }
    Index sum(Index i, Index x, Index y) const { return std::min(l_.caps[i], x + y); }
    bool there(Index table) const { return l_.tables[table].rows > 0; }
    Index *low(Index table) { return low_.data() + table * p(); }
    Index *high(Index table) { return high_.data() + table * p(); }

    // ---- items -----------------------------------------------------------------------------------------------
    void take_items() {
        const Index symbols = l_.grammar->symbols, n = l_.spans.count();
        l_.slot.assign(2 * n * symbols, -1);
        for (Index span = 0; span < n; span++)
            for (Index layer = 0; layer < 2; layer++) {
                const Index t = 2 * span + layer;
                const auto *wanted = request_.items.data() + (layer * n + span) * symbols;
                for (Index s = 0; s < symbols; s++)
                    if (wanted[s]) l_.slot[t * symbols + s] = static_cast<std::int32_t>(l_.tables[t].rows++);
                l_.items += l_.tables[t].rows;
            }
        l_.plan_bytes = static_cast<Index>(l_.slot.size()) * 4 + static_cast<Index>(l_.shifts.size()) * 4;
    }

    bool live(const Chain &chain, Index span) const {
        const Index open = l_.table_number(span, Layer::Open), closed = l_.table_number(span, Layer::Closed);
        return l_.slot_of(closed, chain.target) >= 0 &&
               l_.slot_of(chain.from_closed ? closed : open, chain.source) >= 0;
    }

    // The distinct shifts of the chains over each span.
    void find_shifts() {
        const std::vector<std::int32_t> none(p(), 0);
        std::vector<std::vector<std::int32_t>> found;
        for (Index span = 0; span < l_.spans.count(); span++) {
            found.clear();
            for (const auto &chain : l_.grammar->chains) {
                if (chain.from_closed || !live(chain, span)) continue;
                const auto bag = span < l_.spans.words ? chain.word_bag : chain.bag;
                const auto *shift = bag < 0 ? none.data() : l_.shift(bag, span);
                if (std::none_of(found.begin(), found.end(),
                                 [&](const auto &f) { return std::equal(f.begin(), f.end(), shift); }))
                    found.emplace_back(shift, shift + p());
            }
            for (const auto &f : found) shifts_.data.insert(shifts_.data.end(), f.begin(), f.end());
            shifts_.close_row();
            meter_.spend(static_cast<double>(l_.grammar->chains.size()));
        }
    }
    Index shift_count(Index span) const { return p() ? static_cast<Index>(shifts_[span].size()) / p() : 1; }

    // Groups of rules over each split: the convolutions that it takes. 0: nothing is built there.
    void count_groups(Index start, Index width) {
        const Index span = l_.spans.number(start, width), open = l_.table_number(span, Layer::Open);
        groups_.assign(width, 0);
        for (std::int32_t parent = 0; parent < l_.grammar->symbols; parent++) {
            if (l_.slot_of(open, parent) < 0) continue;
            for (const auto &group : l_.grammar->groups[parent])
                for (Index split = 1; split < width; split++) {
                    const Index left = l_.table_number(l_.spans.number(start, split), Layer::Closed);
                    const Index right = l_.table_number(l_.spans.number(start + split, width - split), Layer::Closed);
                    if (l_.slot_of(group.left ? left : right, group.shared) < 0) continue;
                    const auto other = group.left ? right : left;
                    for (Index q = group.begin; q < group.end; q++) {
                        const auto &rule = l_.grammar->rules[l_.grammar->by_group[q]];
                        if (l_.slot_of(other, group.left ? rule.right : rule.left) < 0) continue;
                        groups_[split]++;
                        break;
                    }
                }
            meter_.spend(static_cast<double>(width * static_cast<Index>(l_.grammar->by_parent[parent].size()) + 1));
        }
    }

    // ---- bounds ----------------------------------------------------------------------------------------------
    void widen(Index table, Index i, Index least, Index most) {
        low(table)[i] = std::min(low(table)[i], least);
        high(table)[i] = std::max(high(table)[i], most);
    }

    // The least and the largest sum of each statistic below each table.
    void bound_inside() {
        low_.assign(l_.tables.size() * p(), kLarge);
        high_.assign(l_.tables.size() * p(), kSmall);
        for (Index width = 1; width <= l_.spans.words; width++)
            for (Index start = 0; start < l_.spans.starts(width); start++) {
                const Index span = l_.spans.number(start, width), open = 2 * span, closed = open + 1;
                for (Index i = 0; i < p(); i++) {
                    if (width == 1) widen(open, i, 0, 0);
                    for (Index split = 1; split < width; split++) {
                        const Index a = 2 * l_.spans.number(start, split) + 1;
                        const Index b = 2 * l_.spans.number(start + split, width - split) + 1;
                        if (there(a) && there(b) && low(a)[i] <= high(a)[i] && low(b)[i] <= high(b)[i])
                            widen(open, i, low(a)[i] + low(b)[i], high(a)[i] + high(b)[i]);
                    }
                    if (!there(open) || low(open)[i] > high(open)[i]) continue;
                    for (Index d = 0; d < shift_count(span); d++) {
                        const Index shift = shifts_[span][d * p() + i];
                        widen(closed, i, low(open)[i] + shift, high(open)[i] + shift);
                    }
                }
            }
    }

    // What the rest of a tree can add to each table, at the least and at the most.
    void bound_outside() {
        rest_low_.assign(l_.tables.size() * p(), kLarge);
        rest_high_.assign(l_.tables.size() * p(), kSmall);
        const auto raise = [&](Index table, Index i, Index least, Index most) {
            rest_low_[table * p() + i] = std::min(rest_low_[table * p() + i], least);
            rest_high_[table * p() + i] = std::max(rest_high_[table * p() + i], most);
        };
        const Index root = 2 * (l_.spans.count() - 1) + 1;
        for (Index i = 0; i < p(); i++) raise(root, i, 0, 0);
        for (Index width = l_.spans.words; width >= 1; width--)
            for (Index start = 0; start < l_.spans.starts(width); start++) {
                const Index span = l_.spans.number(start, width), open = 2 * span, closed = open + 1;
                for (Index i = 0; i < p(); i++) {
                    if (rest_low_[closed * p() + i] == kLarge) continue;
                    for (Index d = 0; d < shift_count(span); d++) {
                        const Index shift = shifts_[span][d * p() + i];
                        raise(open, i, rest_low_[closed * p() + i] + shift, rest_high_[closed * p() + i] + shift);
                    }
                    if (rest_low_[open * p() + i] == kLarge) continue;
                    for (Index split = 1; split < width; split++) {
                        const Index a = 2 * l_.spans.number(start, split) + 1;
                        const Index b = 2 * l_.spans.number(start + split, width - split) + 1;
                        for (const auto &[one, other] : {std::pair(a, b), std::pair(b, a)})
                            if (there(one) && there(other) && low(other)[i] <= high(other)[i])
                                raise(one, i, rest_low_[open * p() + i] + low(other)[i],
                                      rest_high_[open * p() + i] + high(other)[i]);
                    }
                }
            }
    }

    // Into window_low_, window_high_: the sums of a table that can still end inside the window. False: none can.
    bool find_window(Index table) {
        window_low_.assign(p(), kSmall);
        window_high_.assign(p(), kLarge);
        for (Index i = 0; i < p(); i++) {
            const Index rest_low = rest_low_[table * p() + i], rest_high = rest_high_[table * p() + i];
            if (low(table)[i] > high(table)[i] || rest_low > rest_high) return false;
            if (request_.window_low[i] > kSmall) {
                if (capped(i) && request_.window_low[i] > l_.caps[i]) return false;
                window_low_[i] = request_.window_low[i] - rest_high;
            }
            if (request_.window_high[i] < kLarge && (!capped(i) || request_.window_high[i] < l_.caps[i]))
                window_high_[i] = request_.window_high[i] - rest_low;
        }
        return true;
    }

    // ---- runs ------------------------------------------------------------------------------------------------
    // An empty hull for every prefix in the table's box.
    bool begin_hulls(Index table) {
        if (!there(table) || !find_window(table)) return false;
        double volume = 1;
        for (Index i = 0; i < l_.prefix_size; i++) {
            const Index least = std::max(std::min(low(table)[i], l_.caps[i]), window_low_[i]);
            const Index most = std::min({high(table)[i], l_.caps[i], window_high_[i]});
            l_.box_low[table * l_.prefix_size + i] = least;
            l_.box_extent[table * l_.prefix_size + i] = std::max<Index>(most - least + 1, 0);
            volume *= static_cast<double>(std::max<Index>(most - least + 1, 0));
        }
        spend(table, volume * 28);
        hull_low_.assign(static_cast<Index>(volume), kLarge);
        hull_high_.assign(static_cast<Index>(volume), kSmall);
        hull_natural_.assign(static_cast<Index>(volume), kSmall);
        prefix_.assign(l_.prefix_size, 0);
        return volume > 0;
    }

    // Widens the hull of prefix_ by an interval of the last statistic; false where the window leaves nothing.
    bool offer(Index table, Index least, Index most) {
        Index id = 0, natural = most;
        for (Index i = 0; i < l_.prefix_size; i++) {
            const Index at = prefix_[i] - l_.box_low[table * l_.prefix_size + i];
            if (at < 0 || at >= l_.box_extent[table * l_.prefix_size + i]) return false;
            id = id * l_.box_extent[table * l_.prefix_size + i] + at;
        }
        if (p()) {
            const Index i = p() - 1;
            least = std::max(std::min(least, l_.caps[i]), window_low_[i]);
            most = std::min({most, l_.caps[i], window_high_[i]});
            if (least > most) return false;
            if (most < l_.caps[i]) natural = most;
        }
        hull_low_[id] = std::min(hull_low_[id], least);
        hull_high_[id] = std::max(hull_high_[id], most);
        hull_natural_[id] = std::max(hull_natural_[id], natural);
        return true;
    }

    void find_open(Index start, Index width) {
        const Index span = l_.spans.number(start, width), table = l_.table_number(span, Layer::Open);
        const bool some = begin_hulls(table);
        double operations = 0;
        if (some && width == 1 && !offer(table, 0, 0)) l_.pruned++;
        if (some && width > 1) {
            count_groups(start, width);
            for (Index split = 1; split < width; split++)
                if (groups_[split])
                    operations += static_cast<double>(groups_[split]) *
                                  add_pairs(table, 2 * l_.spans.number(start, split) + 1,
                                            2 * l_.spans.number(start + split, width - split) + 1);
        }
        l_.operations += operations;
        if (operations > l_.costliest_operations || l_.costliest < 0) {
            l_.costliest = static_cast<std::int32_t>(span);
            l_.costliest_operations = operations;
        }
        finish(table, some);
    }

    // All runs of one table with all of another; returns the operations of one convolution.
    double add_pairs(Index table, Index a, Index b) {
        const ChartRuns ra(l_, a), rb(l_, b);
        const Index q = l_.prefix_size;
        double operations = 0;
        for (Index x = 0; x < ra.count; x++)
            for (Index y = 0; y < rb.count; y++) {
                for (Index i = 0; i < q; i++) prefix_[i] = sum(i, ra.prefix[x * q + i], rb.prefix[y * q + i]);
                const Index least = ra.low[x] + rb.low[y];
                if (offer(table, least, least + ra.length[x] + rb.length[y] - 2))
                    operations += static_cast<double>(ra.length[x]) * static_cast<double>(rb.length[y]);
                else l_.pruned++;
            }
        meter_.spend(static_cast<double>(ra.count) * static_cast<double>(rb.count) * 8);
        return operations;
    }

    void find_closed(Index span) {
        const Index table = l_.table_number(span, Layer::Closed), open = l_.table_number(span, Layer::Open);
        const bool some = begin_hulls(table);
        const ChartRuns from(l_, open);
        for (Index d = 0; some && d < shift_count(span); d++)
            for (Index r = 0; r < from.count; r++) {
                const auto *shift = shifts_[span].data() + d * p();
                for (Index i = 0; i < l_.prefix_size; i++)
                    prefix_[i] = sum(i, from.prefix[r * l_.prefix_size + i], shift[i]);
                const Index least = from.low[r] + (p() ? shift[p() - 1] : 0);
                if (!offer(table, least, least + from.length[r] - 1)) l_.pruned++;
            }
        finish(table, some);
        l_.operations += static_cast<double>(l_.tables[table].cells * l_.tables[table].rows);
    }

    // Turns the hulls that were reached into the runs of a table, and gives it its place.
    void finish(Index t, bool some) {
        auto &table = l_.tables[t];
        table.runs_begin = static_cast<Index>(l_.low.size());
        table.rank = static_cast<Index>(l_.rank.size());
        table.base = l_.arena;
        if (!some) return;
        Index end = 0;
        for (Index id = 0; id < static_cast<Index>(hull_low_.size()); id++) {
            const bool reached = hull_low_[id] != kLarge;
            l_.rank.push_back(reached ? static_cast<std::int32_t>(table.runs++) : -1);
            if (!reached) continue;
            Index rest = id;
            l_.prefix.resize(l_.prefix.size() + l_.prefix_size);
            for (Index i = l_.prefix_size; i-- > 0;) {
                const Index extent = l_.box_extent[t * l_.prefix_size + i];
                l_.prefix[l_.prefix.size() - l_.prefix_size + i] = l_.box_low[t * l_.prefix_size + i] + rest % extent;
                rest /= extent;
            }
            const Index length = hull_high_[id] - hull_low_[id] + 1;
            l_.low.push_back(hull_low_[id]);
            l_.length.push_back(length);
            l_.natural.push_back(hull_natural_[id] - hull_low_[id] + 1);
            l_.start.push_back(end);
            end += round_up(length);
            table.cells += length;
        }
        table.stride = end;
        l_.arena += end * table.rows;
        l_.most_cells = std::max(l_.most_cells, table.cells);
        l_.plan_bytes += static_cast<Index>(hull_low_.size()) * 4 + table.runs * (32 + 8 * l_.prefix_size);
        spend(t, 0);
    }

    void spend(Index table, double more) const {
        const double bytes = 8.0 * static_cast<double>(l_.arena) + static_cast<double>(l_.plan_bytes) + more;
        if (bytes > request_.memory_limit) throw_budget(static_cast<std::int32_t>(table / 2), bytes);
    }

    const ChartRequest &request_;
    Meter meter_;
    ChartLayout l_;
    Ragged<std::int32_t> shifts_;  // per span, one distinct shift after the other
    std::vector<Index> groups_;    // per split
    std::vector<Index> low_, high_, rest_low_, rest_high_;
    std::vector<Index> window_low_, window_high_, prefix_;
    std::vector<Index> hull_low_, hull_high_, hull_natural_;
};

}  // namespace

ChartLayout tally_chart(std::shared_ptr<const ChartGrammar> grammar, const ChartRequest &request) {
    return Builder(std::move(grammar), request).build();
}

}  // namespace tallytree
