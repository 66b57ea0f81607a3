// One layout, table by table: tallies are propagated up the program exactly as scores will be. An elimination adds the
// local shifts to the input's stretches, a join adds the stretches of two tables. Tallies that the window rules out are
// dropped on the way. Finally, every stretch gets its position.
#pragma once

#include <optional>

#include "plan/known_steps.h"
#include "plan/memory_estimate.h"
#include "plan/shift_classes.h"

namespace tallytree {

// Limits for a layout that has an alternative: pairs of stretches to examine, and bytes for lists.
struct Worth {
    double pairs = std::numeric_limits<double>::infinity(), bytes = pairs;
    double room = pairs;  // for lists at the moment: throws OutOfRoom beyond that
};

class LayoutBuilder {
  public:
    // In the memory of a layout that is no longer needed. Throws BudgetExceeded beyond `worth`, too.
    LayoutBuilder(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll,
                  Layout used = {}, Worth worth = {});

    Layout build(bool rows);

    // Whether along the stretches some shifts of the layout that was built are apart by more than one.
    bool has_gaps() const { return classes_ && classes_->has_gaps(); }
    // Whether no statistic has a range worth a row.
    bool all_short() const { return ranges_.all_short(); }
    const TallyRanges &ranges() const { return ranges_; }

  private:
    StretchView view(Index t) const {
        const auto &table = l_.tables[t];
        return {table.stretches, l_.prefix.data() + table.stretches_begin * l_.prefix_size,
                l_.low.data() + table.stretches_begin, l_.length.data() + table.stretches_begin};
    }

    // False where what is remembered takes too much.
    bool fill_tables();
    void make_room();
    void make_table(std::int32_t t);
    void make_stretches(std::int32_t t);
    // The stretches of table t are the sums of every stretch of `a` with every stretch of `b`.
    void combine(std::int32_t t, StretchView a, StretchView b);
    void finish(std::int32_t t, StretchView a, StretchView b);
    void store_stretches(std::int32_t t, const Index *low, const Index *high, const Index *natural);
    void open_pairs(StepLayout &s, Index stretches, Index pairs);
    Index sort_pairs(StepLayout &s, Index stretches, Index a_count, Index b_count);
    void count_operations(std::int32_t t);

    // Tables that are known from earlier layouts; false where what is remembered takes too much.
    bool remembers() const { return l_.known && plain_ && l_.rows; }
    bool recall_table(std::int32_t t);

    // The common case of two statistics, such as true and false positives (layout_lines.cpp).
    bool in_line(StretchView a, StretchView b, bool shifts) const;
    void add_lines(std::int32_t t, StretchView a, StretchView b);

    // The budget: each throws where it is exceeded.
    [[noreturn]] void refuse(std::int32_t t, double bytes) const;
    double growing_bytes() const;  // of the plan, where lists are copied once more
    void check_room(double bytes) const;
    void check_cells(std::int32_t t, double cells) const;
    void count_bytes(std::int32_t t, Index pairs);
    void guard_pairs(std::int32_t t, double pairs);
    void guard_far_apart(std::int32_t t);
    void guard_prefixes(std::int32_t t, Index prefixes) const;

    const LayoutRequest &request_;
    const Skeleton &skeleton_;
    const double limit_;  // what the skeleton leaves
    const double room_;   // for lists
    const TallyRanges ranges_;
    Meter meter_;
    Layout l_;
    Worth worth_;  // what is left of it
    const Poll &poll_;
    std::optional<FarApart> far_apart_;  // once it is wanted
    Index places_ = 0;                   // bytes that the plan has from the start
    bool plain_ = false;                 // neither caps nor a window
    std::optional<Windows> windows_;
    std::optional<ShiftClasses> classes_;
    std::unique_ptr<StretchSums> stretch_sums_;
    std::vector<std::int32_t> shape_;  // per table, where they are known
    // reused from step to step
    std::vector<double> weight_;
    std::vector<Index> cursor_, ones_, hull_low_, hull_high_, key_;
};

}  // namespace tallytree
