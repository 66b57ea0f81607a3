#include "sequences/passes.h"

#include <algorithm>

namespace tallytree::sequences {

Messages::Messages(const Sentences &sentences, const Histories &histories, const ChainKernels &kernels)
    : sentences_(sentences), chain_(*sentences.chain), histories_(histories), kernels_(kernels), begin_{0} {
    const Index length = sentences.length;
    const auto &units = histories.units();
    for (std::int32_t h = 0; h < histories.size(); h++) continues_ |= !histories.specials(h).empty();
    if (continues_) {
        beta_.assign((length + 1) * histories.size(), kNegativeInfinity);
        cost_.assign(length * units.size(), 0.0);
    }
    for (std::size_t u = 0; u < units.size(); u++)
        if (units[u].words.size() == 1 && units[u].words[0] >= 0)
            single_.emplace_back(static_cast<std::int32_t>(u), units[u].words[0]);
    price_.resize(units.size());
    for (Index t = 0; t < length; t++) {
        begin_.push_back(begin_.back() + chain_.labels[t]);
        operations_ += static_cast<double>(chain_.labels[t]) * (t ? chain_.labels[t - 1] : 1);
    }
    operations_ += 4.0 * static_cast<double>(length) * histories.size();
    value_.resize(begin_.back());
    charge_.resize(begin_.back());
    rest_.resize(begin_.back());
    if (length) std::copy(sentences.tail.begin(), sentences.tail.end(), rest_.begin() + begin_[length - 1]);
}

double Messages::charged(Index t, std::span<const std::int32_t> units) const {
    const double *cost = cost_.data() + t * static_cast<Index>(price_.size());
    double sum = 0;
    for (std::int32_t u : units) sum += cost[u];
    return sum;
}

Index Messages::before(Index t, std::int32_t history) const {
    return t == 0 ? 0 : sentences_.label_of(t - 1)[histories_.last(history)];
}

// The best of all from a position on, after a history.
double Messages::most_after(Index t, std::int32_t history) const {
    if (t == 0) return most_;
    const bool plain = t == sentences_.length || histories_.specials(history).empty();
    return plain ? rest_[begin_[t - 1] + before(t, history)] : beta_[t * histories_.size() + history];
}

// What a label with something special before it and all after it are worth. The pair is added last, as the kernel does,
// so that regrets are differences of equal expressions.
double Messages::special(Index t, Index before, Index label, const Histories::Special &special) const {
    const double rest = most_after(t + 1, special.next) - charged(t, special.units);
    return chain_.pair_score(t, before, label) + (chain_.unary[t][label] + rest);
}

// The best continuation of a history, where `row_best` is the best of its last word alone.
double Messages::best_of(Index t, std::int32_t history, Index before, double row_best) const {
    const std::int32_t *label_of = sentences_.label_of(t);
    const double *pair = pairs(t, before), *value = value_.data() + begin_[t];
    const auto specials = histories_.specials(history);
    bool hidden = false;
    double best = kNegativeInfinity;
    for (const auto &one : specials) {
        const Index label = label_of[one.word];
        if (label < 0) continue;
        hidden |= pair[label] + value[label] >= row_best;
        best = std::max(best, special(t, before, label, one));
    }
    if (!hidden) return std::max(best, row_best);
    std::size_t at = 0;  // specials are in the order of words, not of labels: compare words
    for (std::int32_t w = 0; w < chain_.words; w++) {
        while (at < specials.size() && specials[at].word < w) at++;
        if (label_of[w] < 0 || (at < specials.size() && specials[at].word == w)) continue;
        best = std::max(best, pair[label_of[w]] + value[label_of[w]]);
    }
    return best;
}

// The costs of units at a position. An infinite price times no share is nothing.
void Messages::charge(Index t, const double *share) {
    const auto units = static_cast<Index>(price_.size());
    double *cost = cost_.data() + t * units, *charge = charge_.data() + begin_[t];
    for (Index u = 0; continues_ && u < units; u++) cost[u] = share[u] > 0 ? price_[u] * share[u] : 0.0;
    std::fill_n(charge, chain_.labels[t], 0.0);
    const std::int32_t *label_of = sentences_.label_of(t);
    for (const auto &[u, word] : single_)
        if (share[u] > 0 && label_of[word] >= 0) charge[label_of[word]] += price_[u] * share[u];
}

void Messages::values(Index t) {
    const Index labels = chain_.labels[t];
    const double *unary = chain_.unary[t].data(), *charge = charge_.data() + begin_[t],
                 *rest = rest_.data() + begin_[t];
    double *value = value_.data() + begin_[t];
    if (!continues_ || t + 1 == sentences_.length)
        for (Index b = 0; b < labels; b++) value[b] = unary[b] + (rest[b] - charge[b]);
    else
        for (Index b = 0; b < labels; b++) {
            const std::int32_t w = chain_.word[t][b];
            const bool plain = histories_.specials(w).empty();
            value[b] = unary[b] + ((plain ? rest[b] : beta_[(t + 1) * histories_.size() + w]) - charge[b]);
        }
    if (chain_.end[t] >= 0) value[chain_.end[t]] = kNegativeInfinity;
}

double Messages::run(const Prices &prices, const Split &split) {
    const auto &units = histories_.units();
    for (std::size_t u = 0; u < units.size(); u++) price_[u] = prices[units[u].tally];
    for (Index t = sentences_.length - 1; t >= 0; t--) {
        charge(t, split.row(t));
        values(t);
        const double *known = value_.data() + begin_[t];
        const Index labels = chain_.labels[t];
        if (t == 0) return most_ = *std::max_element(known, known + labels);
        double *rest = rest_.data() + begin_[t - 1];
        kernels_.along({labels, chain_.labels[t - 1], labels, known, chain_.pair[t].data(), rest});
        for (Index a = 0; continues_ && a < chain_.labels[t - 1]; a++) {
            if (a == chain_.end[t - 1]) continue;
            for (std::int32_t h : histories_.ending(chain_.word[t - 1][a]))
                beta_[t * histories_.size() + h] = best_of(t, h, a, rest[a]);
        }
    }
    return most_;
}

std::vector<std::int64_t> Messages::best() const {
    std::vector<std::int64_t> labelling;
    labelling.reserve(sentences_.length);
    std::int32_t history = histories_.start();
    for (Index t = 0; t < sentences_.length; t++) {
        double most = kNegativeInfinity;
        Index chosen = 0;
        std::int32_t next = 0;
        each(t, history, [&](double x, Index label, std::int32_t word, const Histories::Special *special) {
            if (x <= most) return;
            most = x;
            chosen = label;
            next = special ? special->next : word;
        });
        labelling.push_back(chosen);
        history = next;
    }
    return labelling;
}

void Messages::moves(Index t, std::int32_t history, double limit, std::vector<Move> &found) const {
    const double most = most_after(t, history);
    const auto first = static_cast<std::ptrdiff_t>(found.size());
    each(t, history, [&](double x, Index label, std::int32_t word, const Histories::Special *special) {
        const double regret = std::max(0.0, most - x);
        if (x == kNegativeInfinity || !(regret <= limit)) return;
        const auto name = static_cast<std::int32_t>(label);
        if (special) found.push_back({regret, charged(t, special->units), name, special->next, special->units});
        else found.push_back({regret, charge_[begin_[t] + label], name, word, histories_.alone(word)});
    });
    std::stable_sort(found.begin() + first, found.end(),
                     [](const Move &a, const Move &b) { return a.regret < b.regret; });
}

}  // namespace tallytree::sequences
