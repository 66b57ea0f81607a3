#include "sequences/band.h"

#include <algorithm>
#include <numeric>

namespace tallytree::sequences {
namespace {

constexpr Index kCompared = 24;  // how many cells of the same history one is compared with, for dominance
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint64_t mixed(std::uint64_t h, std::uint64_t x) {
    h = (h ^ x) * 0xff51afd7ed558ccdULL;
    return h ^ h >> 32;
}

std::uint64_t packed(const Tallies &tallies, Index count) {
    std::uint64_t h = 0;
    if (count <= 4) {  // exactly
        for (Index n = 0; n < count; n++) h = h << 16 | static_cast<std::uint16_t>(tallies[n]);
        return h;
    }
    for (Index n = 0; n < count; n++) h = h << 8 | static_cast<std::uint8_t>(tallies[n]);
    return h;
}

}  // namespace

void Band::Layer::clear() {
    cells.clear();
    bits.clear();
    table.assign(1024, -1);
}

Band::Band(const Sentences &sentences, const Histories &histories, const Messages &messages, Counter &counter,
           const Measure &measure, const Objective &objective, Meter &meter)
    : sentences_(sentences),
      histories_(histories),
      messages_(messages),
      counter_(counter),
      measure_(measure),
      objective_(objective),
      need_(measure, objective),
      meter_(meter),
      made_(counter.words() + 1) {
    for (std::int32_t w = 0; w < sentences.chain->words; w++)
        for (std::int32_t h : histories.ending(w))
            for (const auto &special : histories.specials(h)) {
                Prices here{};
                for (std::int32_t u : special.units) here[histories.units()[u].tally]++;
                for (Index n = 0; n < kMostTallies; n++) most_per_word_[n] = std::max(most_per_word_[n], here[n]);
            }
    for (std::int32_t w = 0; w < sentences.chain->words; w++) {
        Prices here{};
        for (std::int32_t u : histories.alone(w)) here[histories.units()[u].tally]++;
        for (Index n = 0; n < kMostTallies; n++) most_per_word_[n] = std::max(most_per_word_[n], here[n]);
    }
}

// The largest regret with which a cell can still end above the value.
double Band::budget(Index t, const Tallies &tallies) {
    const auto [at, fresh] = budgets_[t].try_emplace(packed(tallies, measure_.tallies()), 0.0);
    if (!fresh) return at->second;
    Box box = question_->box;
    for (Index n = 0; n < measure_.tallies(); n++) {
        const double more = most_per_word_[n] * static_cast<double>(sentences_.length - t);
        box.low[n] = std::max(box.low[n], tallies[n]);
        if (tallies[n] + more < box.high[n]) box.high[n] = tallies[n] + static_cast<std::int32_t>(more);
    }
    const double least = need_.least(question_->value, question_->pass.prices, box, question_->chain);
    return at->second = question_->pass.most - least;
}

// The moves within the budget, and which bits can still matter after each position.
void Band::sweep(double budget) {
    const Index length = sentences_.length;
    moves_.assign(length, std::vector<std::vector<Move>>(histories_.size()));
    std::vector<double> least(histories_.size(), kInfinity), after;
    std::vector<Counter::Bits> matter(length + 1, Counter::Bits(counter_.words() + 1, 0));
    least[histories_.start()] = 0;
    for (Index t = 0; t < length; t++) {
        after.assign(histories_.size(), kInfinity);
        for (std::int32_t h = 0; h < histories_.size(); h++) {
            if (least[h] > budget) continue;
            auto &found = moves_[t][h];
            messages_.moves(t, h, budget - least[h], found);
            meter_.spend(4.0 * static_cast<double>(sentences_.label_of[t].size()));
            for (const Move &move : found) {
                after[move.next] = std::min(after[move.next], least[h] + move.regret);
                for (std::int32_t u : move.units) {
                    const Unit &unit = histories_.units()[u];
                    for (Index b = unit.bit; unit.cap != kUncapped && b < unit.bit + unit.cap; b++)
                        if (b / 64 < counter_.words()) matter[t][b / 64] |= std::uint64_t{1} << b % 64;
                }
            }
        }
        least.swap(after);
    }
    for (Index t = length - 1; t >= 0; t--)
        for (Index w = 0; w < counter_.words(); w++) matter[t][w] |= matter[t + 1][w];
    counter_.prepare(question_->pass.prices, question_->split, std::move(matter));
}

std::uint64_t Band::hash(const Cell &cell, const std::uint64_t *bits) const {
    std::uint64_t h = mixed(0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(cell.history + 1),
                            packed(cell.tallies, measure_.tallies()));
    for (Index w = 0; w < counter_.words(); w++) h = mixed(h, bits[w]);
    return h ^ h >> 29;
}

bool Band::same(const Cell &a, std::int32_t b, const std::uint64_t *bits) const {
    const Cell &other = next_.cells[b];
    return a.history == other.history && a.tallies == other.tallies &&
           std::equal(bits, bits + counter_.words(), next_.bits.data() + b * counter_.words());
}

void Band::rehash(std::size_t size) {
    next_.table.assign(size, -1);
    for (std::size_t i = 0; i < next_.cells.size(); i++) {
        std::size_t at = hash(next_.cells[i], next_.bits.data() + i * counter_.words()) & (size - 1);
        while (next_.table[at] >= 0) at = (at + 1) & (size - 1);
        next_.table[at] = static_cast<std::int32_t>(i);
    }
}

void Band::put(const Cell &cell, const std::uint64_t *bits) {
    const std::size_t mask = next_.table.size() - 1;
    std::size_t at = hash(cell, bits) & mask;
    for (; next_.table[at] >= 0; at = (at + 1) & mask)
        if (same(cell, next_.table[at], bits)) {
            Cell &known = next_.cells[next_.table[at]];
            if (cell.score > known.score) known = cell;
            return;
        }
    next_.table[at] = static_cast<std::int32_t>(next_.cells.size());
    next_.cells.push_back(cell);
    next_.bits.insert(next_.bits.end(), bits, bits + counter_.words());
    if (2 * next_.cells.size() > next_.table.size()) rehash(2 * next_.table.size());
}

void Band::expand(Index t, std::int32_t from) {
    const Cell cell = now_.cells[from];
    const std::uint64_t *bits = now_.bits.data() + from * counter_.words();
    const double most = budget(t, cell.tallies) + question_->tolerance;
    const Index before = t ? sentences_.label_of[t - 1][histories_.last(cell.history)] : 0;
    for (const Move &move : moves_[t][cell.history]) {
        if (cell.regret + move.regret > most) break;
        meter_.spend(16);
        Cell made{0, 0, 0, move.next, from, move.label, cell.tallies};
        made.credit = counter_.step(t, move, bits, made_.data(), made.tallies);
        made.regret = cell.regret + move.regret + std::max(0.0, made.credit - cell.credit - move.charge);
        if (made.regret > budget(t + 1, made.tallies) + question_->tolerance) continue;
        made.score = cell.score + sentences_.chain->step(t, before, move.label);
        if (t + 1 == sentences_.length) made.score += sentences_.tail[move.label];
        put(made, made_.data());
    }
}

// Leave out cells that another one dominates, and all but the best of a beam.
void Band::thin(Index beam) {
    auto &cells = next_.cells;
    const Index words = counter_.words();
    std::vector<std::int32_t> order(cells.size()), kept;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return cells[a].history != cells[b].history ? cells[a].history < cells[b].history
                                                    : cells[a].score > cells[b].score;
    });
    std::size_t first = 0;  // of the same history, among those that are kept
    for (std::int32_t i : order) {
        if (!kept.empty() && cells[kept.back()].history != cells[i].history) first = kept.size();
        const std::size_t end = std::min(kept.size(), first + kCompared);
        bool beaten = false;
        for (std::size_t k = first; k < end && !beaten; k++)
            beaten = counter_.dominates(next_.bits.data() + kept[k] * words, cells[kept[k]].tallies,
                                        next_.bits.data() + i * words, cells[i].tallies);
        if (!beaten) kept.push_back(i);
    }
    meter_.spend(8.0 * static_cast<double>(cells.size()));
    if (beam && static_cast<Index>(kept.size()) > beam) {
        std::stable_sort(kept.begin(), kept.end(),
                         [&](std::int32_t a, std::int32_t b) { return cells[a].regret < cells[b].regret; });
        kept.resize(beam);
    }
    std::sort(kept.begin(), kept.end());
    std::size_t at = 0;
    for (std::int32_t i : kept) {
        cells[at] = cells[i];
        std::copy_n(next_.bits.data() + i * words, words, next_.bits.data() + at * words);
        at++;
    }
    cells.resize(at);
    next_.bits.resize(at * words);
}

std::vector<std::int64_t> Band::traced(std::int32_t last) const {
    std::vector<std::int64_t> labelling(sentences_.length);
    for (Index t = sentences_.length; t > 0; t--) {
        labelling[t - 1] = traces_[t][last].label;
        last = traces_[t][last].parent;
    }
    return labelling;
}

std::int32_t Band::winner(double value) const {
    std::int32_t best = -1;
    for (std::size_t i = 0; i < now_.cells.size(); i++) {
        const double x = objective_(now_.cells[i].score, measure_(now_.cells[i].tallies));
        if (x <= value) continue;
        value = x;
        best = static_cast<std::int32_t>(i);
    }
    return best;
}

BandResult Band::run(const Question &question, const BandLimits &limits) {
    question_ = &question;
    BandResult result;
    budgets_.assign(sentences_.length + 1, {});
    traces_.assign(sentences_.length + 1, {});
    now_.clear();
    const Cell start{0, 0, 0, histories_.start(), -1, -1, {}};
    const double most = budget(0, start.tallies);
    if (most < -question.tolerance) {
        result.complete = true;
        return result;
    }
    sweep(most + question.tolerance);
    now_.cells.push_back(start);
    now_.bits.resize(counter_.words());
    counter_.start(now_.bits.data());
    const double per_cell = sizeof(Cell) + 8.0 * counter_.words() + 16, per_trace = sizeof(Trace);
    for (Index t = 0; t < sentences_.length; t++) {
        next_.clear();
        for (std::size_t i = 0; i < now_.cells.size(); i++) {
            expand(t, static_cast<std::int32_t>(i));
            const double held = per_cell * static_cast<double>(now_.cells.size() + next_.cells.size()) +
                                per_trace * static_cast<double>(result.cells);
            result.bytes = std::max(result.bytes, held);
            if (result.cells + static_cast<Index>(next_.cells.size()) > limits.cells || held > limits.bytes)
                return result;
        }
        thin(limits.beam);
        for (const Cell &cell : next_.cells) traces_[t + 1].push_back({cell.parent, cell.label});
        result.cells += static_cast<Index>(next_.cells.size());
        std::swap(now_, next_);
    }
    if (const std::int32_t best = winner(question.value); best >= 0) result.labelling = traced(best);
    result.complete = limits.beam == 0;
    return result;
}

}  // namespace tallytree::sequences
