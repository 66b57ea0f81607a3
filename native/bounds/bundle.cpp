#include "bounds/bundle.h"

namespace tallytree::bounds {

void Bundle::begin(Index prices) {
    size_ = prices;
    values_.clear();
    slopes_.clear();
    is_cut_.clear();
    level_ = kNegativeInfinity;
}

void Bundle::limit(Index p, double side, double room) {
    values_.push_back(-room);
    for (Index q = 0; q < size_; q++) slopes_.push_back(q == p ? side : 0.0);
    is_cut_.push_back(0);
}

// The weights are the best ones if no cut is above those that have one, and no limit is broken. Otherwise the one that
// is furthest above gets a weight, too, and the weights are balanced again.
std::span<const double> Bundle::step(double tau) {
    Index top = -1;
    for (Index i = 0; i < std::ssize(values_); i++)
        if (is_cut_[i] && (top < 0 || values_[i] > values_[top])) top = i;
    active_.assign(1, top);
    weights_.assign(1, 1.0);
    level_ = values_[top];
    find_sum();
    level_ -= tau * product(slope(top), sum_.data());
    for (Index round = 0; round < 4 * (std::ssize(values_) + size_); round++) {
        const Index next = most_above(tau);
        if (next < 0) break;
        active_.push_back(next);
        weights_.push_back(0);
        if (!balance(tau) || std::ranges::find(active_, next) == active_.end()) break;
    }
    move_.resize(size_);
    for (Index p = 0; p < size_; p++) move_[p] = -tau * sum_[p];
    for (Index i = 0; i < std::ssize(values_); i++)
        if (is_cut_[i]) level_ = std::max(level_, values_[i] - tau * product(slope(i), sum_.data()));
    return move_;
}

void Bundle::find_sum() {
    sum_.assign(size_, 0.0);
    for (std::size_t k = 0; k < active_.size(); k++)
        for (Index p = 0; p < size_; p++) sum_[p] += weights_[k] * slope(active_[k])[p];
}

// What is furthest above the level, or beyond its limit; -1 where nothing is.
Index Bundle::most_above(double tau) {
    constexpr double kExact = 1e-12;
    Index found = -1;
    double most = kExact * (std::abs(level_) + tau * product(sum_.data(), sum_.data()));
    for (Index i = 0; i < std::ssize(values_); i++) {
        const double above = values_[i] - tau * product(slope(i), sum_.data()) - (is_cut_[i] ? level_ : 0);
        if (!(above > most)) continue;
        most = above;
        found = i;
    }
    return std::ranges::find(active_, found) == active_.end() ? found : -1;
}

// Weights with which all that have one are at the level; those that would be negative go, one after the other.
bool Bundle::balance(double tau) {
    while (solve(tau)) {
        double part = 1;
        std::size_t last = active_.size();
        for (std::size_t k = 0; k < active_.size(); k++) {
            if (wanted_[k] >= 0) continue;
            const double most = weights_[k] / (weights_[k] - wanted_[k]);
            if (most <= part) part = most, last = k;
        }
        for (std::size_t k = 0; k < active_.size(); k++) weights_[k] += part * (wanted_[k] - weights_[k]);
        if (last == active_.size()) {
            level_ = wanted_.back();
            find_sum();
            return true;
        }
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(last));
        weights_.erase(weights_.begin() + static_cast<std::ptrdiff_t>(last));
    }
    return false;
}

// Equations of the weights and of the level, by elimination with pivots. Equal slopes have no solution of their own,
// and a little more on the diagonal makes one of their weights negative.
bool Bundle::solve(double tau) {
    constexpr double kMore = 1e-13;
    const auto many = static_cast<Index>(active_.size()), width = many + 2;
    matrix_.assign((many + 1) * width, 0.0);
    double largest = 0;
    for (Index j = 0; j < many; j++) {
        double *row = matrix_.data() + j * width;
        for (Index k = 0; k < many; k++) row[k] = tau * product(slope(active_[j]), slope(active_[k]));
        largest = std::max(largest, row[j]);
        row[many] = matrix_[many * width + j] = is_cut_[active_[j]];
        row[many + 1] = values_[active_[j]];
    }
    matrix_[many * width + many + 1] = 1;
    for (Index j = 0; j < many; j++) matrix_[j * width + j] += kMore * largest;
    for (Index c = 0; c <= many; c++) {
        Index pivot = c;
        for (Index j = c + 1; j <= many; j++)
            if (std::abs(matrix_[j * width + c]) > std::abs(matrix_[pivot * width + c])) pivot = j;
        if (!(std::abs(matrix_[pivot * width + c]) > 0)) return false;
        if (pivot != c)
            std::swap_ranges(matrix_.begin() + c * width, matrix_.begin() + (c + 1) * width,
                             matrix_.begin() + pivot * width);
        for (Index j = 0; j <= many; j++) {
            if (j == c) continue;
            const double times = matrix_[j * width + c] / matrix_[c * width + c];
            for (Index k = c; k < width && times != 0; k++) matrix_[j * width + k] -= times * matrix_[c * width + k];
        }
    }
    wanted_.resize(many + 1);
    for (Index j = 0; j <= many; j++) wanted_[j] = matrix_[j * width + many + 1] / matrix_[j * width + j];
    return true;
}

}  // namespace tallytree::bounds
