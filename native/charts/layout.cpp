// The layout of a chart: which tallies a span can have, and where they lie. Tight: a table holds what the trees over
// its own span can count, less what can no longer end inside the window.
#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "charts/items.h"
#include "charts/ranges.h"
#include "plan/placement.h"
#include "tables/upward.h"

namespace tallytree {

class ChartOutline::Builder {
  public:
    Builder(std::shared_ptr<const ChartGrammar> grammar, ChartRequest request, const Poll &poll)
        : request_(std::move(request)),
          meter_(poll),
          l_(begin_chart(std::move(grammar), request_.words, request_.caps)),
          grammar_(*l_.skeleton->chart->grammar),
          spans_(l_.skeleton->chart->spans) {
        c_.symbols = grammar_.symbols;
        c_.spans = spans_.count();
        c_.statistics = l_.statistics;
        c_.prefix_size = l_.prefix_size;
        c_.shifts = std::move(request_.shifts);
        const auto box = l_.tables.size() * static_cast<std::size_t>(l_.prefix_size);
        c_.box_low.assign(box, 0);
        c_.box_extent.assign(box, 0);
        take_items();
        find_shifts();
        ranges_.emplace(l_, shifts_);
        groups_ = groups_by_split(grammar_, spans_, request_.items);
    }

    // Splits with tallies for the whole and both parts, and the groups of rules over them.
    std::pair<double, double> least() const {
        std::vector<char> some;
        for (std::size_t t = 0; t < l_.tables.size(); t++) some.push_back(has_tallies(static_cast<std::int32_t>(t)));
        double splits = 0, groups = 0;
        for (Index width = 2; width <= spans_.words; width++)
            for (Index start = 0; start < spans_.starts(width); start++)
                for (Index split = 1; split < width && some[spans_.table(Layer::Open, start, width)]; split++)
                    if (some[spans_.table(Layer::Closed, start, split)] &&
                        some[spans_.table(Layer::Closed, start + split, width - split)]) {
                        splits++;
                        groups += groups_[spans_.number(start, width) * spans_.words + split];
                    }
        return {splits, groups};
    }

    Layout build(double memory_limit) {
        request_.memory_limit = memory_limit;
        for (std::int32_t t = 0; t < static_cast<std::int32_t>(l_.tables.size()); t++) {
            c_.rank_begin.push_back(static_cast<Index>(c_.rank.size()));
            if (begin_hulls(t)) offer_all(t);
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
        std::vector<char> seen(grammar_.bags + 1);  // by bag, none at the end
        for (Index width = 1; width <= spans_.words; width++)
            for (Index start = 0; start < spans_.starts(width); start++) {
                found.clear();
                std::ranges::fill(seen, 0);
                const Index open = spans_.table(Layer::Open, start, width);
                const Index closed = spans_.table(Layer::Closed, start, width);
                for (const auto &path : grammar_.paths) {
                    const auto bag = width == 1 ? path.word_bag : path.bag;
                    char &met = seen[bag < 0 ? grammar_.bags : bag];
                    if (met || path.from_closed || c_.state_of(closed, path.target) < 0 ||
                        c_.state_of(open, path.source) < 0)
                        continue;
                    met = 1;
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

    bool has_tallies(std::int32_t t) const {
        Bounds window;
        if (l_.tables[t].states == 0 || !ranges_->find_window(t, request_, window)) return false;
        for (Index i = 0; i < p(); i++)
            if (std::max(std::min(ranges_->low(t, i), l_.caps[i]), window.low[i]) >
                std::min({ranges_->high(t, i), l_.caps[i], window.high[i]}))
                return false;
        return true;
    }

    // ---- stretches ------------------------------------------------------------------------------------------------
    // An empty hull for every prefix in the table's box.
    bool begin_hulls(std::int32_t t) {
        hulls_.clear();
        if (l_.tables[t].states == 0 || !ranges_->find_window(t, request_, window_)) return false;
        double volume = 1;
        for (Index i = 0; i < l_.prefix_size; i++) {
            const Index least = std::max(std::min(ranges_->low(t, i), l_.caps[i]), window_.low[i]);
            const Index most = std::min({ranges_->high(t, i), l_.caps[i], window_.high[i]});
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
        const std::int32_t *groups = groups_.data() + spans_.number(start, width) * spans_.words;
        double operations = 0;
        for (Index split = 1; split < width; split++)
            if (groups[split])
                operations += offer_pairs(t, spans_.table(Layer::Closed, start, split),
                                          spans_.table(Layer::Closed, start + split, width - split), groups[split]);
        note_operations(t, operations);
    }

    // All stretches of one table with all of another; returns the operations of their convolutions.
    double offer_pairs(std::int32_t t, std::int32_t a, std::int32_t b, std::int32_t groups) {
        const Stretches x(l_, a), y(l_, b);
        const Index q = l_.prefix_size;
        double operations = 0, joined = 0;
        for (Index r = 0; r < x.count; r++)
            for (Index s = 0; s < y.count; s++) {
                for (Index i = 0; i < q; i++) prefix_[i] = sum(i, x.prefix[r * q + i], y.prefix[s * q + i]);
                const Index least = x.low[r] + y.low[s];
                if (!offer(t, least, least + x.length[r] + y.length[s] - 2)) {
                    l_.pruned++;
                    continue;
                }
                operations += static_cast<double>(x.length[r]) * static_cast<double>(y.length[s]);
                joined++;
            }
        meter_.spend(static_cast<double>(x.count) * static_cast<double>(y.count) * 8);
        c_.joined += joined * groups;
        return operations * groups;
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

    ChartRequest request_;
    Meter meter_;
    Layout l_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    ChartTables c_;
    Ragged<std::int32_t> shifts_;  // per span, one distinct shift after the other
    std::optional<ChartRanges> ranges_;
    std::vector<std::int32_t> groups_;  // [span][split]
    std::vector<Index> shift_count_, prefix_;
    Bounds window_;
    std::vector<Hull> hulls_;
};

ChartOutline::ChartOutline(std::shared_ptr<const ChartGrammar> grammar, ChartRequest request, const Poll &poll)
    : builder_(std::make_unique<Builder>(std::move(grammar), std::move(request), poll)) {}
ChartOutline::ChartOutline(ChartOutline &&) noexcept = default;
ChartOutline::~ChartOutline() = default;

std::pair<double, double> ChartOutline::least() const {
    if (!builder_) throw std::logic_error("this outline has been used");
    return builder_->least();
}

Layout ChartOutline::layout(double memory_limit) {
    if (!builder_) throw std::logic_error("this outline has been used");
    return std::exchange(builder_, nullptr)->build(memory_limit);
}

}  // namespace tallytree
