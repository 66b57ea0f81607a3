// The columns of one chain after another, by one thread: from left to right, and back for the derivatives.
//
// Chunks: a step is "on" if it continues a chunk, and else "off", with an x if it begins one. Labellings that agree
// with the true chunk from its first position on are summed apart, for its labels only: what is wrong with their last
// chunk is not known yet. They join the others of their label in steps off and on, with the errors that are then known.
#pragma once

#include "crf/chain_summer.h"
#include "crf/risk_places.h"

namespace tallytree {

class RiskSummer : public ChainSummer {
  public:
    RiskSummer(const ChainBatch &chains, const QuotientCounts &counts, const QuotientRules &rules,
               const MaxPlusKernels *kernels)
        : ChainSummer(chains, kernels), rules_(rules), places_(counts, width_) {
        most_width_ = kWidestOfRisks;
        least_sum_ = 1e-120;
        for (Index i = 0; i < labels_ && counts.chunks(); i++)
            for (Index j = 0; j < labels_; j++)
                if (places_.continues(i, j)) steps_on_.emplace_back(i, j);
        for (const auto &[i, j] : steps_on_) apart_.push_back(j - i);
        std::sort(apart_.begin(), apart_.end());
        apart_.erase(std::unique(apart_.begin(), apart_.end()), apart_.end());
        if (!chains.own_links) split_links(1);
    }

    // The memory of a chain, besides results.
    double bytes(Index chain) const {
        const Index length = chains_.lengths[chain], rows = 2 * block(chain);
        const Index of_links = chains_.own_links ? 5 * (length - 1) * width_ * width_ : 0;
        const Index each = (5 + rows) * width_ + places_.numbers() + 2 * places_.extra() * rows;
        return 8.0 * static_cast<double>(length * each + of_links + (3 * rows + 2 * labels_) * width_);
    }

    // As `sum`. False also where the value is too small to be certain, because scores are -inf.
    bool find(Index chain, const ChainSums &risks, std::vector<double> &pairs) {
        risks.log_sums[chain] = 0;
        if (!start(chain)) return true;
        const double importance = risks.importance[chain];
        derives_ = importance != 0;
        if (!forward() || (derives_ && log_sum_ != kNegativeInfinity && !backward())) return false;
        risks.log_sums[chain] = log_sum_;
        if (log_sum_ == kNegativeInfinity) return true;
        prepare(risks.truths);
        const double value = risks.log_sums[chain] = sum_columns();
        if (forbids_ && value < kLeastValue) return false;
        if (!derives_) return true;
        add_derivatives(importance, risks, pairs);
        add_expected(-value * importance, risks, pairs);
        return true;
    }

  private:
    static constexpr double kLeastValue = 1e-100;
    enum class Shown { Own, Off, On };

    // Columns are summed together as long as they fit a cache.
    Index block(Index chain) const {
        const auto all = static_cast<Index>(rules_.row(chain)[0]);
        const Index fit = std::max<Index>(8, (Index{1} << 16) / (std::max<Index>(chains_.lengths[chain], 1) * width_));
        const Index blocks = (all + fit - 1) / fit;
        return (all + blocks - 1) / blocks;
    }

    // Factors of steps off, those of steps on by distance.
    void split_links(Index count) {
        const Index square = width_ * width_, lines = static_cast<Index>(apart_.size()) * width_;
        off_ = links_;
        off_turned_ = turned_;
        into_.assign(count * lines, 0.0);
        from_ = into_;
        for (Index k = 0; k < count; k++)
            for (const auto &[i, j] : steps_on_) {
                const Index line = k * lines + distance(i, j) * width_;
                into_[line + j] = from_[line + i] = links_[k * square + i * width_ + j];
                off_[k * square + i * width_ + j] = off_turned_[k * square + j * width_ + i] = 0;
            }
    }
    Index distance(Index i, Index j) const {
        return std::lower_bound(apart_.begin(), apart_.end(), j - i) - apart_.begin();
    }
    ColumnSteps steps_into(Index m) const {
        const auto count = static_cast<Index>(apart_.size());
        const Index begin = chains_.own_links && m ? (m - 1) * count * width_ : 0;
        return {m ? count : 0, apart_.data(), into_.data() + begin, from_.data() + begin};
    }
    double factor(Index m, Index i, Index j) const { return table(links_, m)[i * width_ + j]; }

    void prepare(std::span<const std::int64_t> truths) {
        if (chains_.own_links) split_links(length_ - 1);
        places_.take(truths.data() + first_, length_);
        for (Index m = 0; m < length_; m++) places_.put(m, at(emitted_, m), 1 / scales_[m]);
        if (!derives_) return;
        const Index tables = chains_.own_links ? length_ - 1 : 1;
        by_label_.assign(length_ * width_, 0.0);
        by_step_off_.assign(tables * width_ * width_, 0.0);
        by_step_on_.assign(tables * static_cast<Index>(apart_.size()) * width_, 0.0);
    }

    // The value; derivatives are added to `by_…`, as they are before the factors of steps.
    double sum_columns() {
        const double *rule = rules_.row(chain_);
        const auto all = static_cast<Index>(rule[0]);
        const Index most = block(chain_);
        double value = 0;
        for (Index first = 0; first < all; first += most) {
            columns_ = std::min(most, all - first);
            x_ = rule + 1 + first;
            w_ = x_ + all;
            sums_.resize(length_ * cells() + 2 * width_);  // with room on both sides
            weights_on_.resize(cells() + 2 * width_);
            for (auto *rows : {&weights_, &weights_off_}) rows->resize(cells());
            for (auto *rows : {&agreed_, &own_}) rows->resize(length_ * places_.extra() * lanes());
            for (auto *rows : {&agreed_weights_, &agreed_on_, &returned_}) rows->resize(places_.extra() * lanes());
            value += sum_ahead();
            if (derives_) sum_behind();
        }
        return value;
    }
    void add_derivatives(double importance, const ChainSums &risks, std::vector<double> &pairs) {
        for (Index m = 0; m < length_; m++)
            for (Index j = 0; j < labels_; j++)
                risks.marginals[(first_ + m) * labels_ + j] += importance * at(by_label_, m)[j];
        join_pairs();
        for (Index i = 0; !chains_.own_links && i < labels_ * width_; i++) pairs[i] += importance * by_step_off_[i];
        for (Index m = 1; chains_.own_links && m < length_; m++) {
            double *to = risks.pairs.data() + chains_.link_offset(chain_, m);
            const double *by = table(by_step_off_, m);
            for (Index i = 0; i < labels_; i++)
                for (Index j = 0; j < labels_; j++) *to++ += importance * by[i * width_ + j] * factor(m, i, j);
        }
    }

    Index lanes() const { return 2 * columns_; }
    Index cells() const { return lanes() * width_; }
    double *sums(Index m) { return sums_.data() + width_ + m * cells(); }
    double *small(Rows &rows, Index m, Index e) { return rows.data() + (m * places_.extra() + e) * lanes(); }

    double sum_ahead();
    void agree(Index m);
    void show(Index m, Shown what);
    void sum_behind();
    void leave(Index m);
    void step_back(Index m);
    void return_agreed(Index m, Index e, Index label);
    void join_pairs();

    QuotientRules rules_;
    RiskPlaces places_;
    std::vector<std::pair<Index, Index>> steps_on_;
    std::vector<Index> apart_;             // distances of the labels of steps on
    Rows off_, off_turned_, into_, from_;  // factors: of steps off, and of steps on by distance
    bool derives_ = false;
    Index columns_ = 0;                         // at hand
    const double *x_ = nullptr, *w_ = nullptr;  // of these
    Rows sums_;                                 // [position][column][mass, cost][label]
    Rows agreed_, own_;                         // [position][label of the true chunk][column][mass, cost]
    Rows weights_, weights_off_, weights_on_;   // of the sums of a position; of steps into it
    Rows agreed_weights_, agreed_on_, returned_;
    Rows by_label_, by_step_off_, by_step_on_;  // derivatives
};

}  // namespace tallytree
