// One execution of a plan: the upward messages in one arena, and the results read from them.
#pragma once

#include <atomic>

#include "kernels/algebra.h"
#include "plan/layout.h"
#include "plan/needed.h"
#include "kernels/maxplus.h"
#include "tables/step_parts.h"

namespace tallytree {

// Memory for the tables of a run, recycled between runs so that small problems do not pay for fresh pages: from a
// given one that is large enough, or else from the last one that was given up.
class Arena {
  public:
    Arena() = default;
    explicit Arena(Index bytes) : Arena(bytes, Arena()) {}
    Arena(Index bytes, Arena &&used);
    ~Arena();
    Arena(Arena &&other) noexcept { swap(other); }
    Arena &operator=(Arena &&other) noexcept {
        swap(other);
        return *this;
    }
    void *data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    // Returns memory kept for the next arena to the system, unless it is a small share of a memory limit, because it
    // is not counted.
    static void trim(double memory_limit);

  private:
    void swap(Arena &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }
    void *data_ = nullptr;
    std::size_t bytes_ = 0;
};

enum class AlgebraKind : int { MaxPlus = 0, LogSumExp = 1, Counting = 2 };

// The content of the last table: the cells that are not the algebra's zero, by lexicographic tally.
struct Root {
    std::vector<Index> cells;    // numbers to decode, sample and weight by
    std::vector<Index> tallies;  // rows in the user's order of statistics
    std::vector<double> values;
};

template <class Real>
concept Double = std::is_same_v<Real, double>;

// Tables of doubles, over any algebra; or of floats over max-plus, every one of them an upper bound (see rounding.h).
template <class Real>
class RunOf {
  public:
    using Root = tallytree::Root;

    RunOf(std::shared_ptr<const Layout> layout, std::vector<TableBlock<double>> scores, AlgebraKind algebra,
          std::uint64_t prime, const MaxPlusKernels *kernels, Arena used = {});

    // Results do not depend on the number of threads, which are also used to recompute tables.
    void upward(const Poll &poll, Threads threads = {});

    Root root() const;
    // The value of every cell, in the order of their numbers.
    std::vector<double> root_values() const;
    // What factors without variables add to each of them.
    double constant() const;

    // The best labelling with the tally of root cell `cell`.
    void decode(Index cell, std::int64_t *assignment, const Poll &poll);
    // Labellings drawn from the Gibbs distribution given the tallies of root cells; each uses one uniform number per
    // step, and none depends on the others. Tables are computed again once for all of them.
    void sample(std::span<const Index> cells, const double *uniforms, std::int64_t *assignments, const Poll &poll)
        requires Double<Real>;

    // For each variable and state the algebra's sum over all labellings with it, root cells weighted.
    std::vector<double> downward(std::span<const double> root_weights, const Poll &poll)
        requires Double<Real>;

    // What a function of the root's values (log-sum-exp) gains with every entry of the scores, given what it gains with
    // each root cell, of any sign: added to `entries`, which has the tables of each block one after the other. Tables
    // that were not kept are computed again.
    void differentiate(std::span<const double> root_weights, std::span<double *const> entries, Arena &shares,
                       const Poll &poll)
        requires Double<Real>;

    AlgebraKind algebra() const { return kind_; }
    bool is_max_plus() const { return kind_ == AlgebraKind::MaxPlus; }
    Index native_steps() const { return native_steps_; }
    bool overflowed() const { return overflowed_; }  // see rounding.h
    const Layout &layout() const { return *layout_; }
    Real *memory() const { return static_cast<Real *>(arena_.data()); }
    // Which cells of a stretch are computed: all, unless tables are computed again for some.
    Range needed(std::int32_t t) const { return some_needed_ ? needed_[t] : Lot::kAll; }
    Real *row(std::int32_t t, Index state) const {
        const auto &table = layout_->tables[t];
        return memory() + table.base + state * table.stride;
    }
    std::span<const TableBlock<double>> scores() const { return scores_; }
    const MaxPlusKernels *kernels() const { return kernels_; }
    Arena release() { return std::move(arena_); }  // ends the run's life

  private:
    template <class>
    friend class UpwardOf;
    template <class>
    friend class Walk;
    template <class>
    friend class ChoicesOf;
    friend class Downward;
    friend class Derivatives;
    friend class KBest;

    template <class Action>
    void with_algebra(Action action) const;
    // Of segments that come one after the other; if `again`, what is there no longer.
    template <class Algebra>
    void run_segments(Algebra &algebra, Range segments, const Poll &poll, bool again);
    template <class Algebra>
    void run_together(const Algebra &algebra, std::span<const std::int32_t> steps, const Poll &poll);
    void load_segment(Index segment, const Poll &poll);
    double operations_needed(Index segment) const;
    // The same for the cells alone that lead to some cells of the segment's tables, and of later ones.
    void load_segment(Index segment, std::span<const TableCell> wanted, const Poll &poll);
    void local_scores(std::int32_t step, const std::int64_t *assignment, std::vector<double> &scores) const;

    std::shared_ptr<const Layout> layout_;
    const Skeleton &skeleton_;
    std::vector<TableBlock<double>> scores_;
    AlgebraKind kind_;
    std::uint64_t prime_;
    const MaxPlusKernels *kernels_;
    Arena arena_;
    Index loaded_ = -1;          // the segment whose tables are in memory
    std::vector<Range> needed_;  // per table, while some cells of a segment are computed again
    bool some_needed_ = false;
    Index native_steps_ = 0;
    std::atomic<bool> overflowed_{false};
    Threads threads_;
};
using Run = RunOf<double>;
using SingleRun = RunOf<float>;

}  // namespace tallytree
