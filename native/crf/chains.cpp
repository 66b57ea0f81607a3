#include "crf/chains.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tallytree {
namespace {

struct Spread {
    double low = std::numeric_limits<double>::infinity(), high = kNegativeInfinity;
    void take(std::span<const double> scores) {
        for (const double score : scores) {
            low = std::min(low, score);
            high = std::max(high, score);
        }
    }
};

// What one thread needs for one chain after the other. Rows have room for whole vectors, and zeros beyond the labels.
class ChainSummer {
  public:
    ChainSummer(const ChainBatch &chains, const MaxPlusKernels *kernels)
        : chains_(chains), kernels_(*kernels), labels_(chains.labels), width_(round_up(chains.labels)) {
        links_.assign(width_ * width_, 0.0);
        turned_ = links_;
        Spread spread;
        spread.take({chains.links, static_cast<std::size_t>(labels_ * labels_)});
        top_ = spread.high;
        for (Index i = 0; i < labels_; i++)
            kernels_.exponentials(chains.links + i * labels_, top_, links_.data() + i * width_, labels_);
        for (Index i = 0; i < labels_; i++)
            for (Index j = 0; j < labels_; j++) turned_[j * width_ + i] = links_[i * width_ + j];
    }

    // `pairs` takes sums without the scores of links themselves, which are put in at the end.
    void sum(Index chain, const ChainSums &sums, std::vector<double> &pairs) {
        first_ = chains_.starts[chain];
        length_ = chains_.starts[chain + 1] - first_;
        if (length_ == 0) {
            sums.log_sums[chain] = 0;
            return;
        }
        sums.log_sums[chain] = forward();
        backward();
        const double importance = sums.importance[chain];
        for (Index m = 0; m < length_; m++)
            for (Index j = 0; j < labels_; j++)
                sums.marginals[(first_ + m) * labels_ + j] = importance * at(ahead_, m)[j] * at(behind_, m)[j];
        for (Index m = 1; m < length_; m++)
            for (Index j = 0; j < labels_; j++) at(weighted_, m)[j] *= importance / scales_[m];
        kernels_.matrices.add_outer(at(ahead_, 0), at(weighted_, 1), length_ - 1, labels_, width_, pairs.data(),
                                    labels_);
    }

    Index width() const { return width_; }
    double link(Index i, Index j) const { return links_[i * width_ + j]; }

  private:
    using Rows = std::vector<double>;
    double *at(Rows &rows, Index m) const { return rows.data() + m * width_; }

    double forward() {
        for (auto *rows : {&emitted_, &ahead_, &behind_, &weighted_}) rows->assign((length_ + 1) * width_, 0.0);
        scales_.assign(length_, 0.0);
        double log_sum = top_ * static_cast<double>(length_ - 1);
        for (Index m = 0; m < length_; m++) {
            const double *scores = chains_.emissions + (first_ + m) * labels_;
            const double top = *std::max_element(scores, scores + labels_);
            double *emitted = at(emitted_, m), *ahead = at(ahead_, m);
            kernels_.exponentials(scores, top, emitted, labels_);
            if (m) kernels_.matrices.row_times(at(ahead_, m - 1), labels_, links_.data(), width_, ahead, labels_);
            double sum = 0;
            for (Index j = 0; j < labels_; j++) sum += ahead[j] = m ? ahead[j] * emitted[j] : emitted[j];
            for (Index j = 0; j < labels_; j++) ahead[j] /= sum;
            scales_[m] = sum;
            log_sum += top + std::log(sum);
        }
        return log_sum;
    }

    void backward() {
        std::fill_n(at(behind_, length_ - 1), labels_, 1.0);
        for (Index m = length_ - 1; m > 0; m--) {
            double *weighted = at(weighted_, m), *before = at(behind_, m - 1);
            for (Index j = 0; j < labels_; j++) weighted[j] = at(emitted_, m)[j] * at(behind_, m)[j];
            kernels_.matrices.row_times(weighted, labels_, turned_.data(), width_, before, labels_);
            for (Index i = 0; i < labels_; i++) before[i] /= scales_[m];
        }
    }

    const ChainBatch &chains_;
    const MaxPlusKernels &kernels_;
    const Index labels_, width_;
    double top_ = 0;  // of the scores of links
    Rows links_, turned_;
    Index first_ = 0, length_ = 0;  // of the chain at hand
    Rows emitted_, ahead_, behind_, weighted_;
    std::vector<double> scales_;
};

}  // namespace

bool are_level(const ChainBatch &chains) {
    const auto labels = static_cast<std::size_t>(chains.labels);
    Spread links;
    links.take({chains.links, labels * labels});
    double widest = 0;
    for (Index m = 0; m < chains.starts.back(); m++) {
        Spread row;
        row.take({chains.emissions + m * chains.labels, labels});
        if (!(row.high - row.low <= widest)) widest = row.high - row.low;
        if (!std::isfinite(widest)) return false;
    }
    return links.high - links.low + widest <= kWidest && std::isfinite(links.high);
}

void sum_chains(const ChainBatch &chains, const ChainSums &sums, Index threads, const MaxPlusKernels *kernels,
                const Poll &poll, const Inside &inside) {
    const ChainSummer model(chains, kernels);
    const Index labels = chains.labels, width = model.width();
    const Index groups = group_count(chains.size(), 8 * static_cast<double>(width * width));
    std::vector<std::vector<double>> pairs(groups);
    std::vector<ChainSummer> summers(std::max<Index>(threads, 1), model);
    const Work work = [&](Worker &worker, Index group) {
        Meter meter(worker.poll);
        pairs[group].assign(width * width, 0.0);
        const Index first = group * chains.size() / groups, last = (group + 1) * chains.size() / groups;
        for (Index i = first; i < last; i++) {
            summers[worker.number].sum(i, sums, pairs[group]);
            meter.spend(static_cast<double>((chains.starts[i + 1] - chains.starts[i]) * labels * labels) / 2);
        }
    };
    std::vector<Index> order(groups);
    std::iota(order.begin(), order.end(), 0);
    share_out(order, threads, work, poll, inside);
    std::fill(sums.pairs.begin(), sums.pairs.end(), 0.0);
    for (const auto &part : pairs)
        for (Index i = 0; i < labels; i++)
            for (Index j = 0; j < labels; j++) sums.pairs[i * labels + j] += part[i * width + j];
    for (Index i = 0; i < labels; i++)
        for (Index j = 0; j < labels; j++) sums.pairs[i * labels + j] *= model.link(i, j);
}

}  // namespace tallytree
