// Sums of tally sets: all stretches of one table with all stretches of another, or with the shifts of a step.
#pragma once

#include "plan/merged_sums.h"
#include "plan/prefix_set.h"

namespace tallytree {

inline constexpr Index kSmall = std::numeric_limits<Index>::min() / 4;
inline constexpr Index kLarge = std::numeric_limits<Index>::max() / 4;

struct StretchView {
    Index count;
    const Index *prefix, *low, *length;
};

struct Bounds {
    std::vector<Index> low, high;
};

// The stretches that the pairs of two sets add up to, in lexicographic order, and which pair goes to which of them.
class StretchSums {
  public:
    // `caps` are per statistic, the stretch's last; without `rows` every stretch is one cell.
    StretchSums(bool rows, std::vector<Index> caps, bool clipped);

    // `guard(prefixes)` is asked now and then whether that many prefixes are still affordable; it throws if not. Lists
    // are merged where `room` bytes suffice for that.
    void add(StretchView a, StretchView b, const Bounds &window, double room, Meter &meter,
             const std::function<void(Index)> &guard);

    Index stretches() const { return stretches_; }
    const std::vector<Index> &prefixes() const { return prefixes_; }
    const Index *lows() const { return hull_low_.data(); }  // per stretch
    const Index *highs() const { return hull_high_.data(); }
    const Index *naturals() const { return hull_natural_.data(); }  // the highest sums before a cap folds them
    Index pruned() const { return pruned_; }

    // Calls `use(stretch of a, stretch of b, stretch they go to)` for the pairs that the window left, and by ascending
    // stretches of `a` for each stretch that they go to.
    template <class Use>
    void each_pair(Index a_count, Index b_count, Use &&use) const {
        for (const PairSum &sum : merged_) use(sum.a, sum.b, sum.key);
        for (Index ra = 0, p = 0; ra < a_count && !merging_; ra++)
            for (Index rb = 0; rb < b_count; rb++, p++)
                if (target_[p] >= 0) use(ra, rb, Index{target_[p]});
    }

  private:
    Index capped_sum(Index i, Index x, Index y) const { return std::min(caps_[i], x + y); }
    bool offer(Index id, StretchView a, Index ra, StretchView b, Index rb, const Bounds &w);
    double prefix_box(StretchView a, StretchView b, const Bounds &w);
    void add_to_one(StretchView a, StretchView b, const Bounds &w);
    void add_dense(StretchView a, StretchView b, const Bounds &w, Index volume);
    void add_plainly(StretchView a, StretchView b);
    void add_checked(StretchView a, StretchView b, const Bounds &w);
    void number_dense(Index volume);
    void place_prefixes(StretchView a, StretchView b);
    void add_merged(StretchView a, StretchView b, const std::function<void(Index)> &guard);
    void drop_outside();
    void add_hashed(StretchView a, StretchView b, const Bounds &w, Meter &meter,
                    const std::function<void(Index)> &guard);
    void number_hashed(const PrefixSet &set);
    void reset_hulls(Index count);
    void renumber_targets();

    bool rows_, clipped_, plain_;
    bool merging_ = false;  // what was added last
    bool in_order_;         // a sum is a place, or beyond the ends of the one axis
    Index prefix_size_;
    std::vector<Index> caps_;
    Index stretches_ = 0, pruned_ = 0;
    std::vector<std::int32_t> target_, rank_;
    std::vector<Index> prefixes_, hull_low_, hull_high_, hull_natural_;
    std::vector<Index> box_low_, box_extent_, low_b_, place_a_, place_b_;
    std::vector<PairSum> merged_, scratch_;
};

}  // namespace tallytree
