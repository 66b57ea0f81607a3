#include "sequences/band.h"

#include <algorithm>
#include <bit>
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

void Band::Layer::clear(std::size_t expected) {
    cells.clear();
    bits.clear();
    table.assign(std::bit_ceil(std::max<std::size_t>(64, 2 * expected)), -1);
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
double Band::budget_of(Index t, const Tallies &tallies) const {
    Box box = question_->box;
    for (Index n = 0; n < measure_.tallies(); n++) {
        const double more = most_per_word_[n] * static_cast<double>(sentences_.length - t);
        box.low[n] = std::max(box.low[n], tallies[n]);
        if (tallies[n] + more < box.high[n]) box.high[n] = tallies[n] + static_cast<std::int32_t>(more);
    }
    const double least = need_.least(question_->value, question_->pass.prices, box, question_->chain);
    return question_->pass.most - least + question_->tolerance;
}

// The same, looked up.
double Band::budget(Index t, const Tallies &tallies) {
    if (2 * budgets_known_ >= budgets_.size()) {  // begin anew: they are soon found again
        budgets_.assign(std::max<std::size_t>(256, 2 * budgets_.size()), {});
        budgets_known_ = 0;
    }
    const std::uint64_t key = packed(tallies, measure_.tallies());
    const std::size_t mask = budgets_.size() - 1;
    std::size_t at = mixed(0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(t + 1), key) & mask;
    for (; budgets_[at].position >= 0; at = (at + 1) & mask)
        if (budgets_[at].position == t && budgets_[at].tallies == key) return budgets_[at].budget;
    budgets_known_++;
    budgets_[at] = {key, t, budget_of(t, tallies)};
    return budgets_[at].budget;
}

// Which bits can still matter after each position, within the budget.
std::vector<Counter::Bits> Band::sweep(double budget) {
    const Index length = sentences_.length;
    std::vector<double> least(histories_.size(), kInfinity), after;
    std::vector<Counter::Bits> matter(length + 1, Counter::Bits(counter_.words() + 1, 0));
    least[histories_.start()] = 0;
    for (Index t = 0; t < length; t++) {
        after.assign(histories_.size(), kInfinity);
        for (std::int32_t h = 0; h < histories_.size(); h++) {
            if (least[h] > budget) continue;
            meter_.spend(4.0 * static_cast<double>(sentences_.chain->words));
            messages_.next(t, h, budget - least[h], [&](double regret, std::int32_t next, auto units) {
                after[next] = std::min(after[next], least[h] + regret);
                for (std::int32_t u : units) {
                    const Unit &unit = histories_.units()[u];
                    for (Index b = unit.bit; unit.cap != kUncapped && b < unit.bit + unit.cap; b++)
                        if (b / 64 < counter_.words()) matter[t][b / 64] |= std::uint64_t{1} << b % 64;
                }
            });
        }
        least.swap(after);
    }
    for (Index t = length - 1; t >= 0; t--)
        for (Index w = 0; w < counter_.words(); w++) matter[t][w] |= matter[t + 1][w];
    return matter;
}

// The moves of a history with a regret up to a limit, and possibly more, best first.
std::span<const Move> Band::moves_of(Index t, std::int32_t history, double limit) {
    Found &found = found_[history];
    if (found.limit < limit) {
        meter_.spend(4.0 * static_cast<double>(sentences_.chain->words));
        found.limit = limit;
        found.first = moves_.size();
        messages_.moves(t, history, limit, moves_);
        found.last = moves_.size();
    }
    return {moves_.data() + found.first, moves_.data() + found.last};
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
    const double most = std::min(cell.budget, enough_) - cell.regret;
    if (most < 0) return;
    const Index before = t ? sentences_.label_of(t - 1)[histories_.last(cell.history)] : 0;
    for (const Move &move : moves_of(t, cell.history, most)) {
        if (move.regret > most) break;
        meter_.spend(16);
        Cell made{0, 0, 0, 0, move.next, from, move.label, cell.tallies};
        made.credit = counter_.step(t, move, bits, made_.data(), made.tallies);
        made.regret = cell.regret + move.regret + std::max(0.0, made.credit - cell.credit - move.charge);
        made.budget = budget(t + 1, made.tallies);
        if (made.regret > std::min(made.budget, enough_)) continue;
        made.score = cell.score + sentences_.chain->step(t, before, move.label);
        if (t + 1 == sentences_.length) made.score += sentences_.tail[move.label];
        put(made, made_.data());
    }
}

// The regret that some of the new cells do not exceed.
double Band::regret_of(Index some) const {
    std::vector<double> regrets;
    for (const Cell &cell : next_.cells) regrets.push_back(cell.regret);
    std::nth_element(regrets.begin(), regrets.begin() + some, regrets.end());
    return regrets[some];
}

// Leave out cells that another one dominates, and all but the best of a beam.
void Band::thin(Index beam) {
    auto &cells = next_.cells;
    const Index words = counter_.words();
    order_.resize(cells.size());
    kept_.clear();
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
        if (cells[a].history != cells[b].history) return cells[a].history < cells[b].history;
        return cells[a].score != cells[b].score ? cells[a].score > cells[b].score : a < b;
    });
    std::size_t first = 0;  // of the same history, among those that are kept
    for (std::int32_t i : order_) {
        if (!kept_.empty() && cells[kept_.back()].history != cells[i].history) first = kept_.size();
        const std::size_t end = std::min(kept_.size(), first + kCompared);
        bool beaten = false;
        for (std::size_t k = first; k < end && !beaten; k++)
            beaten = counter_.dominates(next_.bits.data() + kept_[k] * words, cells[kept_[k]].tallies,
                                        next_.bits.data() + i * words, cells[i].tallies);
        if (!beaten) kept_.push_back(i);
    }
    meter_.spend(8.0 * static_cast<double>(cells.size()));
    if (beam && static_cast<Index>(kept_.size()) > beam) {
        std::stable_sort(kept_.begin(), kept_.end(),
                         [&](std::int32_t a, std::int32_t b) { return cells[a].regret < cells[b].regret; });
        kept_.resize(beam);
    }
    std::sort(kept_.begin(), kept_.end());
    std::size_t at = 0;
    for (std::int32_t i : kept_) {
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
        const Trace &trace = traces_[traces_at_[t - 1] + last];
        labelling[t - 1] = trace.label;
        last = trace.parent;
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
    budgets_.clear();
    budgets_known_ = 0;
    traces_.clear();
    traces_at_.clear();
    now_.clear(1);
    Cell start{0, 0, 0, 0, histories_.start(), -1, -1, {}};
    start.budget = budget(0, start.tallies);
    if (start.budget < 0) {
        result.complete = true;
        return result;
    }
    counter_.prepare(question.pass.prices, question.split,
                     counter_.forgets() ? sweep(start.budget) : std::vector<Counter::Bits>{});
    now_.cells.push_back(start);
    now_.bits.resize(counter_.words());
    counter_.start(now_.bits.data());
    const double per_cell = sizeof(Cell) + 8.0 * counter_.words() + 16, per_trace = sizeof(Trace);
    for (Index t = 0; t < sentences_.length; t++) {
        next_.clear(now_.cells.size());
        moves_.clear();
        found_.assign(histories_.size(), {});
        enough_ = kInfinity;
        Index seen = 4 * limits.beam;
        for (std::size_t i = 0; i < now_.cells.size(); i++) {
            expand(t, static_cast<std::int32_t>(i));
            if (limits.beam && static_cast<Index>(next_.cells.size()) > seen) {
                enough_ = regret_of(limits.beam);
                seen = 2 * static_cast<Index>(next_.cells.size());
            }
            const double held = per_cell * static_cast<double>(now_.cells.size() + next_.cells.size()) +
                                per_trace * static_cast<double>(result.cells);
            result.bytes = std::max(result.bytes, held);
            if (result.cells + static_cast<Index>(next_.cells.size()) > limits.cells || held > limits.bytes) {
                result.cells += static_cast<Index>(next_.cells.size());
                return result;
            }
        }
        thin(limits.beam);
        traces_at_.push_back(traces_.size());
        for (const Cell &cell : next_.cells) traces_.push_back({cell.parent, cell.label});
        result.cells += static_cast<Index>(next_.cells.size());
        std::swap(now_, next_);
    }
    if (const std::int32_t best = winner(question.value); best >= 0) result.labelling = traced(best);
    result.complete = limits.beam == 0;
    return result;
}

}  // namespace tallytree::sequences
