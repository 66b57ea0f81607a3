// What each step of a program adds to the message that it takes: local scores, and local counts to put prices on.
#pragma once

#include <deque>

#include "bounds/tally.h"
#include "plan/skeleton.h"

namespace tallytree::bounds {

// Of one elimination. The states of its table are `fresh` outermost, then `kept`; see plan/skeleton.h for the strides.
struct LocalStep {
    const double *scores = nullptr;        // laid out as the step says, without the factor that comes late
    const double *late = nullptr;          // one for each fresh state, or null
    const std::int32_t *counts = nullptr;  // shift_size for each statistic, one statistic after the other; or null
    double largest = 0;                    // size of a local score
    double roundings = 0;                  // how many a value goes through
    std::array<double, kMostStatistics> reach{};  // the largest size of a count
};

struct Evaluated {
    double score = 0;  // as if in twice the precision
    Tally tally{};
};

class LocalTables {
  public:
    LocalTables(const Skeleton &skeleton, std::vector<TableBlock<double>> scores,
                std::vector<TableBlock<std::int64_t>> counts);

    // What it and the program take, at most.
    static double bytes(const Skeleton &skeleton);
    // How many sums of local scores and messages a pass over a program makes.
    static double operations(const Skeleton &skeleton);

    const Skeleton &skeleton() const { return skeleton_; }
    Index statistics() const { return skeleton_.statistics; }
    const LocalStep &operator[](Index step) const { return steps_[step]; }
    // The loops over kept states, neighbours made one where they can be.
    std::span<const Loop> kept(Index step) const { return kept_[step]; }
    double constant() const { return constant_; }
    const Tally &constant_counts() const { return constant_counts_; }
    // No tally lies outside.
    const Box &range() const { return range_; }
    // The sum of the largest sizes of all scores.
    double magnitude() const { return magnitude_; }
    double operations() const { return operations_; }
    // Whether counts and tallies fit the numbers that the search has for them.
    bool fits() const { return fits_; }
    Evaluated evaluate(const std::int64_t *labelling) const;

  private:
    void add_step(Index t);
    void add_scores(Index t, LocalStep &local);
    void add_counts(Index t, LocalStep &local);
    void merge_loops(Index t);
    void add_constants();
    void find_range();
    struct Measured {  // the table that was looked at last, and the size of its largest entry
        const double *table = nullptr;
        double largest = 0;
    };
    static double largest(const double *table, Index size, Measured &last);

    const Skeleton &skeleton_;
    std::vector<TableBlock<double>> scores_;
    std::vector<TableBlock<std::int64_t>> counts_;
    std::vector<LocalStep> steps_;
    Ragged<Loop> kept_;
    std::deque<std::vector<double>> sums_;  // of several factors
    std::vector<std::int32_t> shifts_;
    std::vector<std::pair<Index, Index>> shift_places_;  // step, place in shifts_
    double constant_ = 0, magnitude_ = 0, operations_ = 0;
    Tally constant_counts_{};
    Box range_;
    bool fits_ = true;
    Measured main_, late_;  // often one and the same at every step
};

}  // namespace tallytree::bounds
