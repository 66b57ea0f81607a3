// The smallest score with which a tally reaches a given value.
//
// Three kinds of questions, each over a box of relevant tallies:
//   a constraint    the value is the score;                               need(l) = v
//   margin scaling  the value is margin * loss(l) + score - truth;        need(l) = v - margin * loss(l) + truth
//   slack scaling   the value is loss(l) * (margin + score - truth);      need(l) = v / loss(l) - margin + truth
// and need(l) is infinite where l is not allowed. The loss is a quotient of two linear functions of the tally, as that
// of the F-measure is, or a table over the box.
#pragma once

#include <optional>
#include <utility>

#include "bounds/tally.h"

namespace tallytree::bounds {

struct Linear {
    double constant = 0;
    Few<double> slope{};
    double at(const Few<Index> &tally) const { return constant + paid(slope, tally); }
    // The least value over a box.
    double least(const FewBox &box) const;
};

template <class At>
struct LeastAt {
    double value = kInfinity;
    At tally{};
    void offer(double other, const At &at) {
        if (other < value) {
            value = other;
            tally = at;
        }
    }
};
using Least = LeastAt<Tally>;
using FewLeast = LeastAt<Few<Index>>;

enum class Scaling : int { None = 0, Margin = 1, Slack = 2 };

class Need {
  public:
    Scaling scaling = Scaling::None;
    double margin = 1, truth = 0;
    double top = kInfinity;         // larger values do not count as better: all tallies that reach it are found
    Linear numerator, denominator;  // of the loss, where there is no table
    // Over `box`, the last statistic fastest; nan where a tally is not allowed. Empty: there is no table.
    std::vector<double> losses;
    Box box;  // the relevant tallies

    // Whether it is the score alone, for all tallies of the box. Otherwise there are at most `kMostStatistics`.
    bool plain() const { return scaling == Scaling::None && losses.empty(); }
    // -inf where the tally is not allowed.
    double value(double score, const Tally &tally) const;
    // The least score with which a tally reaches a value; inf where none does.
    double at(double value, const Tally &tally) const;
    // The least need(l) + λ·l over a part of the box. Tallies without loss have no say in it under slack scaling: their
    // value is 0 whatever they score (see `lossless`).
    Least least(double value, const Prices &prices, const Box &part) const;
    // The largest value that a tally of a part may have, if its score is at most `most` - λ·l.
    double ceiling(double most, const Prices &prices, const Box &part) const;
    // Minus the slope of need at a tally; none where it is flat or not known.
    std::optional<Few<double>> slope(double value, const Tally &tally) const;
    // How many tallies of the box have no loss: 0, 1, or 2 for more.
    Index lossless() const { return lossless_; }
    // Where, if it is one.
    const Few<Index> &corner() const { return corner_; }
    // To be called once everything is set; false where the loss is not what it must be.
    bool prepare();
    // The largest loss on the box, in size.
    double largest_loss() const { return largest_loss_; }
    // What has been looked at since the last call of `take_work`, in units of work.
    double work() const { return work_; }
    double take_work() const { return std::exchange(work_, 0.0); }
    // A part of the box without the tallies that have no loss, as boxes.
    std::vector<FewBox> with_loss(const FewBox &part) const;

  private:
    double loss(const Few<Index> &tally) const;
    Index place(const Few<Index> &tally) const;
    FewLeast least_table(double value, const Few<double> &prices, const FewBox &part) const;
    double highest_value(double most, const Few<double> &prices, const FewBox &part) const;
    FewLeast least_of_few(double value, const Few<double> &prices, const FewBox &part) const;

    Index lossless_ = 0;
    Few<Index> corner_{};  // the tally without loss, if there is one
    double largest_loss_ = 0;
    mutable double work_ = 0;
};

// The least scale * n(l) / d(l) + λ·l over the tallies of a box, on which d is positive; a lower bound of it where the
// box is large and the quotient bends both ways.
FewLeast least_quotient(double scale, const Linear &n, const Linear &d, const Few<double> &prices, const FewBox &box);

}  // namespace tallytree::bounds
