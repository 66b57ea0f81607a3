// Sums over the labellings of one chain after the other by their number of chunks, in plain products: up to a position,
// from it on, and over runs of positions that are a chunk.
#pragma once

#include <algorithm>

#include "crf/spans.h"

namespace tallytree {

class ChunkSums {
  public:
    using Row = std::vector<double>;

    ChunkSums(const ChainBatch &chains, const ChunkScheme &scheme, const MaxPlusKernels *kernels)
        : chains_(chains), scheme_(scheme), kernels_(*kernels), labels_(chains.labels) {
        links_.resize(labels_ * labels_);
        const double top = *std::max_element(chains.links, chains.links + labels_ * labels_);
        kernels_.exponentials(chains.links, top, links_.data(), labels_ * labels_);
        for (Index a = 0; a < labels_; a++)
            for (Index b = 0; b < labels_; b++)
                if (inside(b) && !boundary(a, b)) going_on_.emplace_back(a, b);
    }

    // Sums up a chain; without counting, all numbers of chunks are in one place.
    void take(Index chain, bool counting, Meter &meter) {
        first_ = chains_.starts[chain];
        length_ = chains_.lengths[chain];
        counting_ = counting;
        sizes_ = counting ? length_ + 1 : 1;
        meter_ = &meter;
        if (length_ == 0) return;
        sum_ahead();
        sum_behind();
        total(opened_, opened_totals_);
        total(closed_, closed_totals_);
    }

    Index length() const { return length_; }
    Index sizes() const { return sizes_; }
    Meter &meter() const { return *meter_; }

    // The probability of each number of chunks.
    Row size_probabilities() const {
        Row found(std::max<Index>(sizes_, 1), 0.0);
        if (length_ == 0) found[0] = 1;
        for (Index a = 0; length_ && a < labels_; a++) add(at(ahead_, length_ - 1, a), 1, 0, sizes_, found.data());
        return found;
    }

    // Calls `use(first, last, type, probability)` for every run that can be a chunk.
    template <class Use>
    void each_run(Use use) {
        Row open(labels_), next(labels_);
        for (Index first = 0; first < length_; first++) {
            std::copy_n(opened_totals_.data() + first * labels_, labels_, open.data());
            for (Index last = first; last < length_; last++) {
                if (last > first && !go_on(open, next, last)) break;
                for (std::int32_t type = 0; type < scheme_.type_count; type++)
                    if (const double p = closed(open, last, type); p > 0) use(first, last, type, p);
            }
            meter_->spend(static_cast<double>((length_ - first) * (labels_ + scheme_.type_count)));
        }
    }

    // The labellings with a chunk that began at `first` and is open at `last`, by their number of chunks up to there:
    // [label][number]. Runs come in order, so that earlier ones can be extended.
    void open_run(Index first, Index last) {
        if (first != open_first_ || last < open_last_) {
            open_.assign(at(opened_, first, 0), at(opened_, first, 0) + labels_ * sizes_);
            open_first_ = first;
            open_last_ = first;
        }
        for (; open_last_ < last; open_last_++) {
            next_.assign(labels_ * sizes_, 0.0);
            for (const auto &[a, b] : going_on_)
                add(open_.data() + a * sizes_, factor(a, b, open_last_ + 1), 0, first + 2, next_.data() + b * sizes_);
            open_.swap(next_);
            meter_->spend(static_cast<double>(static_cast<Index>(going_on_.size()) * (first + 2)));
        }
    }
    void forget_runs() { open_first_ = -1; }

    // How likely a chunk of a type is that is open and ends at `last`, by the number of chunks of the truth.
    void close_run(Index first, Index last, std::int32_t type, Row &joint) const {
        joint.assign(sizes_, 0.0);
        for (Index a = 0; a < labels_; a++)
            for (Index n = 1; n <= first + 1 && scheme_.types[a] == type; n++)
                if (const double open = open_[a * sizes_ + n]; open > 0)
                    add(at(closed_, last, a), open, n, length_ - last, joint.data());
        meter_->spend(static_cast<double>((first + 2) * (length_ - last)));
    }

  private:
    double *at(Row &rows, Index m, Index label) const { return rows.data() + (m * labels_ + label) * sizes_; }
    const double *at(const Row &rows, Index m, Index label) const {
        return rows.data() + (m * labels_ + label) * sizes_;
    }
    bool inside(Index label) const { return scheme_.types[label] >= 0; }
    bool boundary(Index a, Index b) const { return scheme_.boundaries[a * labels_ + b] != 0; }
    double factor(Index a, Index b, Index m) const { return links_[a * labels_ + b] * emitted_[m * labels_ + b]; }

    // to[n + by] += f * from[n], for n below `count`
    void add(const double *from, double f, Index by, Index count, double *to) const {
        const Index end = std::min(count, sizes_ - by);
        to += by;
        for (Index n = 0; n < end; n++) to[n] += f * from[n];
    }

    // Labellings up to each position, by their label there and the chunks that have begun; and those where one begins
    // there.
    void sum_ahead() {
        const auto size = static_cast<std::size_t>(length_ * labels_ * sizes_);
        for (auto *rows : {&ahead_, &opened_, &behind_, &closed_}) rows->assign(size, 0.0);
        emitted_.assign(length_ * labels_, 0.0);
        open_first_ = -1;
        for (Index m = 0; m < length_; m++) {
            double *emitted = emitted_.data() + m * labels_;
            const double *scores = chains_.emissions + (first_ + m) * labels_;
            kernels_.exponentials(scores, *std::max_element(scores, scores + labels_), emitted, labels_);
            for (Index b = 0; b < labels_; b++) enter(m, b);
            double sum = 0;
            for (const double *x = at(ahead_, m, 0), *end = x + labels_ * sizes_; x < end; x++) sum += *x;
            for (Index i = 0; i < labels_ * sizes_; i++) at(ahead_, m, 0)[i] /= sum;
            for (Index i = 0; i < labels_ * sizes_; i++) at(opened_, m, 0)[i] /= sum;
            for (Index b = 0; b < labels_; b++) emitted[b] /= sum;  // from here on, all of the position's scale
            meter_->spend(static_cast<double>(labels_ * labels_ * sizes_));
        }
    }

    void enter(Index m, Index b) {
        const double emitted = emitted_[m * labels_ + b];
        double *ahead = at(ahead_, m, b), *opened = at(opened_, m, b);
        if (m == 0) {
            ahead[inside(b) ? counting_ : 0] = emitted;
            if (inside(b)) opened[counting_] = emitted;
            return;
        }
        for (Index a = 0; a < labels_; a++) {
            const bool opens = inside(b) && boundary(a, b);
            add(at(ahead_, m - 1, a), factor(a, b, m), 0, m + 1, opens ? opened + counting_ : ahead);
        }
        for (Index n = 0; n < sizes_; n++) ahead[n] += opened[n];
    }

    // What can follow a label at each position, by the chunks that begin later; and where there is a boundary behind
    // it.
    void sum_behind() {
        for (Index a = 0; a < labels_; a++) *at(behind_, length_ - 1, a) = *at(closed_, length_ - 1, a) = 1;
        for (Index m = length_ - 1; m > 0; m--) {
            for (Index a = 0; a < labels_; a++) {
                double *behind = at(behind_, m - 1, a), *closed = at(closed_, m - 1, a);
                for (Index b = 0; b < labels_; b++) {
                    const bool cut = boundary(a, b);
                    add(at(behind_, m, b), factor(a, b, m), cut && inside(b) ? counting_ : 0, length_ - m,
                        cut ? closed : behind);
                }
                for (Index n = 0; n < sizes_; n++) behind[n] += closed[n];
            }
            meter_->spend(static_cast<double>(labels_ * labels_ * sizes_));
        }
    }

    void total(const Row &rows, Row &to) const {
        to.assign(length_ * labels_, 0.0);
        for (Index i = 0; i < length_ * labels_; i++)
            for (Index n = 0; n < sizes_; n++) to[i] += rows[i * sizes_ + n];
    }

    // Moves open chunks on by one position; false where none can go on.
    bool go_on(Row &open, Row &next, Index m) const {
        std::fill(next.begin(), next.end(), 0.0);
        bool any = false;
        for (const auto &[a, b] : going_on_) {
            next[b] += factor(a, b, m) * open[a];
            any |= open[a] > 0;
        }
        open.swap(next);
        return any;
    }

    double closed(const Row &open, Index last, std::int32_t type) const {
        double sum = 0;
        for (Index a = 0; a < labels_; a++)
            if (scheme_.types[a] == type) sum += open[a] * closed_totals_[last * labels_ + a];
        return sum;
    }

    const ChainBatch &chains_;
    const ChunkScheme &scheme_;
    const MaxPlusKernels &kernels_;
    const Index labels_;
    Row links_;
    std::vector<std::pair<Index, Index>> going_on_;  // labels that are in one chunk
    Meter *meter_ = nullptr;
    Index first_ = 0, length_ = 0, sizes_ = 0;  // of the chain at hand; numbers of chunks are below the last
    Index counting_ = 1;                        // 0 where chunks are not counted
    Row ahead_, opened_, behind_, closed_;      // [position][label][number of chunks]
    Row emitted_, opened_totals_, closed_totals_, open_, next_;
    Index open_first_ = -1, open_last_ = -1;
};

}  // namespace tallytree
