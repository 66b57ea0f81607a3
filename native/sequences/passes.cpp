#include "sequences/passes.h"

#include <algorithm>

namespace tallytree::sequences {

Messages::Messages(const Sentences &sentences, const Histories &histories, const ChainKernels &kernels)
    : sentences_(sentences), chain_(*sentences.chain), histories_(histories), kernels_(kernels), begin_{0} {
    const Index length = sentences.length;
    beta_.assign((length + 1) * histories.size(), kNegativeInfinity);
    cost_.assign(length * histories.units().size(), 0.0);
    Index widest = 1;
    for (Index t = 0; t < length; t++) {
        begin_.push_back(begin_.back() + chain_.labels[t]);
        widest = std::max(widest, chain_.labels[t]);
        operations_ += static_cast<double>(chain_.labels[t]) * (t ? chain_.labels[t - 1] : 1);
    }
    value_.resize(begin_.back());
    price_.resize(histories.units().size());
    row_.resize(widest);
    operations_ += 4.0 * static_cast<double>(length) * histories.size();
}

double Messages::charged(Index t, std::span<const std::int32_t> units) const {
    double sum = 0;
    for (std::int32_t u : units) sum += cost(t)[u];
    return sum;
}

double Messages::after(Index t, std::int32_t history, Index label) const {
    return t + 1 == sentences_.length ? sentences_.tail[label] : beta_[(t + 1) * histories_.size() + history];
}

Index Messages::before(Index t, std::int32_t history) const {
    return t == 0 ? 0 : sentences_.label_of[t - 1][histories_.last(history)];
}

// What a label and all after it are worth: with something special before it, and without. The pair is added last, as
// the kernel does, so that regrets are differences of equal expressions.
double Messages::special(Index t, Index before, Index label, const Histories::Special &special) const {
    const double rest = after(t, special.next, label) - charged(t, special.units);
    return chain_.pair_score(t, before, label) + (chain_.unary[t][label] + rest);
}

// The best continuation of a history, where `row_best` is the best of its last word alone.
double Messages::best_of(Index t, std::int32_t history, Index before, double row_best) const {
    const auto &label_of = sentences_.label_of[t];
    const auto specials = histories_.specials(history);
    bool hidden = false;
    double best = kNegativeInfinity;
    for (const auto &one : specials) {
        const Index label = label_of[one.word];
        if (label < 0) continue;
        hidden |= plain(t, before, label) >= row_best;
        best = std::max(best, special(t, before, label, one));
    }
    if (!hidden) return std::max(best, row_best);
    std::size_t at = 0;  // specials are in the order of words, not of labels: compare words
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(label_of.size()); w++) {
        while (at < specials.size() && specials[at].word < w) at++;
        if (label_of[w] < 0 || (at < specials.size() && specials[at].word == w)) continue;
        best = std::max(best, plain(t, before, label_of[w]));
    }
    return best;
}

void Messages::values(Index t) {
    for (Index b = 0; b < chain_.labels[t]; b++) {
        const std::int32_t w = chain_.word[t][b];
        const double rest = after(t, w, b) - charged(t, histories_.alone(w));
        value_[begin_[t] + b] = b == chain_.end[t] ? kNegativeInfinity : chain_.unary[t][b] + rest;
    }
}

double Messages::run(const Prices &prices, const Split &split) {
    const auto &units = histories_.units();
    const Index size = histories_.size();
    bool forbids = false;  // infinity times 0 is no number
    for (std::size_t u = 0; u < units.size(); u++) {
        price_[u] = prices[units[u].tally];
        forbids |= price_[u] == -kNegativeInfinity;
    }
    for (Index t = sentences_.length - 1; t >= 0; t--) {
        double *costs = cost_.data() + t * split.units;
        const double *share = split.row(t);
        if (forbids)
            for (Index u = 0; u < split.units; u++) costs[u] = share[u] > 0 ? price_[u] * share[u] : 0.0;
        else
            for (Index u = 0; u < split.units; u++) costs[u] = price_[u] * share[u];
        values(t);
        const double *known = value_.data() + begin_[t];
        const Index labels = chain_.labels[t];
        if (t == 0) {
            beta_[histories_.start()] = *std::max_element(known, known + labels);
            break;
        }
        kernels_.along({labels, chain_.labels[t - 1], labels, known, chain_.pair[t].data(), row_.data()});
        for (Index a = 0; a < chain_.labels[t - 1]; a++) {
            if (a == chain_.end[t - 1]) continue;
            for (std::int32_t h : histories_.ending(chain_.word[t - 1][a]))
                beta_[t * size + h] = histories_.specials(h).empty() ? row_[a] : best_of(t, h, a, row_[a]);
        }
    }
    return beta_[histories_.start()];
}

std::vector<std::int64_t> Messages::best() const {
    std::vector<std::int64_t> labelling;
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
    const double most = beta_[t * histories_.size() + history];
    const auto first = static_cast<std::ptrdiff_t>(found.size());
    each(t, history, [&](double x, Index label, std::int32_t word, const Histories::Special *special) {
        const double regret = std::max(0.0, most - x);
        if (x == kNegativeInfinity || !(regret <= limit)) return;
        const std::span<const std::int32_t> units = special ? std::span(special->units) : histories_.alone(word);
        found.push_back(
            {regret, charged(t, units), static_cast<std::int32_t>(label), special ? special->next : word, units});
    });
    std::stable_sort(found.begin() + first, found.end(),
                     [](const Move &a, const Move &b) { return a.regret < b.regret; });
}

}  // namespace tallytree::sequences
