#include "crf/risks.h"

#include "crf/risk_summer.h"

namespace tallytree {

// ---- from left to right ------------------------------------------------------------------------------------------

double RiskSummer::sum_ahead() {
    for (Index m = 0; m < length_; m++) {
        double *rows = sums(m);
        for (Index r = 0; m == 0 && r < lanes(); r++) std::fill_n(rows + r * width_, width_, r % 2 ? 0.0 : 1.0);
        if (m) {
            show(m - 1, Shown::Off);
            kernels_.matrices.rows_times(sums(m - 1), lanes(), labels_, table(off_, m), width_, rows, labels_);
            show(m - 1, Shown::On);
        }
        agree(m);
        kernels_.columns.arrive(places_.at(m, columns_, x_), steps_into(m), m ? sums(m - 1) : rows, rows);
        if (m) show(m - 1, Shown::Own);
        Index e = 0;
        for (const Index j : places_.agreeing(m)) {
            double *own = small(own_, m, e++);
            for (Index r = 0; r < lanes(); r++) own[r] = rows[r * width_ + j];
        }
    }
    double value = 0;
    show(length_ - 1, Shown::Off);
    for (Index c = 0; c < columns_; c++) {
        const double *costs = sums(length_ - 1) + (2 * c + 1) * width_;
        value += w_[c] * std::accumulate(costs, costs + labels_, 0.0);
    }
    show(length_ - 1, Shown::Own);
    return value;
}

// The sums of labellings that agree with the true chunk: they begin with steps off, and go on with steps on.
void RiskSummer::agree(Index m) {
    Index e = 0;
    for (const Index j : places_.agreeing(m)) {
        double *to = small(agreed_, m, e++);
        const double weight = places_.weight(m, j);
        for (Index r = 0; r < lanes(); r++)
            to[r] = places_.begins(m) ? sums(m)[r * width_ + j] * (weight * x_[r / 2]) : 0;
        Index before = 0;
        for (const Index i : places_.stays(m) ? places_.agreeing(m - 1) : std::span<const Index>()) {
            const double *from = small(agreed_, m - 1, before++);
            const double by = places_.continues(i, j) ? factor(m, i, j) * weight : 0;
            for (Index r = 0; r < lanes(); r++) to[r] += by * from[r];
        }
    }
}

// Sets the sums of the labels of a true chunk to those that do not agree with it, or what they are for the next step.
void RiskSummer::show(Index m, Shown what) {
    const bool joined = what == Shown::Off || (what == Shown::On && !places_.stays(m + 1));
    const double errors = what == Shown::Off ? places_.cut(m + 1) : places_.beyond();
    Index e = 0;
    for (const Index j : places_.agreeing(m)) {
        const double *own = small(own_, m, e), *agreed = small(agreed_, m, e++);
        double *to = sums(m) + j;
        for (Index r = 0; r < lanes(); r += 2) {
            to[r * width_] = joined ? own[r] + agreed[r] : own[r];
            to[(r + 1) * width_] = joined ? own[r + 1] + (agreed[r + 1] + errors * agreed[r]) : own[r + 1];
        }
    }
}

// ---- and back ----------------------------------------------------------------------------------------------------

void RiskSummer::sum_behind() {
    for (Index c = 0; c < columns_; c++) {
        std::fill_n(weights_.data() + 2 * c * width_, width_, 0.0);
        std::fill_n(weights_.data() + (2 * c + 1) * width_, width_, w_[c]);
    }
    for (std::size_t i = 0; i < agreed_weights_.size(); i++) agreed_weights_[i] = i % 2 ? w_[i % lanes() / 2] : 0;
    for (Index m = length_ - 1;; m--) {
        leave(m);
        if (m == 0) return;
        step_back(m);
    }
}

// From the weights of the sums of a position to those of the steps into it.
void RiskSummer::leave(Index m) {
    double *products = at(by_label_, m), *on = apart_.empty() ? nullptr : weights_on_.data() + width_;
    kernels_.columns.weigh(places_.at(m, columns_, x_), sums(m), weights_.data(), weights_off_.data(), on, products);
    Index e = 0;
    for (const Index j : places_.agreeing(m)) {
        const double *sums = small(agreed_, m, e), *weights = small(agreed_weights_, 0, e), by = places_.weight(m, j);
        double *to = small(agreed_on_, 0, e++);
        for (Index r = 0; r < lanes(); r++) products[j] += sums[r] * weights[r];
        for (Index r = 0; r < lanes(); r++) to[r] = places_.stays(m) ? weights[r] * by : 0;
        for (Index r = 0; places_.begins(m) && r < lanes(); r++)
            weights_off_[r * width_ + j] = weights[r] * (by * x_[r / 2]);
    }
}

// From the weights of the steps into a position to those of the sums before.
void RiskSummer::step_back(Index m) {
    const Index table_of = chains_.own_links ? m - 1 : 0, distances = static_cast<Index>(apart_.size());
    double *by_off = by_step_off_.data() + table_of * width_ * width_;
    double *by_on = by_step_on_.data() + table_of * distances * width_;
    const auto agreeing = places_.agreeing(m - 1);
    kernels_.matrices.rows_times(weights_off_.data(), lanes(), labels_, table(off_turned_, m), width_, weights_.data(),
                                 labels_);
    for (std::size_t e = 0; e < agreeing.size(); e++) return_agreed(m, static_cast<Index>(e), agreeing[e]);
    show(m - 1, Shown::Off);
    kernels_.matrices.add_outer(sums(m - 1), weights_off_.data(), lanes(), labels_, width_, by_off, labels_);
    show(m - 1, Shown::On);
    kernels_.columns.go_back(columns_, width_, steps_into(m), sums(m - 1), weights_on_.data() + width_, weights_.data(),
                             by_on);
    show(m - 1, Shown::Own);
    for (Index i = 0; forbids_ && i < labels_; i++)
        for (Index r = 0; at(ahead_, m - 1)[i] == 0 && r < lanes(); r++) weights_[r * width_ + i] = 0;
}

// The weights of labellings that agree with the true chunk up to before a position, when those of steps off have come
// back.
void RiskSummer::return_agreed(Index m, Index e, Index label) {
    double *to = small(agreed_weights_, 0, e);
    const double *sums = small(agreed_, m - 1, e), *on = weights_on_.data() + width_;
    const double cut = places_.cut(m), beyond = places_.beyond();
    for (Index r = 0; r < lanes(); r += 2) {
        to[r + 1] = weights_[(r + 1) * width_ + label];
        to[r] = weights_[r * width_ + label] + cut * to[r + 1];
    }
    Index after = 0;
    for (const Index j : places_.agreeing(m - 1)) {
        const double *weights = small(agreed_on_, 0, after++), by = factor(m, label, j);
        if (!places_.continues(label, j)) continue;
        double product = 0;
        for (Index r = 0; r < lanes(); r += 2) {
            const double mass = places_.stays(m) ? weights[r] : on[r * width_ + j] + beyond * on[(r + 1) * width_ + j];
            const double cost = places_.stays(m) ? weights[r + 1] : on[(r + 1) * width_ + j];
            to[r] += by * mass;
            to[r + 1] += by * cost;
            product += sums[r] * weights[r] + sums[r + 1] * weights[r + 1];
        }
        const Index table_of = chains_.own_links ? m - 1 : 0;
        if (places_.stays(m))
            by_step_on_[(table_of * static_cast<Index>(apart_.size()) + distance(label, j)) * width_ + label] +=
                product;
    }
    if (at(ahead_, m - 1)[label] == 0) std::fill_n(to, lanes(), 0.0);
}

// One table for both kinds of steps.
void RiskSummer::join_pairs() {
    const auto distances = static_cast<Index>(apart_.size());
    for (Index k = 0; k * width_ * width_ < static_cast<Index>(by_step_off_.size()); k++)
        for (const auto &[i, j] : steps_on_)
            by_step_off_[(k * width_ + i) * width_ + j] = by_step_on_[(k * distances + distance(i, j)) * width_ + i];
}

// ---- all chains --------------------------------------------------------------------------------------------------

void sum_risks(const ChainBatch &chains, const QuotientCounts &counts, const QuotientRules &rules,
               const ChainSums &risks, double memory_limit, Index threads, const MaxPlusKernels *kernels,
               const Poll &poll, const Inside &inside) {
    const RiskSummer model(chains, counts, rules, kernels);
    const Index square = chains.own_links ? 0 : model.width() * model.width();
    const Index groups = group_count(chains.size(), 8 * static_cast<double>(std::max<Index>(square, 1)));
    std::vector<std::vector<double>> pairs(groups);
    for (auto &part : pairs) part.assign(square, 0.0);
    double most = 1, columns = 0;
    for (Index i = 0; i < chains.size(); i++) {
        if (const double bytes = model.bytes(i); bytes <= memory_limit) most = std::max(most, bytes);
        columns = std::max(columns, rules.row(i)[0]);
    }
    threads = std::max<Index>(std::min(threads, static_cast<Index>(memory_limit / most)), 1);
    const double work = static_cast<double>(chains.labels * chains.labels) * columns;
    std::vector<RiskSummer> summers(threads, model);
    each_chain(chains, groups, work, threads, poll, inside, [&](Index worker, Index i, Index group) {
        risks.left_out[i] = model.bytes(i) > memory_limit || !summers[worker].find(i, risks, pairs[group]);
    });
    if (!chains.own_links) model.add_up(risks, pairs);
}

}  // namespace tallytree
