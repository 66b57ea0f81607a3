// Tallies are propagated up the program exactly as scores will be: an elimination adds the local shifts to
// the input's runs, a join adds the runs of two tables. What the window says cannot be used any more is
// dropped on the way. Then every run gets its place.
#include "layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace tallytree {
namespace {

constexpr Index kSmall = std::numeric_limits<Index>::min() / 4;
constexpr Index kLarge = std::numeric_limits<Index>::max() / 4;

struct RunView {
    Index count;
    const Index *prefix, *low, *length;
};

struct Bounds {
    std::vector<Index> low, high;
};

// ---- distinct prefixes ---------------------------------------------------------------------------------

// Numbers the distinct vectors that are offered to it: through a dense array where their box is small,
// through hashing otherwise (there may be 64 statistics: they are never packed into one integer).
class PrefixSet {
  public:
    PrefixSet(Index size, Index expected) : size_(size) {
        Index n = 16;
        while (n < 2 * expected && n < (Index{1} << 20)) n *= 2;
        slots_.assign(n, -1);
    }
    std::int32_t insert(const Index *vector) {
        if (2 * (count_ + 1) > static_cast<Index>(slots_.size())) grow();
        Index at = hash(vector) & (slots_.size() - 1);
        while (slots_[at] >= 0) {
            if (std::equal(vector, vector + size_, &data_[slots_[at] * size_])) return slots_[at];
            at = (at + 1) & (slots_.size() - 1);
        }
        data_.insert(data_.end(), vector, vector + size_);
        return slots_[at] = static_cast<std::int32_t>(count_++);
    }
    Index count() const { return count_; }
    const Index *operator[](Index i) const { return data_.data() + i * size_; }

  private:
    std::size_t hash(const Index *vector) const {
        std::uint64_t h = 0x9E3779B97F4A7C15ull;
        for (Index i = 0; i < size_; i++) h = (h ^ static_cast<std::uint64_t>(vector[i])) * 0xD6E8FEB86659FD93ull, h ^= h >> 32;
        return static_cast<std::size_t>(h);
    }
    void grow() {
        slots_.assign(slots_.size() * 2, -1);
        for (Index i = 0; i < count_; i++) {
            Index at = hash((*this)[i]) & (slots_.size() - 1);
            while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = static_cast<std::int32_t>(i);
        }
    }
    Index size_, count_ = 0;
    std::vector<Index> data_;
    std::vector<std::int32_t> slots_;
};

// ---- the builder -----------------------------------------------------------------------------------------

class Builder {
  public:
    Builder(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request)
        : request_(request), skeleton_(*skeleton), scopes_(skeleton_.shift_scopes.blocks), meter_(request.poll) {
        l_.skeleton = std::move(skeleton);
        l_.statistics = static_cast<Index>(request.caps.size());
        l_.clipped = !request.window.open;
        measure_blocks();
    }

    Layout build(bool rows) {
        choose_axes(rows);
        bound_tables();
        l_.tables.resize(skeleton_.steps.size());
        l_.steps.resize(skeleton_.steps.size());
        for (std::size_t t = 0; t < skeleton_.steps.size(); t++) make_table(static_cast<std::int32_t>(t));
        place_runs();
        place_tables();
        return std::move(l_);
    }

    bool has_gaps() const { return gaps_; }

  private:
    Index count() const { return l_.statistics; }

    // ---- what the integer tables say ------------------------------------------------------------------
    void measure_blocks() {
        low_of_.resize(request_.shifts.size());
        high_of_.resize(request_.shifts.size());
        total_low_.assign(count(), 0);
        total_high_.assign(count(), 0);
        for (std::size_t block = 0; block < request_.shifts.size(); block++) {
            const auto &tables = request_.shifts[block];
            for (Index k = 0; k < tables.count; k++) {
                const auto *row = tables.row(k);
                const auto [low, high] = std::minmax_element(row, row + tables.size);
                low_of_[block].push_back(tables.size ? *low : 0);
                high_of_[block].push_back(tables.size ? *high : 0);
            }
            const auto statistic = skeleton_.statistic_of[block];
            for (Index k = 0; k < scopes_[block].count; k++) {
                total_low_[statistic] += row_low(block, k);
                total_high_[statistic] += row_high(block, k);
            }
        }
    }
    Index row_low(std::size_t block, Index k) const { return low_of_[block][low_of_[block].size() == 1 ? 0 : k]; }
    Index row_high(std::size_t block, Index k) const { return high_of_[block][high_of_[block].size() == 1 ? 0 : k]; }
    bool capped(Index statistic) const { return request_.caps[statistic] != kUncapped; }

    // In rows mode the run follows the statistic with the widest range, uncapped ones first.
    void choose_axes(bool rows) {
        l_.rows = rows && count() > 0;
        l_.permutation.resize(count());
        std::iota(l_.permutation.begin(), l_.permutation.end(), 0);
        if (l_.rows) {
            const auto width = [&](std::int32_t k) {
                Index spread = total_high_[k] - total_low_[k];
                if (capped(k)) spread = std::min(spread, std::max<Index>(request_.caps[k] - total_low_[k], 0));
                return std::pair(!capped(k) && spread > 8, spread);
            };
            auto best = std::max_element(l_.permutation.begin(), l_.permutation.end(),
                                         [&](auto i, auto j) { return width(i) < width(j); });
            std::rotate(best, best + 1, l_.permutation.end());
        }
        l_.prefix_size = count() - (l_.rows ? 1 : 0);
        position_.resize(count());
        for (Index i = 0; i < count(); i++) position_[l_.permutation[i]] = i;
        for (auto k : l_.permutation) {
            l_.user_caps.push_back(request_.caps[k]);
            l_.floors.push_back(capped(k) ? total_low_[k] : 0);
            l_.caps.push_back(capped(k) ? std::max<Index>(request_.caps[k] - total_low_[k], 0) : kUncapped);
        }
        for (auto ref : skeleton_.constant_shifts) {  // in a capped statistic the total already holds them
            const auto k = skeleton_.statistic_of[ref.block];
            if (!capped(k)) l_.floors[position_[k]] += *request_.shifts[ref.block].row(ref.row);
        }
    }

    // The lowest and highest sum below each table, and from them the window of what is still of use.
    void bound_tables() {
        const Index n = static_cast<Index>(skeleton_.steps.size());
        below_low_.assign(n * count(), 0);
        below_high_.assign(n * count(), 0);
        for (Index t = 0; t < n; t++) {
            const Step &step = skeleton_.steps[t];
            for (auto input : {step.a, step.b})
                for (Index i = 0; i < count() && input >= 0; i++) {
                    below_low_[t * count() + i] += below_low_[input * count() + i];
                    below_high_[t * count() + i] += below_high_[input * count() + i];
                }
            for (auto ref : skeleton_.shift_refs[t]) {
                const Index i = position_[skeleton_.statistic_of[ref.block]];
                const Index low = row_low(ref.block, ref.row), high = row_high(ref.block, ref.row);
                below_low_[t * count() + i] += l_.caps[i] == kUncapped ? low : 0;
                below_high_[t * count() + i] += l_.caps[i] == kUncapped ? high : high - low;
            }
        }
    }

    // Into window_: which sums of table t can still end inside the caller's window.
    void find_window(Index t) {
        if (request_.window.open && !window_.low.empty()) return;
        window_.low.assign(count(), kSmall);
        window_.high.assign(count(), kLarge);
        const Index root = (static_cast<Index>(skeleton_.steps.size()) - 1) * count();
        for (Index i = 0; i < count(); i++) {
            const auto k = l_.permutation[i];
            const Index rest_low = below_low_[root + i] - below_low_[t * count() + i];
            const Index rest_high = below_high_[root + i] - below_high_[t * count() + i];
            if (capped(k) && request_.caps[k] < l_.floors[i]) {  // every tally is the cap itself
                const bool allowed = request_.window.low[k] <= request_.caps[k] && request_.caps[k] <= request_.window.high[k];
                if (!allowed) window_.low[i] = kLarge;
                continue;
            }
            if (request_.window.low[k] > kSmall) {
                const Index low = request_.window.low[k] - l_.floors[i];
                const bool never = l_.caps[i] != kUncapped && low > l_.caps[i];  // beyond the cap
                window_.low[i] = never ? kLarge : low - rest_high;
            }
            if (request_.window.high[k] < kLarge) {
                const Index high = request_.window.high[k] - l_.floors[i];
                if (l_.caps[i] == kUncapped || high < l_.caps[i]) window_.high[i] = high - rest_low;
            }
        }
    }

    // ---- one table ---------------------------------------------------------------------------------------
    RunView view(Index t) const {
        const auto &table = l_.tables[t];
        return {table.runs, l_.prefix.data() + table.runs_begin * l_.prefix_size, l_.low.data() + table.runs_begin,
                l_.length.data() + table.runs_begin};
    }

    void make_table(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        auto &table = l_.tables[t];
        table.states = static_cast<Index>(skeleton_.states[t]);
        table.runs_begin = static_cast<Index>(l_.low.size());
        if (step.verb == Verb::Unit) {
            table.runs = table.cells = 1;
            l_.prefix.insert(l_.prefix.end(), l_.prefix_size, 0);
            l_.low.push_back(0);
            l_.length.push_back(1);
            l_.natural.push_back(1);
            return;
        }
        if (step.verb == Verb::Eliminate) {
            make_classes(t);
            auto &s = l_.steps[t];
            ones_.assign(s.classes, 1);
            combine(t, view(step.a), {s.classes, l_.class_prefix.data() + s.class_prefix,
                                      l_.class_shift.data() + s.class_shift, ones_.data()});
        } else {
            combine(t, view(step.a), view(step.b));
        }
        count_operations(t);
    }

    // The distinct values of the local shift table.
    void make_classes(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        auto &s = l_.steps[t];
        s.class_of = static_cast<Index>(l_.class_of.size());
        s.class_prefix = static_cast<Index>(l_.class_prefix.size());
        s.class_shift = static_cast<Index>(l_.class_shift.size());
        const auto refs = skeleton_.shift_refs[t];
        sums_.assign(refs.empty() ? count() : step.shift_size * count(), 0);
        Index ref_index = skeleton_.shift_refs.begin[t];
        for (auto ref : refs) add_shift(ref, ref_index++, sums_);
        l_.class_of.resize(s.class_of + step.shift_size, 0);
        s.classes = refs.empty() ? 1 : number_classes(step.shift_size, l_.class_of.data() + s.class_of);
        const Index *distinct = refs.empty() ? sums_.data() : distinct_.data();
        for (Index d = 0; d < s.classes; d++) {
            const Index *shift = distinct + d * count();
            l_.class_prefix.insert(l_.class_prefix.end(), shift, shift + l_.prefix_size);
            l_.class_shift.push_back(l_.rows ? shift[l_.prefix_size] : 0);
        }
        note_gaps(std::span(l_.class_shift.data() + s.class_shift, static_cast<std::size_t>(s.classes)));
    }

    // Numbers the distinct rows of sums_ into `numbers`; the rows go to distinct_.
    Index number_classes(Index entries, std::int32_t *numbers) {
        constexpr Index kFew = 12;
        const Index n = count();
        distinct_.clear();
        Index found = 0;
        for (Index e = 0; e < entries; e++) {
            Index d = 0;
            while (d < found && !std::equal(&sums_[e * n], &sums_[e * n] + n, &distinct_[d * n])) d++;
            if (d == found && ++found > kFew) return number_many_classes(entries, numbers);
            if (d == found - 1 && static_cast<Index>(distinct_.size()) < found * n)
                distinct_.insert(distinct_.end(), sums_.begin() + e * n, sums_.begin() + (e + 1) * n);
            numbers[e] = static_cast<std::int32_t>(d);
        }
        return found;
    }
    Index number_many_classes(Index entries, std::int32_t *numbers) {
        PrefixSet set(count(), entries);
        for (Index e = 0; e < entries; e++) numbers[e] = set.insert(&sums_[e * count()]);
        distinct_.assign(set[0], set[0] + set.count() * count());
        return set.count();
    }

    void add_shift(FactorRef ref, Index ref_index, std::vector<Index> &sums) {
        const auto *table = request_.shifts[ref.block].row(ref.row);
        const Index i = position_[skeleton_.statistic_of[ref.block]];
        const Index floor = l_.caps[i] == kUncapped ? 0 : row_low(ref.block, ref.row);
        Index *out = sums.data() + i;
        walk_factor(skeleton_.shift_loops[ref_index], [&](Index at, Index count, Index stride) {
            for (Index x = 0; x < count; x++, out += this->count()) *out += table[at + x * stride] - floor;
        });
    }

    void note_gaps(std::span<const Index> values) {
        if (!l_.rows || gaps_ || values.size() < 2) return;
        std::vector<Index> shifts(values.begin(), values.end());
        std::sort(shifts.begin(), shifts.end());
        for (std::size_t i = 1; i < shifts.size(); i++) gaps_ |= shifts[i] - shifts[i - 1] > 1;
    }

    Index capped_sum(Index i, Index x, Index y) const { return l_.caps[i] == kUncapped ? x + y : std::min(l_.caps[i], x + y); }

    // Sums of every run of `a` with every run of `b`: the runs of table t, and which pairs go where.
    void combine(std::int32_t t, RunView a, RunView b) {
        const Index q = l_.prefix_size, pairs = a.count * b.count;
        guard_pairs(t, static_cast<double>(a.count) * static_cast<double>(b.count));
        find_window(t);
        meter_.spend(static_cast<double>(pairs) * 20 + 100);
        const Bounds &w = window_;
        target_.assign(pairs, -1);
        hull_low_.clear();
        hull_high_.clear();
        hull_natural_.clear();
        if (q == 0) {
            offer_all_to_one(a, b, w);
            finish(t, a, b, hull_low_.empty() ? 0 : 1, nullptr);
            return;
        }
        std::vector<Index> low(q), extent(q);
        const double volume = prefix_box(a, b, w, low, extent);
        if (volume <= std::max<double>(64, 4.0 * static_cast<double>(pairs))) combine_dense(t, a, b, w, low, extent, static_cast<Index>(volume));
        else combine_hashed(t, a, b, w);
    }

    void offer_all_to_one(RunView a, RunView b, const Bounds &w) {
        for (Index ra = 0; ra < a.count; ra++)
            for (Index rb = 0; rb < b.count; rb++) target_[ra * b.count + rb] = offer(0, a, ra, b, rb, w) ? 0 : -1;
    }

    // Widens hull `id` by the interval that two runs give; false where the window leaves nothing of it.
    bool offer(Index id, RunView a, Index ra, RunView b, Index rb, const Bounds &w) {
        Index low = a.low[ra] + b.low[rb];
        Index high = low + a.length[ra] + b.length[rb] - 2, natural = high;
        if (l_.rows) {
            const Index i = l_.prefix_size, cap = l_.caps[i];
            if (cap != kUncapped) {
                low = std::min(low, cap);
                high = std::min(high, cap);
            }
            if (low < w.low[i] || high > w.high[i]) l_.pruned += std::max<Index>(w.low[i] - low, 0) > 0 || high > w.high[i];
            low = std::max(low, w.low[i]);
            high = std::min(high, w.high[i]);
            if (low > high) return false;
            natural = cap != kUncapped && high == cap ? std::max(natural, high) : high;
        }
        if (id >= static_cast<Index>(hull_low_.size())) {
            hull_low_.resize(id + 1, kLarge);
            hull_high_.resize(id + 1, kSmall);
            hull_natural_.resize(id + 1, kSmall);
        }
        hull_low_[id] = std::min(hull_low_[id], low);
        hull_high_[id] = std::max(hull_high_[id], high);
        hull_natural_[id] = std::max(hull_natural_[id], natural);
        return true;
    }

    double prefix_box(RunView a, RunView b, const Bounds &w, std::vector<Index> &low, std::vector<Index> &extent) const {
        const Index q = l_.prefix_size;
        double volume = a.count && b.count ? 1 : 0;
        const auto range = [&](RunView v, Index i) {
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
            low[i] = std::max(capped_sum(i, alo, blo), w.low[i]);
            const Index high = std::min(capped_sum(i, ahi, bhi), w.high[i]);
            extent[i] = std::max<Index>(high - low[i] + 1, 0);
            volume *= static_cast<double>(extent[i]);
        }
        return volume;
    }

    void combine_dense(std::int32_t t, RunView a, RunView b, const Bounds &w, const std::vector<Index> &low,
                       const std::vector<Index> &extent, Index volume) {
        const Index q = l_.prefix_size;
        hull_low_.assign(volume, kLarge);
        hull_high_.assign(volume, kSmall);
        hull_natural_.assign(volume, kSmall);
        if (plain()) offer_plainly(a, b, low, extent);
        else for (Index ra = 0; ra < a.count; ra++)
            for (Index rb = 0; rb < b.count; rb++) {
                Index id = 0;
                bool inside = true;
                for (Index i = 0; i < q; i++) {
                    const Index at = capped_sum(i, a.prefix[ra * q + i], b.prefix[rb * q + i]) - low[i];
                    inside &= at >= 0 && at < extent[i];
                    id = id * extent[i] + at;
                }
                if (!inside) l_.pruned++;
                else if (offer(id, a, ra, b, rb, w)) target_[ra * b.count + rb] = static_cast<std::int32_t>(id);
            }
        // Number the prefixes that were reached, in lexicographic order.
        rank_.assign(volume, -1);
        reached_.clear();
        Index runs = 0;
        for (Index id = 0; id < volume; id++) {
            if (hull_low_[id] == kLarge) continue;
            rank_[id] = static_cast<std::int32_t>(runs);
            hull_low_[runs] = hull_low_[id];
            hull_high_[runs] = hull_high_[id];
            hull_natural_[runs] = hull_natural_[id];
            runs++;
            Index rest = id;
            const Index at = static_cast<Index>(reached_.size());
            reached_.resize(at + q);
            for (Index i = q; i-- > 0;) {
                reached_[at + i] = low[i] + rest % extent[i];
                rest /= extent[i];
            }
        }
        for (auto &id : target_)
            if (id >= 0) id = rank_[id];
        finish(t, a, b, runs, reached_.data());
    }

    // Without caps and windows sums are plain, and so is the place of a sum of prefixes.
    bool plain() const {
        return request_.window.open && std::all_of(l_.caps.begin(), l_.caps.end(), [](Index c) { return c == kUncapped; });
    }
    void offer_plainly(RunView a, RunView b, const std::vector<Index> &low, const std::vector<Index> &extent) {
        const Index q = l_.prefix_size;
        const auto place = [&](const Index *prefix, bool from_low) {
            Index id = 0;
            for (Index i = 0; i < q; i++) id = id * extent[i] + prefix[i] - (from_low ? low[i] : 0);
            return id;
        };
        cursor_.resize(b.count);
        for (Index rb = 0; rb < b.count; rb++) cursor_[rb] = place(b.prefix + rb * q, false);
        for (Index ra = 0; ra < a.count; ra++) {
            const Index first = place(a.prefix + ra * q, true);
            for (Index rb = 0; rb < b.count; rb++) {
                const Index id = first + cursor_[rb], bottom = a.low[ra] + b.low[rb];
                const Index top = bottom + a.length[ra] + b.length[rb] - 2;
                hull_low_[id] = std::min(hull_low_[id], bottom);
                hull_high_[id] = std::max(hull_high_[id], top);
                target_[ra * b.count + rb] = static_cast<std::int32_t>(id);
            }
        }
        hull_natural_ = hull_high_;
    }

    void combine_hashed(std::int32_t t, RunView a, RunView b, const Bounds &w) {
        const Index q = l_.prefix_size;
        PrefixSet set(q, a.count + b.count);
        std::vector<Index> sum(q);
        for (Index ra = 0; ra < a.count; ra++) {
            meter_.spend(static_cast<double>(b.count * (20 + 4 * q)));
            for (Index rb = 0; rb < b.count; rb++) {
                bool inside = true;
                for (Index i = 0; i < q; i++) {
                    sum[i] = capped_sum(i, a.prefix[ra * q + i], b.prefix[rb * q + i]);
                    inside &= sum[i] >= w.low[i] && sum[i] <= w.high[i];
                }
                if (!inside) {
                    l_.pruned++;
                    continue;
                }
                const auto id = set.insert(sum.data());
                if (set.count() % 1024 == 0) guard_prefixes(t, set.count());
                if (offer(id, a, ra, b, rb, w)) target_[ra * b.count + rb] = id;
            }
        }
        std::vector<std::int32_t> sorted;
        for (Index id = 0; id < set.count(); id++)
            if (id < static_cast<Index>(hull_low_.size()) && hull_low_[id] != kLarge) sorted.push_back(static_cast<std::int32_t>(id));
        std::sort(sorted.begin(), sorted.end(), [&](auto x, auto y) {
            return std::lexicographical_compare(set[x], set[x] + q, set[y], set[y] + q);
        });
        rank_.assign(set.count(), -1);
        reached_.clear();
        std::vector<Index> lo, hi, natural;
        for (std::size_t r = 0; r < sorted.size(); r++) {
            rank_[sorted[r]] = static_cast<std::int32_t>(r);
            reached_.insert(reached_.end(), set[sorted[r]], set[sorted[r]] + q);
            lo.push_back(hull_low_[sorted[r]]);
            hi.push_back(hull_high_[sorted[r]]);
            natural.push_back(hull_natural_[sorted[r]]);
        }
        hull_low_ = lo;
        hull_high_ = hi;
        hull_natural_ = natural;
        for (auto &id : target_)
            if (id >= 0) id = rank_[id];
        finish(t, a, b, static_cast<Index>(sorted.size()), reached_.data());
    }

    // Stores the runs and sorts the pairs by the run (and class) they go to.
    void finish(std::int32_t t, RunView a, RunView b, Index runs, const Index *prefixes) {
        auto &table = l_.tables[t];
        auto &s = l_.steps[t];
        table.runs = runs;
        const Index groups = s.groups = s.classes ? runs * s.classes : runs;
        const auto group_of = [&](Index run, Index rb) { return s.classes ? run * s.classes + rb : run; };
        s.begin = static_cast<Index>(l_.pair_begin.size());
        s.pairs = static_cast<Index>(l_.pair_a.size());
        l_.pair_begin.resize(s.begin + groups + 1, 0);
        Index *begin = l_.pair_begin.data() + s.begin;
        const auto each_pair = [&](auto use) {
            for (Index ra = 0, p = 0; ra < a.count; ra++)
                for (Index rb = 0; rb < b.count; rb++, p++)
                    if (target_[p] >= 0) use(ra, rb, group_of(target_[p], rb));
        };
        each_pair([&](Index, Index, Index group) { begin[group + 1]++; });
        for (Index g = 0; g < groups; g++) begin[g + 1] += begin[g];
        cursor_.assign(begin, begin + groups + 1);
        const Index pairs = begin[groups];
        l_.pair_a.resize(s.pairs + pairs);
        l_.pair_b.resize(s.pairs + pairs);
        each_pair([&](Index ra, Index rb, Index group) {
            const Index at = s.pairs + cursor_[group]++;
            l_.pair_a[at] = static_cast<std::int32_t>(ra);
            l_.pair_b[at] = static_cast<std::int32_t>(rb);
        });
        double cells = 0;
        for (Index r = 0; r < runs; r++) cells += static_cast<double>(hull_high_[r] - hull_low_[r] + 1);
        if (cells * 8 * skeleton_.states[t] > request_.memory_limit) throw_budget(t, cells * 8 * skeleton_.states[t]);
        for (Index r = 0; r < runs; r++) {
            l_.low.push_back(hull_low_[r]);
            l_.length.push_back(hull_high_[r] - hull_low_[r] + 1);
            l_.natural.push_back(hull_natural_[r] - hull_low_[r] + 1);
            table.cells += l_.length.back();
        }
        if (prefixes) l_.prefix.insert(l_.prefix.end(), prefixes, prefixes + runs * l_.prefix_size);
        l_.plan_bytes += pairs * 8 + groups * 8 + runs * (40 + 8 * l_.prefix_size);
        if (static_cast<double>(l_.plan_bytes) > request_.memory_limit) throw_budget(t, static_cast<double>(l_.plan_bytes));
    }

    void count_operations(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        auto &place = l_.steps[t];
        const StepView s = l_.step(t);
        const Index *la = l_.length.data() + l_.tables[step.a].runs_begin;
        double pairs = 0;
        if (step.verb == Verb::Join) {
            const Index *lb = l_.length.data() + l_.tables[step.b].runs_begin;
            for (Index p = 0; p < s.pairs.count(); p++)
                pairs += static_cast<double>(la[s.pairs.a[p]]) * static_cast<double>(lb[s.pairs.b[p]]);
            place.operations = pairs * static_cast<double>(step.kept_states);
        } else {
            weight_.assign(s.classes, 0);
            for (Index e = 0; e < step.shift_size; e++) weight_[s.class_of[e]] += 1;
            for (Index p = 0; p < s.pairs.count(); p++)
                pairs += static_cast<double>(la[s.pairs.a[p]]) * weight_[s.pairs.b[p]];
            place.operations = pairs * static_cast<double>(step.kept_states) * static_cast<double>(step.gone.count * step.fresh) / static_cast<double>(step.shift_size);
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
        const double bytes = 2 * static_cast<double>(l_.plan_bytes) + static_cast<double>(prefixes) * 24 * static_cast<double>(l_.prefix_size + 4);
        if (bytes > request_.memory_limit && prefixes > 1024) throw_budget(t, bytes);
        const double cells = static_cast<double>(prefixes) * 8 * skeleton_.states[t];
        if (cells > request_.memory_limit) throw_budget(t, cells);
    }
    [[noreturn]] void throw_budget(std::int32_t t, double bytes) const {
        throw BudgetExceeded("step " + std::to_string(t) + " bytes " + std::to_string(bytes));
    }

    // ---- places ------------------------------------------------------------------------------------------
    void place_runs() {
        l_.start.assign(l_.low.size(), 0);
        for (std::size_t t = 0; t < l_.tables.size(); t++) {
            if (l_.rows) place_rows(static_cast<std::int32_t>(t));
            else place_cells(static_cast<std::int32_t>(t));
        }
    }

    void place_cells(std::int32_t t) {
        auto &table = l_.tables[t];
        for (Index r = 0; r < table.runs; r++) l_.start[table.runs_begin + r] = r * table.states;
        table.stride = 1;
        table.size = round_up(table.runs * table.states) + kLanes;
    }

    // An elimination reads whole vectors of its input at every shift: each run is surrounded by as many
    // neutral cells as those reads reach.
    void place_rows(std::int32_t t) {
        auto &table = l_.tables[t];
        front_.assign(table.runs, 0);
        back_.assign(table.runs, 0);
        const auto consumer = skeleton_.consumer[t];
        if (consumer >= 0 && skeleton_.steps[consumer].verb == Verb::Eliminate) reach(t, consumer);
        Index at = 0;
        for (Index r = 0; r < table.runs; r++) {
            const Index run = table.runs_begin + r;
            l_.start[run] = at + round_up(front_[r]);
            at = l_.start[run] + round_up(l_.length[run] + back_[r]);
        }
        table.stride = at;
        table.size = at * table.states;
    }

    void reach(std::int32_t t, std::int32_t consumer) {
        const auto &table = l_.tables[t];
        const StepView s = l_.step(consumer);
        const Index out = l_.tables[consumer].runs_begin;
        for (Index group = 0; group < s.pairs.groups; group++)
            for (Index p = s.pairs.begin[group]; p < s.pairs.begin[group + 1]; p++) {
                const Index r = s.pairs.a[p], to = out + group / s.classes;
                const Index offset = l_.low[table.runs_begin + r] + s.class_shift[s.pairs.b[p]] - l_.low[to];
                front_[r] = std::max(front_[r], offset);
                const Index reads = round_up(std::max(l_.length[to], l_.natural[to])) - offset;
                back_[r] = std::max(back_[r], reads - l_.length[table.runs_begin + r]);
            }
    }

    // All tables side by side where they fit; otherwise the program is cut into segments: tables that cross
    // a cut are kept (checkpoints), the others of a segment share memory with those of other segments and
    // are made again when decoding comes to them.
    void place_tables() {
        const double limit = request_.memory_limit / 8;
        for (Index segments = 1;; segments *= 2) {
            cut(segments);
            if (static_cast<double>(l_.arena) <= limit) break;
            if (segments >= static_cast<Index>(l_.tables.size()))
                throw_budget(l_.costliest < 0 ? 0 : l_.costliest, 8.0 * static_cast<double>(l_.arena));
        }
        for (std::size_t t = 0; t < skeleton_.steps.size(); t++) {
            const Step &step = skeleton_.steps[t];
            Index scratch = step.score_size;
            if (step.verb == Verb::Join) scratch += l_.tables[step.a].stride + l_.tables[step.b].stride;
            l_.scratch = std::max(l_.scratch, scratch);
        }
    }

    void cut(Index segments) {
        const Index n = static_cast<Index>(l_.tables.size());
        double total = 0, sum = 0;
        for (const auto &table : l_.tables) total += static_cast<double>(table.size);
        l_.segment_begin.assign(1, 0);
        std::vector<Index> segment_of(n);
        for (Index t = 0; t < n; t++) {
            if (sum >= total * static_cast<double>(l_.segment_begin.size()) / static_cast<double>(segments) &&
                static_cast<Index>(l_.segment_begin.size()) < segments)
                l_.segment_begin.push_back(t);
            segment_of[t] = static_cast<Index>(l_.segment_begin.size()) - 1;
            sum += static_cast<double>(l_.tables[t].size);
        }
        l_.segment_begin.push_back(n);
        Index kept = 0;
        std::vector<Index> used(l_.segment_begin.size(), 0);
        for (Index t = 0; t < n; t++) {
            auto &table = l_.tables[t];
            const auto consumer = skeleton_.consumer[t];
            table.checkpoint = consumer < 0 || segment_of[consumer] != segment_of[t];
            Index &cursor = table.checkpoint ? kept : used[segment_of[t]];
            table.base = cursor;
            cursor += round_up(table.size);
        }
        for (auto &table : l_.tables)
            if (!table.checkpoint) table.base += kept;
        l_.arena = kept + *std::max_element(used.begin(), used.end());
    }

    const LayoutRequest &request_;
    const Skeleton &skeleton_;
    std::span<const ScopeBlock> scopes_;
    Meter meter_;
    Layout l_;
    bool gaps_ = false;
    std::vector<std::vector<Index>> low_of_, high_of_;   // per block and row
    std::vector<Index> total_low_, total_high_;          // per statistic
    std::vector<Index> position_;                        // statistic -> internal position
    std::vector<Index> below_low_, below_high_;
    Bounds window_;
    // reused from step to step
    std::vector<double> weight_;
    std::vector<std::int32_t> target_, rank_;
    std::vector<Index> hull_low_, hull_high_, hull_natural_, reached_, cursor_, ones_, sums_, distinct_, front_, back_;
};

double average_length(const Layout &layout) {
    double cells = 0, runs = 0;
    for (const auto &table : layout.tables) {
        cells += static_cast<double>(table.cells);
        runs += static_cast<double>(table.runs);
    }
    return runs > 0 ? cells / runs : 0;
}

double total_cells(const Layout &layout) {
    double cells = 0;
    for (const auto &table : layout.tables) cells += static_cast<double>(table.cells) * static_cast<double>(table.states);
    return cells;
}

}  // namespace

Layout build_layout(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request) {
    const auto build = [&](bool rows, bool *gaps = nullptr) {
        Builder builder(skeleton, request);
        Layout layout = builder.build(rows);
        if (gaps) *gaps = builder.has_gaps();
        return layout;
    };
    if (request.mode == Mode::Cells || request.caps.empty()) return build(false);
    if (request.mode == Mode::Rows) return build(true);
    // Rows unless runs are too short to be worth a vector, or mostly holes.
    bool gaps = false;
    Layout rows;
    try {
        rows = build(true, &gaps);
    } catch (const BudgetExceeded &) {
        return build(false);
    }
    const double length = average_length(rows);
    if (length >= 3 && !gaps) return rows;
    try {
        Layout cells = build(false);
        if (length < 3 || 3 * total_cells(cells) < total_cells(rows)) return cells;
    } catch (const BudgetExceeded &) {
    }
    return rows;
}

}  // namespace tallytree
