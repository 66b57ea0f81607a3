// The layout of a chart: which tallies a span can have, and where they lie. Tight: a table holds what the trees over
// its own span can count, less what can no longer end inside the window.
#include <algorithm>
#include <numeric>

#include "charts/ranges.h"
#include "plan/placement.h"
#include "tables/upward.h"

namespace tallytree {

Skeleton chart_skeleton(std::shared_ptr<const ChartGrammar> grammar, Index words) {
    Skeleton s;
    const Spans spans{words};
    s.chart = std::make_shared<const ChartShape>(ChartShape{std::move(grammar), spans});
    for (Index width = 1; width <= words; width++)
        for (const auto layer : {Layer::Open, Layer::Closed})
            for (Index start = 0; start < spans.starts(width); start++) {
                Step step{layer == Layer::Closed ? Verb::Unary : width == 1 ? Verb::Word : Verb::Combine};
                if (layer == Layer::Closed) step.a = spans.table(Layer::Open, start, width);
                step.start = static_cast<std::int32_t>(start);
                step.width = static_cast<std::int32_t>(width);
                step.together = static_cast<std::int32_t>(spans.starts(width) - start);
                s.steps.push_back(step);
            }
    return s;
}

namespace {

// What plain charts and those with statistics have in common.
Layout begin_layout(std::shared_ptr<const ChartGrammar> grammar, Index words, const std::vector<Index> &caps) {
    Layout l;
    l.skeleton = std::make_shared<const Skeleton>(chart_skeleton(std::move(grammar), words));
    l.rows = true;
    l.statistics = static_cast<Index>(caps.size());
    l.prefix_size = std::max<Index>(l.statistics - 1, 0);
    l.permutation.resize(l.statistics);
    std::iota(l.permutation.begin(), l.permutation.end(), 0);
    l.caps = l.user_caps = caps;
    l.floors.assign(l.statistics, 0);
    l.tables.resize(l.skeleton->steps.size());
    l.steps.resize(l.skeleton->steps.size());
    l.segment_begin = {0, static_cast<Index>(l.tables.size())};
    return l;
}

class Builder {
  public:
    Builder(std::shared_ptr<const ChartGrammar> grammar, const ChartRequest &request, const Poll &poll)
        : request_(request),
          meter_(poll),
          l_(begin_layout(std::move(grammar), request.words, request.caps)),
          grammar_(*l_.skeleton->chart->grammar),
          spans_(l_.skeleton->chart->spans) {
        c_.symbols = grammar_.symbols;
        c_.spans = spans_.count();
        c_.statistics = l_.statistics;
        c_.prefix_size = l_.prefix_size;
        c_.shifts = request.shifts;
        const auto box = l_.tables.size() * static_cast<std::size_t>(l_.prefix_size);
        c_.box_low.assign(box, 0);
        c_.box_extent.assign(box, 0);
    }

    Layout build() {
        take_items();
        find_shifts();
        const ChartRanges ranges(l_, shifts_);
        for (std::int32_t t = 0; t < static_cast<std::int32_t>(l_.tables.size()); t++) {
            c_.rank_begin.push_back(static_cast<Index>(c_.rank.size()));
            if (begin_hulls(t, ranges)) offer_all(t);
            finish(t);
        }
        c_.rank_begin.push_back(static_cast<Index>(c_.rank.size()));
        l_.arena += kLanes;  // whole vectors are read
        l_.root_state = l_.tables.back().stretches ? c_.state_of(l_.tables.size() - 1, grammar_.root) : -1;
        l_.chart = std::make_shared<const ChartTables>(std::move(c_));
        return std::move(l_);
    }

  private:
    Index p() const { return l_.statistics; }
    Index sum(Index i, Index x, Index y) const { return std::min(l_.caps[i], x + y); }

    // ---- items and shifts ------------------------------------------------------------------------------------
    void take_items() {
        c_.states.assign(l_.tables.size() * c_.symbols, -1);
        for (std::size_t t = 0; t < l_.tables.size(); t++) {
            const Step &step = l_.skeleton->steps[t];
            const Index span = spans_.number(step.start, step.width), layer = step.verb == Verb::Unary;
            const auto *wanted = request_.items.data() + (layer * c_.spans + span) * c_.symbols;
            l_.tables[t].states = 0;
            for (Index s = 0; s < c_.symbols; s++)
                if (wanted[s]) c_.states[t * c_.symbols + s] = static_cast<std::int32_t>(l_.tables[t].states++);
        }
        l_.plan_bytes = static_cast<Index>(c_.states.size() + c_.shifts.size()) * 4;
    }

    // The distinct shifts of the paths over each span.
    void find_shifts() {
        const std::vector<std::int32_t> none(p(), 0);
        std::vector<std::vector<std::int32_t>> found;
        for (Index width = 1; width <= spans_.words; width++)
            for (Index start = 0; start < spans_.starts(width); start++) {
                found.clear();
                const Index open = spans_.table(Layer::Open, start, width);
                const Index closed = spans_.table(Layer::Closed, start, width);
                for (const auto &path : grammar_.paths) {
                    if (path.from_closed || c_.state_of(closed, path.target) < 0 || c_.state_of(open, path.source) < 0)
                        continue;
                    const auto *counted = c_.shift(path, spans_.number(start, width), width == 1);
                    const auto *shift = counted ? counted : none.data();
                    if (std::none_of(found.begin(), found.end(),
                                     [&](const auto &f) { return std::equal(f.begin(), f.end(), shift); }))
                        found.emplace_back(shift, shift + p());
                }
                for (const auto &f : found) shifts_.data.insert(shifts_.data.end(), f.begin(), f.end());
                shifts_.close_row();
                shift_count_.push_back(static_cast<Index>(found.size()));
                meter_.spend(static_cast<double>(grammar_.paths.size()));
            }
    }

    // ---- stretches ------------------------------------------------------------------------------------------------
    // An empty hull for every prefix in the table's box.
    bool begin_hulls(std::int32_t t, const ChartRanges &ranges) {
        hulls_.clear();
        if (l_.tables[t].states == 0 || !ranges.find_window(t, request_, window_)) return false;
        double volume = 1;
        for (Index i = 0; i < l_.prefix_size; i++) {
            const Index least = std::max(std::min(ranges.low(t, i), l_.caps[i]), window_.low[i]);
            const Index most = std::min({ranges.high(t, i), l_.caps[i], window_.high[i]});
            c_.box_low[t * l_.prefix_size + i] = least;
            c_.box_extent[t * l_.prefix_size + i] = std::max<Index>(most - least + 1, 0);
            volume *= static_cast<double>(std::max<Index>(most - least + 1, 0));
        }
        spend(t, volume * 28);
        hulls_.assign(static_cast<Index>(volume), {});
        prefix_.assign(l_.prefix_size, 0);
        return volume > 0;
    }

    // Widens the hull of prefix_ by an interval of the last statistic; false where the window leaves nothing.
    bool offer(std::int32_t t, Index least, Index most) {
        Index id = 0, natural = most;
        for (Index i = 0; i < l_.prefix_size; i++) {
            const Index at = prefix_[i] - c_.box_low[t * l_.prefix_size + i];
            if (at < 0 || at >= c_.box_extent[t * l_.prefix_size + i]) return false;
            id = id * c_.box_extent[t * l_.prefix_size + i] + at;
        }
        if (p()) {
            const Index i = p() - 1;
            if (least > l_.caps[i]) natural = l_.caps[i] + most - least + 1;  // all of it is folded: see `landing`
            least = std::max(std::min(least, l_.caps[i]), window_.low[i]);
            most = std::min({most, l_.caps[i], window_.high[i]});
            if (least > most) return false;
            if (most < l_.caps[i]) natural = most;
        }
        Hull &hull = hulls_[id];
        hull.low = std::min(hull.low, least);
        hull.high = std::max(hull.high, most);
        hull.natural = std::max(hull.natural, natural);
        return true;
    }

    void offer_all(std::int32_t t) {
        const Step &step = l_.skeleton->steps[t];
        if (step.verb == Verb::Word) l_.pruned += !offer(t, 0, 0);
        else if (step.verb == Verb::Combine) offer_splits(t, step.start, step.width);
        else offer_shifts(t, step);
    }

    void offer_splits(std::int32_t t, Index start, Index width) {
        count_groups(t, start, width);
        double operations = 0;
        for (Index split = 1; split < width; split++)
            if (groups_[split])
                operations += static_cast<double>(groups_[split]) *
                              offer_pairs(t, spans_.table(Layer::Closed, start, split),
                                          spans_.table(Layer::Closed, start + split, width - split));
        note_operations(t, operations);
    }

    // Groups of rules over each split: the convolutions that it takes. 0: nothing is built there.
    void count_groups(std::int32_t t, Index start, Index width) {
        groups_.assign(width, 0);
        for (std::int32_t parent = 0; parent < grammar_.symbols; parent++) {
            if (c_.state_of(t, parent) < 0) continue;
            for (const auto &group : grammar_.groups[parent])
                for (Index split = 1; split < width; split++) {
                    const Index left = spans_.table(Layer::Closed, start, split);
                    const Index right = spans_.table(Layer::Closed, start + split, width - split);
                    if (c_.state_of(group.left ? left : right, group.shared) < 0) continue;
                    groups_[split] += usable(group, group.left ? right : left);
                }
            meter_.spend(static_cast<double>(width * static_cast<Index>(grammar_.by_parent[parent].size()) + 1));
        }
    }
    bool usable(const RuleGroup &group, Index other) const {
        for (Index q = group.begin; q < group.end; q++) {
            const auto &rule = grammar_.rules[grammar_.by_group[q]];
            if (c_.state_of(other, group.left ? rule.right : rule.left) >= 0) return true;
        }
        return false;
    }

    // All stretches of one table with all of another; returns the operations of one convolution.
    double offer_pairs(std::int32_t t, std::int32_t a, std::int32_t b) {
        const Stretches x(l_, a), y(l_, b);
        const Index q = l_.prefix_size;
        double operations = 0;
        for (Index r = 0; r < x.count; r++)
            for (Index s = 0; s < y.count; s++) {
                for (Index i = 0; i < q; i++) prefix_[i] = sum(i, x.prefix[r * q + i], y.prefix[s * q + i]);
                const Index least = x.low[r] + y.low[s];
                if (offer(t, least, least + x.length[r] + y.length[s] - 2))
                    operations += static_cast<double>(x.length[r]) * static_cast<double>(y.length[s]);
                else l_.pruned++;
            }
        meter_.spend(static_cast<double>(x.count) * static_cast<double>(y.count) * 8);
        return operations;
    }

    void offer_shifts(std::int32_t t, const Step &step) {
        const Stretches from(l_, step.a);
        const Index span = spans_.number(step.start, step.width);
        for (Index d = 0; d < shift_count_[span]; d++)
            for (Index r = 0; r < from.count; r++) {
                const auto *shift = shifts_[span].data() + d * p();
                for (Index i = 0; i < l_.prefix_size; i++)
                    prefix_[i] = sum(i, from.prefix[r * l_.prefix_size + i], shift[i]);
                const Index least = from.low[r] + (p() ? shift[p() - 1] : 0);
                l_.pruned += !offer(t, least, least + from.length[r] - 1);
            }
    }

    // Turns the hulls that were reached into the stretches of a table, and gives it its place.
    void finish(std::int32_t t) {
        auto &table = l_.tables[t];
        table.stretches_begin = static_cast<Index>(l_.low.size());
        table.base = l_.arena;
        for (Index id = 0; id < static_cast<Index>(hulls_.size()); id++) {
            const Hull &hull = hulls_[id];
            const bool reached = hull.low <= hull.high;
            c_.rank.push_back(reached ? static_cast<std::int32_t>(table.stretches++) : -1);
            if (!reached) continue;
            push_prefix(t, id);
            const Index length = hull.high - hull.low + 1;
            l_.low.push_back(hull.low);
            l_.length.push_back(length);
            l_.natural.push_back(hull.natural - hull.low + 1);
            l_.start.push_back(table.stride);
            table.stride += round_up(length);
            table.cells += length;
        }
        table.size = table.stride * table.states;
        l_.arena += table.size;
        l_.plan_bytes += static_cast<Index>(hulls_.size()) * 4 + table.stretches * (32 + 8 * l_.prefix_size);
        if (l_.skeleton->steps[t].verb == Verb::Unary)
            note_operations(t, static_cast<double>(table.cells * table.states));
        spend(t, 0);
    }
    void push_prefix(std::int32_t t, Index id) {
        l_.prefix.resize(l_.prefix.size() + l_.prefix_size);
        for (Index i = l_.prefix_size; i-- > 0;) {
            const Index extent = c_.box_extent[t * l_.prefix_size + i];
            l_.prefix[l_.prefix.size() - l_.prefix_size + i] = c_.box_low[t * l_.prefix_size + i] + id % extent;
            id /= extent;
        }
    }

    // ---- what it costs ---------------------------------------------------------------------------------------
    void note_operations(std::int32_t t, double operations) {
        l_.operations += l_.steps[t].operations = operations;
        if (l_.costliest < 0 || operations > l_.steps[l_.costliest].operations) l_.costliest = t;
    }
    void spend(std::int32_t t, double more) const {
        const double bytes = 8.0 * static_cast<double>(l_.arena + kLanes) + static_cast<double>(l_.plan_bytes) + more;
        const Step &step = l_.skeleton->steps[t];
        if (bytes > request_.memory_limit)
            throw_budget(static_cast<std::int32_t>(spans_.number(step.start, step.width)), bytes);
    }

    struct Hull {
        Index low = kLarge, high = kSmall, natural = kSmall;
    };

    const ChartRequest &request_;
    Meter meter_;
    Layout l_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    ChartTables c_;
    Ragged<std::int32_t> shifts_;  // per span, one distinct shift after the other
    std::vector<Index> shift_count_, groups_, prefix_;
    Bounds window_;
    std::vector<Hull> hulls_;
};

}  // namespace

Layout tally_chart(std::shared_ptr<const ChartGrammar> grammar, const ChartRequest &request, const Poll &poll) {
    return Builder(std::move(grammar), request, poll).build();
}

Layout plain_chart(std::shared_ptr<const ChartGrammar> grammar, Index words, double memory_limit) {
    Layout l = begin_layout(std::move(grammar), words, {});
    const Spans spans = l.skeleton->chart->spans;
    const ChartGrammar &g = *l.skeleton->chart->grammar;
    const auto rules = static_cast<double>(g.rules.size());
    const auto paths = static_cast<double>(g.paths.size());
    ChartTables c;
    c.symbols = g.symbols;
    c.spans = spans.count();
    l.low = l.start = {0};
    l.length = l.natural = {1};
    for (std::size_t t = 0; t < l.tables.size(); t++) {
        const Step &step = l.skeleton->steps[t];
        const Index stride = round_up(spans.starts(step.width) + kLanes);  // whole vectors are read at any start
        auto &table = l.tables[t];
        table.states = c.symbols;
        table.stretches = table.cells = 1;
        table.stride = stride;
        table.size = stride * c.symbols;
        table.base = l.arena + step.start;
        if (step.together == 1) l.arena += table.size;  // the last of its width
        l.steps[t].operations = step.verb == Verb::Unary ? paths : rules * static_cast<double>(step.width - 1);
        l.operations += l.steps[t].operations;
    }
    l.arena += kLanes;
    l.costliest = static_cast<std::int32_t>(l.tables.size()) - 1;
    l.root_state = g.root;
    l.chart = std::make_shared<const ChartTables>(std::move(c));
    if (8.0 * static_cast<double>(l.arena) > memory_limit) throw_budget(0, 8.0 * static_cast<double>(l.arena));
    return l;
}

}  // namespace tallytree
