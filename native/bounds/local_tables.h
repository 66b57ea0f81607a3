// What each step of a program adds to its input message: local scores, and local counts, which get prices.
#pragma once

#include <unordered_map>

#include "bounds/subject.h"
#include "kernels/chain_pass.h"
#include "plan/skeleton.h"

namespace tallytree::bounds {

// Of one elimination. The states of its table are `fresh` outermost, then `kept`; see plan/skeleton.h for the strides.
struct LocalStep {
    const double *scores = nullptr;  // in the layout of the step, without the late factor
    const double *late = nullptr;    // one for each fresh state, or null
    // shift_size for each statistic, one statistic after the other; or null. The least of each is a constant.
    const std::int32_t *counts = nullptr;
    double largest = 0;                           // size of a local score
    double roundings = 0;                         // the number of roundings of a value
    std::array<double, kMostStatistics> reach{};  // the largest size of a count, for the first statistics
    std::int32_t shared = -1;                     // steps with the same number have the same `counts`
    std::int32_t apart = 0;                       // from the counts of one statistic to those of the next
};

// A hash of a row of counts.
inline std::uint64_t mixed(std::span<const std::int32_t> row) {
    std::uint64_t sum = row.size(), odd = 0x9E3779B97F4A7C15u;  // independent products
    for (const auto x : row) {
        const std::uint64_t product = static_cast<std::uint32_t>(x) * (odd += 0xD1B54A32D192ED02u);
        sum += product ^ product >> 32;  // a sum of products alone would depend on two sums of all counts
    }
    return (sum * 0x9E3779B97F4A7C15u) >> 16;
}

// What a search needs to know about a model besides its passes.
struct Facts {
    double constant = 0, magnitude = 0, operations = 0;
    Tally constant_counts{};
    Box range;
};

// The least and the largest tally of each statistic that there can be: each factor's, added up.
struct Ends {
    std::vector<double> low, high;
};

// Where statistics count single variables alone: what they count in the states of a kind of variable.
struct KindCounts {
    using Range = std::pair<std::int64_t, std::int64_t>;
    const std::int32_t *counts;  // [kind][statistic][state], rows of some width
    Index width;
    std::span<const Range> ranges;        // [statistic][kind]: the least and the most
    std::span<const std::int64_t> kinds;  // of each variable
};

class LocalTables : public Subject {
  public:
    explicit LocalTables(const ChainKernels &kernels) : kernels_(&kernels) {}
    // Without steps, where all that is to be known of them is known.
    LocalTables(const Skeleton &skeleton, std::vector<TableBlock<double>> scores,
                std::vector<TableBlock<std::int64_t>> counts, const Facts &facts)
        : skeleton_(&skeleton), scores_(std::move(scores)), counts_(std::move(counts)), facts_(facts) {}
    LocalTables(const Skeleton &skeleton, std::vector<TableBlock<double>> scores,
                std::vector<TableBlock<std::int64_t>> counts, const ChainKernels &kernels);
    LocalTables(const LocalTables &) = delete;
    // The next model, in the same memory. Each statistic has one block, which looks at each variable by itself. The
    // skeletons of all models are there as long as the last one is.
    void load(const Skeleton &skeleton, std::span<const TableBlock<double>> scores, const KindCounts &counts);
    // The same with a table for each scope that statistics look at.
    void load(const Skeleton &skeleton, std::span<const TableBlock<double>> scores,
              std::span<const TableBlock<std::int64_t>> counts);
    // The next program may stand where the last one was.
    void forget_program() { skeleton_ = nullptr; }
    // The memory that waits for the next model.
    double kept() const;

    static Ends ends(const Skeleton &skeleton, std::span<const TableBlock<std::int64_t>> counts);
    // What it and the program take, at most; with the tables of counts, those that steps share are counted once.
    static double bytes(const Skeleton &skeleton, std::span<const TableBlock<std::int64_t>> counts = {});
    // The same if steps share nothing.
    static double most_bytes(const Skeleton &skeleton);
    // How many sums of local scores and messages a pass over a program makes.
    static double operations(const Skeleton &skeleton);
    static double operations(const Skeleton &skeleton, Index step);
    // What a pass of so many operations takes, in units of work: steps take time of their own.
    static double pass_work(const Skeleton &skeleton, double operations);

    const Skeleton &skeleton() const { return *skeleton_; }
    Index statistics() const override { return skeleton_->statistics; }
    const LocalStep &operator[](Index step) const { return steps_[step]; }
    // The loops over kept states, neighbours made one where they can be.
    std::span<const Loop> kept(Index step) const { return kept_[step]; }
    double constant() const { return facts_.constant; }
    const Tally &constant_counts() const { return facts_.constant_counts; }
    const Box &range() const override { return facts_.range; }
    double magnitude() const override { return facts_.magnitude; }
    double operations() const override { return facts_.operations; }
    // A band reads messages here and there, which takes longer where they do not stay in the cache.
    double cell() const override { return skeleton_->width <= 1 ? 10 : operations() < kCached ? 24 : 30; }
    double labelling_work() const override { return 20 * static_cast<double>(choices()); }
    Index length() const override { return static_cast<Index>(skeleton_->cardinalities.size()); }
    Index variables() const override { return length(); }
    Index choices() const override { return static_cast<Index>(skeleton_->steps.size()); }
    double small_budget(double span) const override;
    // How many rows of counts steps share, or could.
    Index shared() const { return shared_; }
    // How many rows of counts there are, shared or not.
    Index count_rows() const { return shared() + unshared_; }
    // Whether counts and tallies fit the numbers that passes have for them.
    bool fits() const { return fits_; }
    // Whether bands can tell all tallies apart.
    bool keyed() const override { return keyed_; }
    // The largest size of what a step counts.
    double reach(Index step, Index p) const {
        if (p < kMostStatistics) return steps_[step].reach[p];
        return further_[step * facts_.range.low.more() + p - kMostStatistics];
    }
    Evaluated evaluate(const std::int64_t *labelling) const override;

  private:
    static constexpr double kCached = 1 << 18;  // operations of a pass: about as many messages, or fewer

    static bool lies_there(const Skeleton &skeleton, Index t);
    void begin(bool same_program);
    void fill();
    void add_scores(Index t, LocalStep &local);
    void add_counts(Index t, LocalStep &local);
    bool repeat_counts(Index t, LocalStep &local);
    bool same_counts(Index t, Index other) const;
    void level_counts(Index t, Index p, std::span<std::int32_t> counts);
    Index place_counts(Index place, LocalStep &local);
    void add_kind(LocalStep &local, const KindCounts &counts, Index variable);
    void merge_loops(Index t);
    void add_constants();
    void find_range();
    struct Measured {  // the table that was looked at last, and the size of its largest entry
        const double *table = nullptr;
        double largest = 0;
    };
    double largest(const double *table, Index size, Measured &last) const;

    const ChainKernels *kernels_ = nullptr;
    const Skeleton *skeleton_ = nullptr;
    std::vector<TableBlock<double>> scores_;
    std::vector<TableBlock<std::int64_t>> counts_;
    std::vector<LocalStep> steps_;
    Ragged<Loop> kept_;
    std::vector<Loop> loops_;
    std::vector<double> sums_;  // of several factors
    std::size_t summed_ = 0;    // how many of these are there
    std::vector<std::int32_t> shifts_;
    struct SharedRow {
        Index place, size;
        std::int32_t number;
    };
    std::unordered_map<std::uint64_t, SharedRow> shift_rows_;  // by `mixed`
    std::unordered_map<std::uint64_t, std::size_t> met_;       // the counts of a step, by where their tables lie
    std::vector<std::pair<Index, Index>> shift_places_;        // step, place in shifts_
    Facts facts_;
    Index shared_ = 0, unshared_ = 0;
    std::vector<std::int32_t> levels_;  // for each step and statistic: what it counts at least; none: 0
    std::vector<double> further_;       // for each step: the reach of the statistics behind the first ones
    bool fits_ = true, keyed_ = true;
    Measured main_, late_;  // often one and the same at every step
};

}  // namespace tallytree::bounds
