// An objective of the tallies of a chain and its derivatives, in plain products: sums over labellings for every state
// and tally, scaled separately at every position, forward and then backward.
//
// Why that is safe: let scores of labels at a position and those of neighbours lie within W together, all of them
// finite, and the logs of the weights of tallies within R. Whatever the tally, what follows a label weighs at most
// exp(W + R) times as much as what follows another. So a sum that is less than exp(-kSmallestLog) of all at its
// position is less than exp(W + R - kSmallestLog) of the result, which is far below rounding where W and R are what is
// allowed here: it is left out, and nothing underflows. Of the sum of a single tally, it is below rounding as long as
// that sum is not as small itself. Where labels are forbidden, nothing is left out: whatever is not 0 has to be at
// least exp(-kSmallestAllowedLog), and then nothing overflows on the way back, either. All else is left to tables of
// logarithms: chains whose scores lie further apart, and tallies that are very unlikely.
#pragma once

#include "bulk/batch.h"
#include "bulk/objectives.h"
#include "bulk/tally_weights.h"

namespace tallytree {

inline constexpr Index kMostTallied = 4;  // statistics

class TalliedChain {
  public:
    // Accepts an item; false if it needs tables of logarithms.
    bool take(const BatchItem &item, const TallyQuestion &question, double memory_limit);
    double bytes() const { return bytes_; }
    // Keeps the memory of its tables for the next item only where it is a small part of this share: nobody counts it.
    void trim(double share);

    // Finds the objective of the item, and adds its derivatives times `importance`, if that is not 0, to the entries;
    // false as above.
    bool find(double importance, std::span<double *const> entries, const MaxPlusKernels *kernels, Meter &meter,
              double &value);

  private:
    static constexpr Index kPadding = 8;             // cells: the widest vector
    static constexpr double kMostBytes = 256 << 20;  // of the tables of one chain: larger ones are better kept in parts
    static Index padded(Index n) { return (n + kPadding - 1) / kPadding * kPadding; }
    using Row = std::vector<double>;
    // The tallies at a position: boxes, in which every statistic has a stride.
    struct Box {
        Index cells = 0, width = 0;              // of a row, and rounded up
        Index begin = 0, guard = 0, before = 0;  // of rows of the position before, in the strides of this one
        Index reach = 0;                         // the largest step of a tally into this box
        std::vector<Index> low, extent, keep, stride,
            least;  // by statistic; `keep`: the part of an extent that counts; `least`: that of the steps into the box
    };

    bool suits(const BatchItem &item) const;
    bool is_level();
    bool add_width(std::span<const double> scores, double &top, double &widest);
    bool lay_boxes(double memory_limit);
    void note_steps();
    void limit_tallies(const TallyGrid &grid, std::span<const double> numbers, bool zeros);
    bool add_box(Index m);
    double *row(Index m, Index state) { return ahead_.data() + state * boxes_[m].width; }
    double *before(Index m, Index state) {
        return tables_.data() + boxes_[m].begin + state * boxes_[m].before + boxes_[m].guard;
    }
    Index step(Index m, Index s, Index t) const { return ((m - 1) * states_ + t) * states_ + s; }
    const double *link_table(Index m) const {  // exponentials of the scores of m - 1 and m
        return links_.data() + (item_->scores[1].count == 1 ? 0 : (m - 1) * labels_ * labels_);
    }

    void exponentials(const MaxPlusKernels &kernels);
    bool sum_labels();
    void first_row();
    void step_factors(Index m);
    void step_factors(Index m, Index t, const std::uint8_t *fits);
    Index rows_before(Index m, Index t);
    void lay_before(Index m);
    template <class Copy>
    void each_line(Index m, Copy copy) const;
    void forward(Index m, const MaxPlusKernels &kernels);
    void drop_small(Index m);
    bool sum_forward(const MaxPlusKernels &kernels, Meter &meter);
    void spend(Index m, Meter &meter) const {
        meter.spend(static_cast<double>(states_ * states_ * boxes_[m].width) / 2);
    }

    template <class Use>
    void each_tally(Use use) const;
    SureSums sure() const;
    Row likely();
    bool root(double &value);
    bool weigh(double &value);
    bool put_sums();
    TallyWeights cost_cells(const TallyGrid &grid, std::span<const double> numbers);

    void backward(Index m, double importance, std::span<double *const> entries, const MaxPlusKernels &kernels);
    void step_back(Index m, const MaxPlusKernels &kernels);
    void end(double importance, std::span<double *const> entries);
    void add_plain(double importance, std::span<double *const> entries);
    void hold_behind(Index m);

    const BatchItem *item_ = nullptr;
    TallyQuestion question_;
    Index length_ = 0, states_ = 0, labels_ = 0, statistics_ = 0;
    double bytes_ = 0, width_ = 0, log_sum_ = 0;
    bool forbids_ = false, dropped_ = false;  // whether scores are -inf, and whether small sums were left out
    std::vector<TruthTables::Range> steps_;   // [position][statistic]: the least and the most that is counted there
    std::vector<Index> limits_;               // [position][statistic]: the largest tally that matters
    std::vector<Box> boxes_;
    Row of_labels_;  // [position][label]: sums without tallies
    Row tops_, link_tops_, emitted_, links_, scales_;
    Row ahead_;   // [state][tally]: sums up to the position at hand
    Row tables_;  // [position][state][tally]: those of the position before, in the strides of the position
    std::vector<std::uint8_t> live_;  // [position][state]: whether anything leads there
    Row behind_;                      // [state][tally]: what follows, with zeros after each row
    Index behind_width_ = 0;
    Row back_, factors_, weights_;
    // [position][state][state before]: of tallies, from the position before; -1: they do not fit
    std::vector<Index> offsets_;
    std::vector<const double *> rows_;
    std::vector<Index> from_;
    Row by_, dots_;
};

}  // namespace tallytree
