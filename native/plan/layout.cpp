// Tallies are propagated up the program exactly as scores will be: an elimination adds the local shifts to
// the input's stretches, a join adds the stretches of two tables. What the window says cannot be used any more is
// dropped on the way. Then every stretch gets its place.
#include "plan/layout.h"

#include "plan/known_steps.h"
#include "plan/placement.h"
#include "plan/shift_classes.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace tallytree {
namespace {

constexpr Index kShortRange = 3;   // a statistic with fewer tallies gives rows that waste most of a vector
constexpr double kShortRow = 1.5;  // cells on average below which rows are no better than cells

// A layout with nothing in it but the memory of another one, and what is in its pools.
Layout emptied(Layout used) {
    Layout fresh;
    const auto recycle = [](auto &to, auto &from) {
        from.clear();
        to = std::move(from);
    };
    recycle(fresh.permutation, used.permutation);
    recycle(fresh.caps, used.caps);
    recycle(fresh.floors, used.floors);
    recycle(fresh.user_caps, used.user_caps);
    recycle(fresh.tables, used.tables);
    recycle(fresh.steps, used.steps);
    recycle(fresh.class_of, used.class_of);
    recycle(fresh.class_prefix, used.class_prefix);
    recycle(fresh.class_shift, used.class_shift);
    recycle(fresh.segment_begin, used.segment_begin);
    fresh.pair_a = std::move(used.pair_a);
    fresh.pair_b = std::move(used.pair_b);
    fresh.pair_begin = std::move(used.pair_begin);
    fresh.low = std::move(used.low);
    fresh.length = std::move(used.length);
    fresh.natural = std::move(used.natural);
    fresh.start = std::move(used.start);
    fresh.prefix = std::move(used.prefix);
    fresh.known = std::move(used.known);
    return fresh;
}

// ---- the builder -----------------------------------------------------------------------------------------

class Builder {
  public:
    Builder(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll, Layout used = {})
        : request_(request),
          skeleton_(*skeleton),
          ranges_(skeleton_, request),
          meter_(poll),
          l_(emptied(std::move(used))) {
        l_.skeleton = std::move(skeleton);
        l_.lanes = request.lanes;
        l_.statistics = static_cast<Index>(request.caps.size());
        l_.clipped = !request.window.open;
    }

    Layout build(bool rows) {
        ranges_.choose_axes(l_, rows);
        windows_.emplace(request_, ranges_, l_);
        classes_.emplace(request_, ranges_, l_);
        plain_ = !l_.clipped && std::all_of(l_.caps.begin(), l_.caps.end(), [](Index cap) { return cap == kUncapped; });
        if (!remembers() || !l_.known->fit(l_)) forget(l_);
        l_.tables.resize(skeleton_.steps.size());
        l_.steps.resize(skeleton_.steps.size());
        for (std::size_t t = 0; t < skeleton_.steps.size(); t++) {
            if (remembers()) recall_table(static_cast<std::int32_t>(t));
            else make_table(static_cast<std::int32_t>(t));
        }
        if (stretch_sums_) l_.pruned = stretch_sums_->pruned();
        if (!remembers()) place_stretches(l_);  // else they have their places
        place_tables(l_, request_.memory_limit);
        return std::move(l_);
    }

    bool has_gaps() const { return classes_ && classes_->has_gaps(); }

    // Whether no statistic has a range worth a row.
    bool all_short() const {
        for (Index k = 0; k < l_.statistics; k++)
            if (ranges_.width(k) >= kShortRange) return false;
        return true;
    }

  private:
    // ---- one table ---------------------------------------------------------------------------------------
    StretchView view(Index t) const {
        const auto &table = l_.tables[t];
        return {table.stretches, l_.prefix.data() + table.stretches_begin * l_.prefix_size,
                l_.low.data() + table.stretches_begin, l_.length.data() + table.stretches_begin};
    }

    void make_table(std::int32_t t) {
        if (skeleton_.steps[t].verb == Verb::Eliminate) classes_->make(t);
        make_stretches(t);
        count_operations(t);
    }

    void make_stretches(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        auto &table = l_.tables[t];
        table.states = static_cast<Index>(skeleton_.states[t]);
        table.stretches_begin = static_cast<Index>(l_.low.size());
        if (step.verb == Verb::Unit) {
            table.stretches = table.cells = 1;
            l_.prefix.insert(l_.prefix.end(), l_.prefix_size, 0);
            l_.low.push_back(0);
            l_.length.push_back(1);
            l_.natural.push_back(1);
        } else if (step.verb == Verb::Eliminate) {
            const auto &s = l_.steps[t];
            ones_.assign(s.classes, 1);
            combine(t, view(step.a),
                    {s.classes, l_.class_prefix.data() + s.class_prefix, l_.class_shift.data() + s.class_shift,
                     ones_.data()});
        } else {
            combine(t, view(step.a), view(step.b));
        }
    }

    // ---- tables that are known from earlier layouts ------------------------------------------------------
    bool remembers() const { return l_.known && plain_ && l_.rows; }

    void recall_table(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        KnownSteps &known = *l_.known;
        auto &s = l_.steps[t];
        key_.clear();
        if (step.verb == Verb::Join) {
            key_.assign({shape_[step.a], -1 - shape_[step.b]});
        } else if (step.verb == Verb::Eliminate) {
            classes_->make(t);
            key_.assign({shape_[step.a], s.classes});
            key_.insert(key_.end(), l_.class_prefix.begin() + s.class_prefix, l_.class_prefix.end());
            key_.insert(key_.end(), l_.class_shift.begin() + s.class_shift, l_.class_shift.end());
        }
        const auto [number, fresh] = known.steps.insert(key_);
        if (fresh) {
            make_stretches(t);
            known.remember(l_, t);
        }
        shape_.push_back(known.take(l_, t, number));
        if (!fresh && step.verb != Verb::Unit) {
            guard_pairs(t, static_cast<double>(l_.tables[step.a].stretches) *
                               static_cast<double>(s.classes ? s.classes : l_.tables[step.b].stretches));
            check_cells(t, static_cast<double>(l_.tables[t].cells));
            count_bytes(t, l_.step(t).pairs.count());
        }
        count_operations(t);
    }

    // The stretches of table t are the sums of every stretch of `a` with every stretch of `b`.
    void combine(std::int32_t t, StretchView a, StretchView b) {
        guard_pairs(t, static_cast<double>(a.count) * static_cast<double>(b.count));
        if (in_line(a, b, l_.steps[t].classes > 0)) return add_lines(t, a, b);
        if (!stretch_sums_) stretch_sums_ = std::make_unique<StretchSums>(l_.rows, l_.caps, l_.clipped);
        const double room = request_.memory_limit - 2 * static_cast<double>(l_.plan_bytes);
        stretch_sums_->add(a, b, windows_->of(t), room, meter_, [&](Index prefixes) { guard_prefixes(t, prefixes); });
        finish(t, a, b);
    }

    // ---- the common case: two statistics, such as true and false positives -------------------------------
    // Without caps and windows, and where the prefixes of `a` are consecutive numbers (those of `b` as well in a join,
    // and not too far apart in an elimination), so are those of the sums: which stretches add up to which needs no
    // search.
    bool in_line(StretchView a, StretchView b, bool shifts) const {
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

    void add_lines(std::int32_t t, StretchView a, StretchView b) {
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

    void open_pairs(StepLayout &s, Index stretches, Index pairs) {
        s.groups = s.classes ? stretches * s.classes : stretches;
        s.begin = static_cast<Index>(l_.pair_begin.size());
        s.pairs = static_cast<Index>(l_.pair_a.size());
        l_.pair_begin.resize(s.begin + s.groups + 1, 0);
        l_.pair_a.resize(s.pairs + pairs);
        l_.pair_b.resize(s.pairs + pairs);
    }

    // ---- all cases -----------------------------------------------------------------------------------------
    // Stores the stretches and sorts the pairs by the stretch (and class) they go to.
    void finish(std::int32_t t, StretchView a, StretchView b) {
        const StretchSums &sums = *stretch_sums_;
        auto &table = l_.tables[t];
        table.stretches = sums.stretches();
        store_stretches(t, sums.lows(), sums.highs(), sums.naturals());
        l_.prefix.insert(l_.prefix.end(), sums.prefixes().begin(), sums.prefixes().end());
        count_bytes(t, sort_pairs(l_.steps[t], table.stretches, a.count, b.count));
    }

    void store_stretches(std::int32_t t, const Index *low, const Index *high, const Index *natural) {
        auto &table = l_.tables[t];
        double cells = 0;
        for (Index r = 0; r < table.stretches; r++) cells += static_cast<double>(high[r] - low[r] + 1);
        check_cells(t, cells);
        const std::size_t first = l_.low.size(), last = first + table.stretches;
        l_.low.resize(last);
        l_.length.resize(last);
        l_.natural.resize(last);
        for (Index r = 0; r < table.stretches; r++) {
            l_.low[first + r] = low[r];
            l_.length[first + r] = high[r] - low[r] + 1;
            l_.natural[first + r] = natural[r] - low[r] + 1;
        }
        table.cells = static_cast<Index>(cells);
    }

    void check_cells(std::int32_t t, double cells) const {
        const double bytes = cells * skeleton_.states[t] * static_cast<double>(l_.bytes(1));
        if (bytes > request_.memory_limit) throw_budget(t, bytes);
    }

    void count_bytes(std::int32_t t, Index pairs) {
        l_.plan_bytes += pairs * 8 + l_.steps[t].groups * 8 + l_.tables[t].stretches * (40 + 8 * l_.prefix_size);
        if (static_cast<double>(l_.plan_bytes) > request_.memory_limit)
            throw_budget(t, static_cast<double>(l_.plan_bytes));
    }

    Index sort_pairs(StepLayout &s, Index stretches, Index a_count, Index b_count) {
        open_pairs(s, stretches, 0);
        Index *begin = l_.pair_begin.data() + s.begin;
        const auto each_pair = [&](auto use) {
            stretch_sums_->each_pair(a_count, b_count, [&](Index ra, Index rb, Index stretch) {
                use(ra, rb, s.classes ? stretch * s.classes + rb : stretch);
            });
        };
        each_pair([&](Index, Index, Index group) { begin[group + 1]++; });
        for (Index g = 0; g < s.groups; g++) begin[g + 1] += begin[g];
        cursor_.assign(begin, begin + s.groups + 1);
        l_.pair_a.resize(s.pairs + begin[s.groups]);
        l_.pair_b.resize(s.pairs + begin[s.groups]);
        each_pair([&](Index ra, Index rb, Index group) {
            const Index at = s.pairs + cursor_[group]++;
            l_.pair_a[at] = static_cast<std::int32_t>(ra);
            l_.pair_b[at] = static_cast<std::int32_t>(rb);
        });
        return begin[s.groups];
    }

    void count_operations(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        auto &place = l_.steps[t];
        if (step.verb == Verb::Unit) return;
        const StepView s = l_.step(t);
        const Index *la = l_.length.data() + l_.tables[step.a].stretches_begin;
        double pairs = 0;
        if (step.verb == Verb::Join) {
            const Index *lb = l_.length.data() + l_.tables[step.b].stretches_begin;
            for (Index p = 0; p < s.pairs.count(); p++)
                pairs += static_cast<double>(la[s.pairs.a[p]]) * static_cast<double>(lb[s.pairs.b[p]]);
            place.operations = pairs * static_cast<double>(step.kept_states);
        } else {
            weight_.assign(s.classes, 0);
            for (Index e = 0; e < step.shift_size; e++) weight_[s.class_of[e]] += 1;
            for (Index p = 0; p < s.pairs.count(); p++)
                pairs += static_cast<double>(la[s.pairs.a[p]]) * weight_[s.pairs.b[p]];
            place.operations = pairs * static_cast<double>(step.kept_states) *
                               static_cast<double>(step.gone.count * step.fresh) / static_cast<double>(step.shift_size);
        }
        l_.operations += place.operations;
        if (l_.costliest < 0 || place.operations > l_.steps[l_.costliest].operations) l_.costliest = t;
    }

    // ---- budget ------------------------------------------------------------------------------------------
    // The lists of a plan must fit too, while they grow (by doubling) as well.
    void guard_pairs(std::int32_t t, double pairs) const {
        const double bytes = 2 * static_cast<double>(l_.plan_bytes) + 20 * pairs;
        if (bytes > request_.memory_limit && pairs > 1024) throw_budget(t, bytes);
        if (pairs > 2e9) throw_budget(t, bytes);
    }
    void guard_prefixes(std::int32_t t, Index prefixes) const {
        const Index each = 24 * (l_.prefix_size + 4) + 16 * l_.steps[t].classes;  // a cursor for each group
        const double bytes = 2 * static_cast<double>(l_.plan_bytes) + static_cast<double>(prefixes * each);
        if (bytes > request_.memory_limit && prefixes > 1024) throw_budget(t, bytes);
        check_cells(t, static_cast<double>(prefixes));
    }

    const LayoutRequest &request_;
    const Skeleton &skeleton_;
    const TallyRanges ranges_;
    Meter meter_;
    Layout l_;
    bool plain_ = false;  // neither caps nor a window
    std::optional<Windows> windows_;
    std::optional<ShiftClasses> classes_;
    std::unique_ptr<StretchSums> stretch_sums_;
    std::vector<std::int32_t> shape_;  // per table, where they are known
    // reused from step to step
    std::vector<double> weight_;
    std::vector<Index> cursor_, ones_, hull_low_, hull_high_, key_;
};

double average_length(const Layout &layout) {
    double cells = 0, stretches = 0;
    for (const auto &table : layout.tables) {
        cells += static_cast<double>(table.cells);
        stretches += static_cast<double>(table.stretches);
    }
    return stretches > 0 ? cells / stretches : 0;
}

double total_cells(const Layout &layout) {
    double cells = 0;
    for (const auto &table : layout.tables)
        cells += static_cast<double>(table.cells) * static_cast<double>(table.states);
    return cells;
}

}  // namespace

static Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll,
                           Layout used) {
    if (!skeleton->feasible) throw BudgetExceeded("a step of the skeleton is beyond any memory");
    std::optional<Builder> builder(std::in_place, skeleton, request, poll, std::move(used));
    if (request.mode == Mode::Cells || request.caps.empty()) return builder->build(false);
    if (request.mode == Mode::Rows) return builder->build(true);
    // Rows unless stretches are too short to be worth a vector, or mostly holes.
    if (builder->all_short()) return builder->build(false);
    const auto cells = [&] {
        builder.reset();  // its memory first: both together may be beyond the limit
        return Builder(skeleton, request, poll).build(false);
    };
    Layout rows;
    try {
        rows = builder->build(true);
    } catch (const BudgetExceeded &) {
        return cells();
    }
    const double length = average_length(rows);
    if (length >= kShortRow && !builder->has_gaps()) return rows;
    try {
        Layout other = cells();
        if (length < kShortRow || 3 * total_cells(other) < total_cells(rows)) return other;
    } catch (const BudgetExceeded &) {
    }
    return rows;
}

Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll) {
    return build_layout(std::move(skeleton), request, poll, Layout{});
}

void rebuild_layout(Layout &layout, std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request,
                    const Poll &poll) {
    if (!layout.known) layout.known = std::make_shared<KnownSteps>();
    layout = build_layout(std::move(skeleton), request, poll, std::move(layout));
}

}  // namespace tallytree
