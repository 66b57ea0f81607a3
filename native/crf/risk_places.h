// What the positions of a chain count, given its true labels: rows of labels for the kernels of columns.
#pragma once

#include "crf/risks.h"

namespace tallytree {

class RiskPlaces {
  public:
    RiskPlaces(const QuotientCounts &counts, Index width)
        : counts_(counts), labels_(counts.labels), width_(width), of_type_(counts.scheme.type_count) {
        for (Index j = 0; j < labels_ && counts.chunks(); j++)
            if (counts.inside(j)) of_type_[counts.scheme.types[j]].push_back(j);
        for (const auto &labels : of_type_) extra_ = std::max(extra_, static_cast<Index>(labels.size()));
    }

    // The number of labels of a type, at most; and of the numbers that a position needs.
    Index extra() const { return extra_; }
    Index numbers() const { return 4 * width_; }

    void take(const std::int64_t *truth, Index length) {
        truth_ = truth;
        length_ = length;
        rows_.assign(length * numbers(), 0.0);
    }

    // Positions come with what their labels weigh.
    void put(Index m, const double *emitted, double by) {
        double *counted = row(m, 0), *other = row(m, 1), *errors = row(m, 2), *on = row(m, 3);
        for (Index j = 0; j < labels_; j++) {
            const double weight = on[j] = emitted[j] * by;
            const bool some = counts_.chunks() ? counts_.inside(j) : counts_.counted[of_truth(m, j)] != 0;
            (some ? counted : other)[j] = weight;
            errors[j] = counts_.chunks() ? (some ? 1 : 0) + missed(m) : counts_.errors[of_truth(m, j)];
        }
        for (Index j : entering(m)) counted[j] = 0;  // these are summed apart
    }
    ColumnPlace at(Index m, Index columns, const double *x) const {
        return {columns, width_, x, row(m, 0), row(m, 1), row(m, 2), row(m, 3), missed(m)};
    }
    double weight(Index m, Index label) const { return row(m, 3)[label]; }

    // A true chunk: whether it covers a position, begins there, or has ended just before; it ends with the chain.
    bool inside(Index m) const { return counts_.chunks() && counts_.inside(truth_[m]); }
    bool begins(Index m) const { return inside(m) && !(m > 0 && continues(truth_[m - 1], truth_[m])); }
    bool stays(Index m) const { return inside(m) && !begins(m); }
    bool is_cut(Index m) const { return m == length_ || (inside(m - 1) && !continues(truth_[m - 1], truth_[m])); }
    bool continues(Index i, Index j) const { return counts_.continues(i, j); }

    // The labels of the true chunk, if there is one; and those with which one begins to agree with it.
    std::span<const Index> agreeing(Index m) const {
        if (!inside(m)) return {};
        return of_type_[counts_.scheme.types[truth_[m]]];
    }
    std::span<const Index> entering(Index m) const { return begins(m) ? agreeing(m) : std::span<const Index>(); }

    // The errors of a true chunk that begins and is missed; of a chunk that has agreed with the true one and is cut
    // before a position, or goes on beyond the true one.
    double missed(Index m) const { return begins(m) ? counts_.missed : 0; }
    double cut(Index m) const { return is_cut(m) ? 0 : beyond(); }
    double beyond() const { return 1 + counts_.missed; }

  private:
    Index of_truth(Index m, Index label) const { return truth_[m] * labels_ + label; }
    double *row(Index m, Index which) { return rows_.data() + m * numbers() + which * width_; }
    const double *row(Index m, Index which) const { return rows_.data() + m * numbers() + which * width_; }

    QuotientCounts counts_;
    Index labels_, width_, extra_ = 0, length_ = 0;
    const std::int64_t *truth_ = nullptr;
    std::vector<std::vector<Index>> of_type_;
    std::vector<double> rows_;
};

}  // namespace tallytree
