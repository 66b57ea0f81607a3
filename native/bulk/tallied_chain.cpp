#include "bulk/tallied_chain.h"

#include <algorithm>
#include <cmath>

namespace tallytree {

void TalliedChain::exponentials(const MaxPlusKernels &kernels) {
    emitted_.resize(length_ * labels_);
    for (Index m = 0; m < length_; m++)
        kernels.exponentials(item_->scores[0].row(m), tops_[m], emitted_.data() + m * labels_, labels_);
    const Index square = labels_ * labels_;
    links_.resize(static_cast<Index>(link_tops_.size()) * square);
    for (std::size_t k = 0; k < link_tops_.size(); k++)
        kernels.exponentials(item_->scores[1].row(static_cast<Index>(k)), link_tops_[k],
                             links_.data() + static_cast<Index>(k) * square, square);
}

// Sums over all labellings without tallies: the scale of each position, which its exponentials are divided by.
bool TalliedChain::sum_labels() {
    of_labels_.assign(length_ * labels_, 0.0);
    log_sum_ = 0;
    for (Index m = 0; m < length_; m++) {
        double *emitted = emitted_.data() + m * labels_, *here = of_labels_.data() + m * labels_, sum = 0;
        if (m == 0) std::fill_n(here, labels_, 1.0);
        for (Index a = 0; m && a < labels_; a++)
            for (Index b = 0; b < labels_; b++) here[b] += here[a - labels_] * link_table(m)[a * labels_ + b];
        for (Index b = 0; b < labels_; b++) sum += here[b] *= emitted[b];
        if (!(sum > 0)) return false;  // nothing is allowed
        for (Index b = 0; b < labels_; b++) {
            here[b] /= sum;
            emitted[b] /= sum;
        }
        log_sum_ += tops_[m] + std::log(sum) + (m ? link_tops_[link_tops_.size() == 1 ? 0 : m - 1] : 0);
    }
    return true;
}

void TalliedChain::first_row() {
    const Truth &truth = item_->truth;
    const Box &box = boxes_[0];
    ahead_.assign(states_ * box.width, 0.0);
    for (Index s = 0; s < states_; s++) {
        const Index label = truth.labels_at(0)[s];
        live_[s] = label >= 0 && emitted_[label] > 0;
        if (!live_[s]) continue;
        Index cell = 0;
        for (Index p = 0; p < statistics_; p++) cell += (truth.given_at(p, 0)[s] - box.low[p]) * box.stride[p];
        row(0, s)[cell] = emitted_[label];
    }
}

// What states of m - 1 and m weigh together, and where tallies of the one are among those of the other.
void TalliedChain::step_factors(Index m) {
    const auto &tables = item_->truth.tables();
    const std::uint8_t *fits =
        tables.links ? tables.fits.data() + item_->truth.table_at(m) * states_ * states_ : nullptr;
    for (Index s = 0; s < states_; s++)
        for (Index t = 0; live_[(m - 1) * states_ + s] && t < states_; t++)
            if (!fits || fits[s * states_ + t]) step_factor(m, s, t);
}

void TalliedChain::step_factor(Index m, Index s, Index t) {
    const Truth &truth = item_->truth;
    const Index from = truth.labels_at(m - 1)[s], to = truth.labels_at(m)[t];
    if (from < 0 || to < 0) return;
    const double factor = link_table(m)[from * labels_ + to] * emitted_[m * labels_ + to];
    if (factor == 0) return;  // forbidden
    const Box &box = boxes_[m];
    Index offset = 0;
    for (Index p = 0; p < statistics_; p++) {
        const Index moved = truth.has_states() ? truth.moved_at(p, m)[s * states_ + t] : 0;
        offset += (truth.given_at(p, m)[t] + moved - box.least[p]) * box.stride[p];
    }
    offsets_[step(m, s, t)] = offset;
    factors_[step(m, s, t)] = factor;
}

// Calls `copy(place among the tallies of m - 1, the same in the strides of m, number of cells)` for all lines.
template <class Copy>
void TalliedChain::each_line(Index m, Copy copy) const {
    const Box &from = boxes_[m - 1], &to = boxes_[m];
    const Index last = statistics_ - 1, line = from.keep[last];
    Index counter[kMostTallied] = {}, here = 0, there = 0, lines = 1;
    for (Index p = 0; p < last; p++) lines *= from.keep[p];
    for (Index i = 0; i < lines; i++) {
        copy(here, there, line);
        for (Index p = last; p-- > 0;) {
            here += from.stride[p];
            there += to.stride[p];
            if (++counter[p] < from.keep[p]) break;
            here -= counter[p] * from.stride[p];
            there -= counter[p] * to.stride[p];
            counter[p] = 0;
        }
    }
}

void TalliedChain::lay_before(Index m) {
    for (Index s = 0; s < states_; s++)
        if (live_[(m - 1) * states_ + s])
            each_line(m, [&](Index here, Index there, Index n) {
                std::copy_n(row(m - 1, s) + here, n, before(m, s) + there);
            });
}

void TalliedChain::forward(Index m, const MaxPlusKernels &kernels) {
    step_factors(m);
    lay_before(m);
    ahead_.resize(states_ * boxes_[m].width);
    for (Index t = 0; t < states_; t++) {
        rows_.clear();
        by_.clear();
        for (Index s = 0; s < states_; s++)
            if (const Index offset = offsets_[step(m, s, t)]; offset >= 0) {
                rows_.push_back(before(m, s) - offset);
                by_.push_back(factors_[step(m, s, t)]);
            }
        live_[m * states_ + t] = !rows_.empty();
        kernels.matrices.mix_rows(rows_.data(), by_.data(), static_cast<Index>(rows_.size()), row(m, t),
                                  boxes_[m].width);
    }
    drop_small(m);
}

void TalliedChain::drop_small(Index m) {
    const double smallest = std::exp(forbids_ ? -kSmallestAllowedLog : -kSmallestLog);
    double *cells = row(m, 0);
    bool dropped = false;
    for (Index i = 0; i < states_ * boxes_[m].width; i++) {
        dropped |= cells[i] > 0 && cells[i] < smallest;
        cells[i] = cells[i] < smallest ? 0.0 : cells[i];
    }
    dropped_ |= dropped;
}

// False where nothing is allowed, or too much would have to be left out.
bool TalliedChain::sum_forward(const MaxPlusKernels &kernels, Meter &meter) {
    const Box &last = boxes_[length_ - 1];
    tables_.assign(last.begin + (length_ > 1 ? states_ * last.before : 0), 0.0);
    factors_.resize(length_ * states_ * states_);
    offsets_.assign(length_ * states_ * states_, -1);
    live_.assign(length_ * states_, 0);
    dropped_ = false;
    exponentials(kernels);
    if (!sum_labels()) return false;
    first_row();
    for (Index m = 1; m < length_ && !(forbids_ && dropped_); m++) {
        forward(m, kernels);
        spend(m, meter);
    }
    return !forbids_ || sure().complete;
}

bool TalliedChain::find(double importance, std::span<double *const> entries, const MaxPlusKernels *kernels,
                        Meter &meter, double &value) {
    if (!sum_forward(*kernels, meter) || !root(value)) return false;
    if (importance == 0) return true;
    hold_behind(length_ - 1);
    for (Index s = 0; s < states_; s++)
        std::copy(weights_.begin(), weights_.end(), behind_.begin() + s * behind_width_);
    for (Index m = length_ - 1; m > 0; m--) {
        backward(m, importance, entries, *kernels);
        spend(m, meter);
    }
    end(importance, entries);
    if (question_.objective == Objective::Evidence) add_plain(importance, entries);
    return true;
}

// Makes room for what follows the states of a position.
void TalliedChain::hold_behind(Index m) {
    behind_width_ = boxes_[m].width + padded(boxes_[m].reach) + kPadding;
    behind_.assign(states_ * behind_width_, 0.0);
}

void TalliedChain::backward(Index m, double importance, std::span<double *const> entries,
                            const MaxPlusKernels &kernels) {
    const auto &links = item_->scores[1];
    double *pairs = entries[1] + (links.row(m - 1) - links.data), *of_label = entries[0] + m * labels_;
    dots_.resize(states_);
    for (Index t = 0; t < states_; t++) {
        rows_.clear();
        from_.clear();
        for (Index s = 0; s < states_; s++)
            if (const Index offset = offsets_[step(m, s, t)]; offset >= 0) {
                rows_.push_back(before(m, s) - offset);
                from_.push_back(s);
            }
        kernels.matrices.dot_rows(rows_.data(), behind_.data() + t * behind_width_, static_cast<Index>(rows_.size()),
                                  dots_.data(), boxes_[m].width);
        const Index label = item_->truth.labels_at(m)[t];
        for (std::size_t k = 0; k < from_.size(); k++) {
            const double share = importance * factors_[step(m, from_[k], t)] * dots_[k];
            of_label[label] += share;
            pairs[item_->truth.labels_at(m - 1)[from_[k]] * labels_ + label] += share;
        }
    }
    step_back(m, kernels);
}

// From what follows the states of m to what follows those of m - 1.
void TalliedChain::step_back(Index m, const MaxPlusKernels &kernels) {
    const Index width = boxes_[m].width;
    back_.resize(states_ * width);
    for (Index s = 0; s < states_; s++) {
        rows_.clear();
        by_.clear();
        for (Index t = 0; t < states_; t++)
            if (const Index offset = offsets_[step(m, s, t)]; offset >= 0) {
                rows_.push_back(behind_.data() + t * behind_width_ + offset);
                by_.push_back(factors_[step(m, s, t)]);
            }
        kernels.matrices.mix_rows(rows_.data(), by_.data(), static_cast<Index>(rows_.size()), back_.data() + s * width,
                                  width);
    }
    hold_behind(m - 1);
    for (Index s = 0; s < states_; s++)
        each_line(m, [&](Index here, Index there, Index n) {
            std::copy_n(back_.data() + s * width + there, n, behind_.data() + s * behind_width_ + here);
        });
}

void TalliedChain::end(double importance, std::span<double *const> entries) {
    first_row();
    for (Index s = 0; s < states_; s++) {
        if (!live_[s]) continue;
        double sum = 0;
        for (Index i = 0; i < boxes_[0].cells; i++) sum += row(0, s)[i] * behind_[s * behind_width_ + i];
        entries[0][item_->truth.labels_at(0)[s]] += importance * sum;
    }
}

// The expected labels and neighbours over all tallies.
void TalliedChain::add_plain(double importance, std::span<double *const> entries) {
    Row behind(labels_, 1.0), before(labels_);
    for (Index m = length_ - 1; m >= 0; m--) {
        for (Index b = 0; b < labels_; b++) {
            if (of_labels_[m * labels_ + b] == 0) behind[b] = 0;  // nothing leads there, and it may be beyond numbers
            entries[0][m * labels_ + b] += importance * of_labels_[m * labels_ + b] * behind[b];
        }
        if (m == 0) return;
        double *pairs = entries[1] + (item_->scores[1].row(m - 1) - item_->scores[1].data);
        const double *ahead = of_labels_.data() + (m - 1) * labels_;
        for (Index b = 0; b < labels_; b++) behind[b] *= emitted_[m * labels_ + b];
        for (Index a = 0; a < labels_; a++) {
            before[a] = 0;
            for (Index b = 0; b < labels_; b++) {
                const double share = link_table(m)[a * labels_ + b] * behind[b];
                before[a] += share;
                pairs[a * labels_ + b] += importance * ahead[a] * share;
            }
        }
        behind.swap(before);
    }
}

}  // namespace tallytree
