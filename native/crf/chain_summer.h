// Passes along one chain after another in plain products, by one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bulk/spread.h"
#include "crf/chains.h"

namespace tallytree {

// Memory that one thread reuses for each chain. Rows have room for whole vectors, with zeros beyond the labels.
class ChainSummer {
  public:
    ChainSummer(const ChainBatch &chains, const MaxPlusKernels *kernels)
        : chains_(chains), kernels_(*kernels), labels_(chains.labels), width_(round_up(chains.labels)) {
        if (!chains_.own_links) take_links(chains.links, 1);
    }

    // `pairs` takes sums without the scores of links themselves, which are added at the end. False if the range of
    // the scores is too large.
    bool sum(Index chain, const ChainSums &sums, std::vector<double> &pairs) {
        sums.log_sums[chain] = 0;
        if (!start(chain)) return true;
        if (!forward() || (log_sum_ != kNegativeInfinity && !backward())) return false;
        const double truth = sums.truths.empty() ? 0 : truth_score(sums.truths);
        sums.log_sums[chain] = truth == kNegativeInfinity ? -truth : log_sum_ - truth;
        if (truth == kNegativeInfinity || log_sum_ == kNegativeInfinity) return true;
        const double importance = sums.importance[chain];
        add_expected(importance, sums, pairs);
        if (!sums.truths.empty()) subtract_truth(sums, importance);
        return true;
    }

    // False if the range of the scores is too large, or every labelling is forbidden.
    bool draw(Index chain, const ChainDraws &draws) {
        if (!start(chain)) return true;
        if (!forward() || log_sum_ == kNegativeInfinity) return false;
        Rows shares(labels_);
        for (Index n = 0; n < draws.draws; n++) {
            const double *uniforms = draws.uniforms.data() + n * draws.positions + first_;
            std::int64_t *to = draws.labels.data() + n * draws.positions + first_;
            to[length_ - 1] = chosen(at(ahead_, length_ - 1), uniforms[length_ - 1]);
            for (Index m = length_ - 1; m > 0; m--) {
                const double *before = at(ahead_, m - 1), *link = turned(m) + to[m] * width_;
                for (Index i = 0; i < labels_; i++) shares[i] = before[i] * link[i];
                to[m - 1] = chosen(shares.data(), uniforms[m - 1]);
            }
        }
        return true;
    }

    // Adds up the pairs of groups of chains that share their links, with the scores of these.
    void add_up(const ChainSums &sums, const std::vector<std::vector<double>> &parts) const;

    Index width() const { return width_; }
    double link(Index i, Index j) const { return links_[i * width_ + j]; }

  protected:
    using Rows = std::vector<double>;
    void scale_row(double *row, double by) const {
        for (Index j = 0; j < labels_; j++) row[j] *= by;
    }
    double *at(Rows &rows, Index m) const { return rows.data() + m * width_; }
    const double *table(const Rows &rows, Index m) const {
        return rows.data() + (chains_.own_links ? (m - 1) * width_ * width_ : 0);
    }
    const double *turned(Index m) const { return table(turned_, m); }

    // The exponentials of tables of links, relative to the largest score of each.
    void take_links(const double *tables, Index count) {
        const Index square = labels_ * labels_;
        links_.assign(count * width_ * width_, 0.0);
        turned_ = links_;
        tops_.assign(count, 0.0);
        link_width_ = 0;
        links_forbid_ = false;
        for (Index k = 0; k < count; k++) {
            Spread spread;
            spread.take({tables + k * square, static_cast<std::size_t>(square)});
            link_width_ = std::max(link_width_, spread.width());
            links_forbid_ |= spread.forbids;
            tops_[k] = spread.top();
            double *to = links_.data() + k * width_ * width_, *turned = turned_.data() + k * width_ * width_;
            for (Index i = 0; i < labels_; i++)
                kernels_.exponentials(tables + k * square + i * labels_, tops_[k], to + i * width_, labels_);
            for (Index i = 0; i < labels_; i++)
                for (Index j = 0; j < labels_; j++) turned[j * width_ + i] = to[i * width_ + j];
        }
    }

    // False for an empty chain.
    bool start(Index chain) {
        chain_ = chain;
        first_ = chains_.starts[chain];
        length_ = chains_.lengths[chain];
        if (length_ > 0 && chains_.own_links) take_links(chains_.link(chain, 1), length_ - 1);
        return length_ > 0;
    }

    // The expected labels and pairs, times the importance; after `backward`.
    void add_expected(double importance, const ChainSums &sums, std::vector<double> &pairs) {
        for (Index m = 0; m < length_; m++)
            for (Index j = 0; j < labels_; j++)
                sums.marginals[(first_ + m) * labels_ + j] += importance * at(ahead_, m)[j] * at(behind_, m)[j];
        for (Index m = 1; m < length_; m++) scale_row(at(weighted_, m), importance / scales_[m]);
        if (chains_.own_links) take_pairs(sums.pairs);
        else
            kernels_.matrices.add_outer(at(ahead_, 0), at(weighted_, 1), length_ - 1, labels_, width_, pairs.data(),
                                        labels_);
    }

    // Whether the scores guarantee that nothing underflows.
    bool level() {
        Spread all;
        emitted_tops_.assign(length_, 0.0);
        double widest = 0;
        for (Index m = 0; m < length_; m++) {
            Spread row;
            row.take({chains_.emissions + (first_ + m) * labels_, static_cast<std::size_t>(labels_)});
            emitted_tops_[m] = row.top();
            if (!(row.width() <= widest)) widest = row.width();
            all.forbids |= row.forbids;
        }
        forbids_ = all.forbids || links_forbid_;
        least_ = std::max(std::exp(link_width_ + widest - 650), least_sum_);
        return link_width_ + widest <= most_width_;
    }

    // With -inf scores, every non-zero number must be so large that products with it do not underflow.
    bool is_safe(const double *row) const {
        for (Index j = 0; forbids_ && j < labels_; j++)
            if (row[j] != 0 && row[j] < least_) return false;
        return true;
    }

    bool forward() {
        for (auto *rows : {&emitted_, &ahead_, &behind_, &weighted_}) rows->assign((length_ + 1) * width_, 0.0);
        scales_.assign(length_, 0.0);
        if (!level()) return false;
        log_sum_ = 0;
        for (Index m = 0; m < length_; m++) {
            const double *scores = chains_.emissions + (first_ + m) * labels_;
            double *emitted = at(emitted_, m), *ahead = at(ahead_, m);
            kernels_.exponentials(scores, emitted_tops_[m], emitted, labels_);
            if (m)
                kernels_.matrices.rows_times(at(ahead_, m - 1), 1, labels_, table(links_, m), width_, ahead, labels_);
            double sum = 0;
            for (Index j = 0; j < labels_; j++) sum += ahead[j] = m ? ahead[j] * emitted[j] : emitted[j];
            if (sum == 0) {
                log_sum_ = kNegativeInfinity;
                return true;
            }
            scale_row(ahead, 1 / sum);
            scales_[m] = sum;
            log_sum_ += emitted_tops_[m] + std::log(sum) + (m ? tops_[chains_.own_links ? m - 1 : 0] : 0);
            if (!is_safe(ahead)) return false;
        }
        return std::isfinite(log_sum_);
    }

    bool backward() {
        std::fill_n(at(behind_, length_ - 1), labels_, 1.0);
        for (Index m = length_ - 1; m > 0; m--) {
            double *weighted = at(weighted_, m), *before = at(behind_, m - 1);
            for (Index j = 0; j < labels_; j++) weighted[j] = at(emitted_, m)[j] * at(behind_, m)[j];
            kernels_.matrices.rows_times(weighted, 1, labels_, turned(m), width_, before, labels_);
            scale_row(before, 1 / scales_[m]);
            for (Index i = 0; forbids_ && i < labels_; i++)
                if (at(ahead_, m - 1)[i] == 0) before[i] = 0;  // nothing leads there, and it may grow beyond all bounds
            if (!is_safe(before)) return false;
        }
        return true;
    }

    void take_pairs(std::span<double> pairs) {
        for (Index m = 1; m < length_; m++) {
            double *to = pairs.data() + chains_.link_offset(chain_, m);
            const double *link = table(links_, m), *weighted = at(weighted_, m);
            for (Index i = 0; i < labels_; i++)
                for (Index j = 0; j < labels_; j++) *to++ += at(ahead_, m - 1)[i] * link[i * width_ + j] * weighted[j];
        }
    }

    double truth_score(std::span<const std::int64_t> truths) const {
        const std::int64_t *y = truths.data() + first_;
        double score = 0;
        for (Index m = 0; m < length_; m++) {
            score += chains_.emissions[(first_ + m) * labels_ + y[m]];
            if (m) score += chains_.link(chain_, m)[y[m - 1] * labels_ + y[m]];
        }
        return score;
    }

    // Pairs of labels that share their scores are subtracted at the end.
    void subtract_truth(const ChainSums &sums, double importance) const {
        const std::int64_t *y = sums.truths.data() + first_;
        for (Index m = 0; m < length_; m++) {
            sums.marginals[(first_ + m) * labels_ + y[m]] -= importance;
            if (m && chains_.own_links)
                sums.pairs[chains_.link_offset(chain_, m) + y[m - 1] * labels_ + y[m]] -= importance;
        }
    }

    Index chosen(const double *shares, double uniform) const {
        const double total = std::accumulate(shares, shares + labels_, 0.0);
        return share_at(uniform * total, {shares, static_cast<std::size_t>(labels_)});
    }

    const ChainBatch &chains_;
    const MaxPlusKernels &kernels_;
    const Index labels_, width_;
    double most_width_ = kWidest, least_sum_ = 0;  // how far scores may lie apart; and where some are -inf, sums
    Rows tops_, links_, turned_;                   // of tables of links
    double link_width_ = 0;
    bool links_forbid_ = false;
    Index chain_ = 0, first_ = 0, length_ = 0;  // the chain at hand
    double least_ = 0, log_sum_ = 0;
    bool forbids_ = false;
    Rows emitted_tops_, emitted_, ahead_, behind_, weighted_, scales_;
};

using EachChain = std::function<void(Index worker, Index chain, Index group)>;

// Chains in this many groups; one thread processes a group in order.
void each_chain(const ChainBatch &chains, Index groups, double work_each, Index threads, const Poll &poll,
                const Inside &inside, const EachChain &body);

}  // namespace tallytree
