#include "sequences/passes.h"

#include <algorithm>

namespace tallytree::sequences {

Messages::Messages(const Sentences &sentences, const Histories &histories)
    : sentences_(sentences), chain_(*sentences.chain), histories_(histories) {
    const Index length = sentences.length;
    beta_.assign(length + 1, std::vector<double>(histories.size(), kNegativeInfinity));
    cost_.assign(length, std::vector<double>(histories.units().size()));
    for (Index t = 0; t < length; t++) {
        alone_.emplace_back(chain_.labels[t]);
        operations_ += static_cast<double>(chain_.labels[t]) * (t ? chain_.labels[t - 1] : 1);
    }
    operations_ += 4.0 * static_cast<double>(length) * histories.size();
}

double Messages::charged(Index t, std::span<const std::int32_t> units) const {
    double sum = 0;
    for (std::int32_t u : units) sum += cost_[t][u];
    return sum;
}

double Messages::after(Index t, std::int32_t history, Index label) const {
    return t + 1 == sentences_.length ? sentences_.tail[label] : beta_[t + 1][history];
}

Index Messages::before(Index t, std::int32_t history) const {
    return t == 0 ? 0 : sentences_.label_of[t - 1][histories_.last(history)];
}

// The best continuation of a history, where `row_best` is the best of its last word alone, found at `row_label`.
double Messages::best_of(Index t, std::int32_t history, Index before, double row_best, Index row_label) const {
    const auto &label_of = sentences_.label_of[t];
    const auto specials = histories_.specials(history);
    bool hidden = false;
    double best = kNegativeInfinity;
    for (const auto &special : specials) {
        const Index label = label_of[special.word];
        if (label < 0) continue;
        hidden |= label == row_label;
        best =
            std::max(best, chain_.step(t, before, label) - charged(t, special.units) + after(t, special.next, label));
    }
    if (!hidden) return std::max(best, row_best);
    std::size_t at = 0;  // specials are in the order of words, not of labels: compare words
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(label_of.size()); w++) {
        while (at < specials.size() && specials[at].word < w) at++;
        if (label_of[w] < 0 || (at < specials.size() && specials[at].word == w)) continue;
        best = std::max(best, chain_.step(t, before, label_of[w]) + alone_[t][label_of[w]]);
    }
    return best;
}

double Messages::run(const Prices &prices, const Split &split) {
    const auto &units = histories_.units();
    for (Index t = sentences_.length - 1; t >= 0; t--) {
        for (std::size_t u = 0; u < units.size(); u++) {
            const double price = prices[units[u].tally], share = split.share[t][u];
            cost_[t][u] = share > 0 ? price * share : 0.0;
        }
        auto &alone = alone_[t];
        for (Index b = 0; b < chain_.labels[t]; b++) {
            const std::int32_t w = chain_.word[t][b];
            alone[b] = b == chain_.end[t] ? kNegativeInfinity : after(t, w, b) - charged(t, histories_.alone(w));
        }
        const Index rows = t ? chain_.labels[t - 1] : 1;
        for (Index a = 0; a < rows; a++) {
            if (t && a == chain_.end[t - 1]) continue;
            double best = kNegativeInfinity;
            Index label = -1;
            for (Index b = 0; b < chain_.labels[t]; b++)
                if (const double x = chain_.step(t, a, b) + alone[b]; x > best) {
                    best = x;
                    label = b;
                }
            if (t == 0) {
                beta_[0][histories_.start()] = best;
                continue;
            }
            for (std::int32_t h : histories_.ending(chain_.word[t - 1][a])) beta_[t][h] = best_of(t, h, a, best, label);
        }
    }
    return beta_[0][histories_.start()];
}

// All labels at a position after a history, in order of words: those with something special as such.
template <class Visit>
void Messages::each(Index t, std::int32_t history, Visit visit) const {
    const auto &label_of = sentences_.label_of[t];
    const auto specials = histories_.specials(history);
    const Index from = before(t, history);
    std::size_t at = 0;
    for (std::int32_t w = 0; w < static_cast<std::int32_t>(label_of.size()); w++) {
        const Index label = label_of[w];
        if (label < 0) continue;
        while (at < specials.size() && specials[at].word < w) at++;
        if (at < specials.size() && specials[at].word == w) {
            const auto &special = specials[at];
            const double charge = charged(t, special.units);
            const double x = chain_.step(t, from, label) - charge + after(t, special.next, label);
            visit(x, Move{0, charge, static_cast<std::int32_t>(label), special.next, special.units});
        } else {
            const auto alone = histories_.alone(w);
            const double x = chain_.step(t, from, label) + alone_[t][label];
            visit(x, Move{0, charged(t, alone), static_cast<std::int32_t>(label), w, alone});
        }
    }
}

std::vector<std::int64_t> Messages::best() const {
    std::vector<std::int64_t> labelling;
    std::int32_t history = histories_.start();
    for (Index t = 0; t < sentences_.length; t++) {
        double most = kNegativeInfinity;
        Move chosen{};
        each(t, history, [&](double x, const Move &move) {
            if (x <= most) return;
            most = x;
            chosen = move;
        });
        labelling.push_back(chosen.label);
        history = chosen.next;
    }
    return labelling;
}

void Messages::moves(Index t, std::int32_t history, double limit, std::vector<Move> &found) const {
    found.clear();
    const double most = beta_[t][history];
    each(t, history, [&](double x, Move move) {
        move.regret = std::max(0.0, most - x);
        if (x != kNegativeInfinity && move.regret <= limit) found.push_back(move);
    });
    std::stable_sort(found.begin(), found.end(), [](const Move &a, const Move &b) { return a.regret < b.regret; });
}

}  // namespace tallytree::sequences
