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
    for (Index t = 0; t < states_; t++)
        if (item_->truth.labels_at(m)[t] >= 0) step_factors(m, t, fits);
}

void TalliedChain::step_factors(Index m, Index t, const std::uint8_t *fits) {
    const Truth &truth = item_->truth;
    const Box &box = boxes_[m];
    const Index to = truth.labels_at(m)[t];
    const double *links = link_table(m) + to, emitted = emitted_[m * labels_ + to];
    const std::int32_t *from = truth.labels_at(m - 1);
    const std::uint8_t *live = live_.data() + (m - 1) * states_;
    Index *offsets = offsets_.data() + step(m, 0, t), offset = 0;
    double *factors = factors_.data() + step(m, 0, t);
    for (Index p = 0; p < statistics_; p++) offset += (truth.given_at(p, m)[t] - box.least[p]) * box.stride[p];
    for (Index s = 0; s < states_; s++) {
        const bool follows = live[s] && (!fits || fits[s * states_ + t]);
        factors[s] = follows ? links[from[s] * labels_] * emitted : 0;
        offsets[s] = offset;
    }
    for (Index p = 0; fits && p < statistics_; p++) {
        const std::int64_t *moved = truth.moved_at(p, m) + t;
        for (Index s = 0; s < states_; s++) offsets[s] += moved[s * states_] * box.stride[p];
    }
    for (Index s = 0; s < states_; s++) offsets[s] = factors[s] != 0 ? offsets[s] : -1;
}

// Collects the rows of the position before that lead to a state, with their factors; returns how many there are.
Index TalliedChain::rows_before(Index m, Index t) {
    const Index *offsets = offsets_.data() + step(m, 0, t), stride = boxes_[m].before;
    const double *factors = factors_.data() + step(m, 0, t), *first = before(m, 0);
    Index count = 0;
    for (Index s = 0; s < states_; s++) {
        rows_[count] = first + s * stride - offsets[s];
        by_[count] = factors[s];
        from_[count] = s;
        count += offsets[s] >= 0;
    }
    return count;
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
        const Index count = rows_before(m, t);
        live_[m * states_ + t] = count > 0;
        kernels.matrices.mix_rows(rows_.data(), by_.data(), count, row(m, t), boxes_[m].width);
    }
    drop_small(m);
}

void TalliedChain::drop_small(Index m) {
    const double smallest = std::exp(forbids_ ? -kSmallestAllowedLog : -kSmallestLog);
    double *cells = row(m, 0);
    std::int64_t dropped = 0;
    for (Index i = 0; i < states_ * boxes_[m].width; i++) {
        dropped |= (cells[i] > 0) & (cells[i] < smallest) ? std::int64_t{1} : std::int64_t{0};
        cells[i] = cells[i] < smallest ? 0.0 : cells[i];
    }
    dropped_ |= dropped != 0;
}

// False where nothing is allowed, or too much would have to be left out.
bool TalliedChain::sum_forward(const MaxPlusKernels &kernels, Meter &meter) {
    const Box &last = boxes_[length_ - 1];
    tables_.assign(last.begin + (length_ > 1 ? states_ * last.before : 0), 0.0);
    factors_.resize(length_ * states_ * states_);
    rows_.resize(states_);
    by_.resize(states_);
    from_.resize(states_);
    dots_.resize(states_);
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
    const std::int32_t *labels_before = item_->truth.labels_at(m - 1);
    for (Index t = 0; t < states_; t++) {
        const Index count = rows_before(m, t), label = item_->truth.labels_at(m)[t];
        kernels.matrices.dot_rows(rows_.data(), behind_.data() + t * behind_width_, count, dots_.data(),
                                  boxes_[m].width);
        double sum = 0;
        for (Index k = 0; k < count; k++) {
            const double share = importance * by_[k] * dots_[k];
            sum += share;
            pairs[labels_before[from_[k]] * labels_ + label] += share;
        }
        if (count) of_label[label] += sum;
    }
    step_back(m, kernels);
}

// From what follows the states of m to what follows those of m - 1.
void TalliedChain::step_back(Index m, const MaxPlusKernels &kernels) {
    const Index width = boxes_[m].width;
    back_.resize(states_ * width);
    for (Index s = 0; s < states_; s++) {
        Index count = 0;
        for (Index t = 0; t < states_; t++) {
            const Index offset = offsets_[step(m, s, t)];
            rows_[count] = behind_.data() + t * behind_width_ + offset;
            by_[count] = factors_[step(m, s, t)];
            count += offset >= 0;
        }
        kernels.matrices.mix_rows(rows_.data(), by_.data(), count, back_.data() + s * width, width);
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
