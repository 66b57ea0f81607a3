#include "crf/best.h"

#include "crf/chain_summer.h"
#include "walk/evaluate.h"

namespace tallytree {
namespace {

// What one thread needs for one chain after the other. Rows have room for whole vectors.
class ChainLabeller {
  public:
    ChainLabeller(const ChainBatch &chains, const MaxPlusKernels *kernels)
        : chains_(chains), kernels_(*kernels), labels_(chains.labels), width_(round_up(chains.labels)) {
        links_.assign(labels_ * width_, 0.0);
        turned_ = links_;
        sums_.assign(labels_, 0.0);
        for (Index i = 0; i < labels_; i++)
            for (Index j = 0; j < labels_; j++)
                links_[i * width_ + j] = turned_[j * width_ + i] = chains.links[i * labels_ + j];
    }

    // False where the labels do not have the score that the messages promise.
    bool label(Index chain, std::int64_t *labels) {
        length_ = chains_.lengths[chain];
        if (length_ == 0) return true;
        emissions_ = chains_.emissions + chains_.starts[chain] * labels_;
        messages_.resize(length_ * width_);
        forward();
        const double *last = at(length_ - 1);
        labels[length_ - 1] = std::max_element(last, last + labels_) - last;
        const double promised = last[labels[length_ - 1]];
        for (Index m = length_ - 1; m > 0; m--) labels[m - 1] = before(m, labels[m]);
        const Evaluation found = evaluated(labels);
        return std::abs(found.score - promised) <= rounding_bound(found);
    }

  private:
    double *at(Index m) { return messages_.data() + m * width_; }
    const double *emitted(Index m) const { return emissions_ + m * labels_; }

    // message[m][j] = emitted[m][j] + max over i of message[m - 1][i] + link[i][j].
    void forward() {
        std::copy_n(emissions_, labels_, at(0));
        for (Index m = 1; m < length_; m++) {
            kernels_.mix_along(labels_, at(m - 1), links_.data(), width_, nullptr, at(m), labels_);
            const double *added = emitted(m);
            for (Index j = 0; j < labels_; j++) at(m)[j] += added[j];
        }
    }

    // The first of the best labels before a label. Scores are added up as a plan does it, so that it is the same one.
    Index before(Index m, Index label) {
        const double *message = at(m - 1), *link = turned_.data() + label * width_, emission = emitted(m)[label];
        for (Index i = 0; i < labels_; i++)
            sums_[i] = m > 1 ? message[i] + (link[i] + emission) : message[i] + link[i] + emission;
        return std::max_element(sums_.begin(), sums_.end()) - sums_.begin();
    }

    Evaluation evaluated(const std::int64_t *labels) const {
        Evaluation found;
        for (Index m = 0; m < length_; m++) found.add(emitted(m)[labels[m]]);
        for (Index m = 1; m < length_; m++) found.add(links_[labels[m - 1] * width_ + labels[m]]);
        return found;
    }

    const ChainBatch &chains_;
    const MaxPlusKernels &kernels_;
    const Index labels_, width_;
    const double *emissions_ = nullptr;  // of the chain at hand
    Index length_ = 0;
    std::vector<double> links_, turned_, messages_, sums_;
};

}  // namespace

void label_chains(const ChainBatch &chains, const ChainLabels &found, Index threads, const MaxPlusKernels *kernels,
                  const Poll &poll, const Inside &inside) {
    const ChainLabeller model(chains, kernels);
    const Index groups = group_count(chains.size(), 8);
    const auto work = static_cast<double>(chains.labels * chains.labels) / 8;
    std::vector<ChainLabeller> labellers(std::max<Index>(threads, 1), model);
    each_chain(chains, groups, work, threads, poll, inside, [&](Index worker, Index i, Index) {
        found.left_out[i] = !labellers[worker].label(i, found.labels.data() + chains.starts[i]);
    });
}

}  // namespace tallytree
