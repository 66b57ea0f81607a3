#include "bulk/sentence_rows.h"

#include <algorithm>
#include <cstring>

namespace tallytree {

using bounds::ChainRows;
using bounds::kMostStatistics;

namespace {

constexpr Index kMostKinds = 2048;

// Whether rows of some width begin with those of a table, bit by bit.
bool same_rows(const double *rows, Index width, const double *table, Index states) {
    for (Index s = 0; s < states; s++)
        if (std::memcmp(rows + s * width, table + s * states, states * sizeof(double)) != 0) return false;
    return true;
}

}  // namespace

bool SentenceRows::suits(const LossItem &sentence) {
    const auto &[skeleton, scores, truth, losses] = sentence;
    const auto &tables = truth.tables();
    const auto size = static_cast<Index>(skeleton.cardinalities.size());
    const auto &scopes = skeleton.score_scopes.blocks;
    return size > 1 && truth.fold.empty() && tables.statistics > 0 && tables.statistics <= kMostStatistics &&
           tables.states > 1 && tables.states <= 512 && tables.kinds <= kMostKinds && scores.size() == 2 &&
           is_chain_block(scopes[0], size, 1) && is_chain_block(scopes[1], size, 2) &&
           !(tables.links && scores[1].count > 1);
}

double SentenceRows::bytes(const LossItem &sentence) {
    const auto length = static_cast<double>(sentence.skeleton.cardinalities.size());
    const auto states = static_cast<double>(round_up(sentence.truth.tables().states));
    const auto tables = static_cast<double>(sentence.scores[1].count > 1 || sentence.truth.has_states() ? length : 1);
    const auto kinds = static_cast<double>(sentence.truth.has_states() ? sentence.truth.tables().kinds : 0);
    return 8 * (12 * length * states + 4 * tables * states * states) + 4 * kinds * kinds;
}

void SentenceRows::forget() {
    tables_ = nullptr;
    made_.clear();
    held_ = 0;
}

bounds::TiedMessages &SentenceRows::load(const LossItem &sentence) {
    largest_ = std::max(largest_, bytes(sentence));
    ChainRows &rows = messages_.rows();
    const auto size = static_cast<Index>(sentence.skeleton.cardinalities.size());
    const TruthTables &tables = sentence.truth.tables();
    rows.begin(size, tables.states, tables.statistics);
    if (tables.links) {
        load_neighbours(sentence);
    } else {
        load_links(sentence.scores[1]);
        load_kinds(sentence);
    }
    for (Index m = 0; m < size; m++) {
        double *row = m == 0 ? rows.first.data() : rows.late + (m - 1) * rows.width;
        sentence.truth.put_scores(sentence.scores[0], m, row);
        rows.variable[m] = static_cast<std::int32_t>(m);
    }
    rows.measure_scores(messages_.kernels());
    for (Index m = 0; m < size; m++) add_range(m, &tables.given_range[sentence.truth.kinds()[m]], tables.kinds, false);
    messages_.begin();
    return messages_;
}

double SentenceRows::bytes(const bounds::PlainChain &chain) {
    const auto length = static_cast<double>(chain.length), states = static_cast<double>(round_up(chain.states));
    const auto tables = static_cast<double>(chain.pairs.count);
    return 8 * (12 * length * states + 4 * tables * states * states);
}

bounds::TiedMessages *SentenceRows::load(const bounds::PlainChain &chain) {
    largest_ = std::max(largest_, bytes(chain));
    ChainRows &rows = messages_.rows();
    rows.begin(chain.length, chain.states, chain.statistics);
    if (!rows.load_counts(chain, messages_.kernels(), static_cast<double>(kMostKinds))) return nullptr;
    load_links(chain.pairs);
    for (Index m = 0; m < chain.length; m++) {
        double *row = m == 0 ? rows.first.data() : rows.late + (m - 1) * rows.width;
        std::copy_n(chain.unary.row(m), chain.states, row);
        rows.variable[m] = static_cast<std::int32_t>(m);
    }
    rows.measure_scores(messages_.kernels());
    messages_.begin();
    return &messages_;
}

const SentenceRows::Links &SentenceRows::links_of(const double *table, Index states, Index slot) {
    while (static_cast<Index>(links_.size()) <= slot) links_.emplace_back();
    Links &made = links_[slot];
    const Index width = round_up(states);
    const bool alike = made.states == states;
    if (alike && made.from == table) return made;
    made.from = table;
    if (alike && same_rows(made.forward.data(), width, table, states)) return made;  // as a rule: each model has a copy
    made.states = states;
    made.largest = messages_.kernels().sizes(table, 1, states * states, states * states);
    made.forward.assign(states * width, kNegativeInfinity);
    made.backward.assign(states * width, kNegativeInfinity);
    for (Index s = 0; s < states; s++)
        for (Index next = 0; next < states; next++)
            made.forward[s * width + next] = made.backward[next * width + s] = table[s * states + next];
    return made;
}

void SentenceRows::load_links(const TableBlock<double> &links) {
    ChainRows &rows = messages_.rows();
    rows.back_links.resize(rows.length);
    for (Index m = 0; m + 1 < rows.length; m++) {
        const Index slot = links.count > 1 ? m : 0;
        const Links &found = slot == m ? links_of(links.row(m), rows.states, slot) : links_[slot];
        rows.links[m] = found.forward.data();
        rows.back_links[m] = found.backward.data();
        rows.shares[m / bounds::kStretch].largest += found.largest;
    }
    rows.links.back() = end_table();
    rows.back_links.back() = back_end_.data();
}

// Behind the last position there is one state.
const double *SentenceRows::end_table() {
    const ChainRows &rows = messages_.rows();
    if (static_cast<Index>(end_.size()) == rows.states * rows.width) return end_.data();  // only with the same states
    end_.assign(rows.states * rows.width, kNegativeInfinity);
    back_end_.assign(rows.width, kNegativeInfinity);
    for (Index s = 0; s < rows.states; s++) end_[s * rows.width] = back_end_[s] = 0;
    return end_.data();
}

void SentenceRows::load_neighbours(const LossItem &sentence) {
    ChainRows &rows = messages_.rows();
    const TruthTables &tables = sentence.truth.tables();
    const auto &links = sentence.scores[1];
    const std::span labels(links.data, links.count * links.size);  // as a rule, each model has a copy
    if (tables_ != &tables || !std::ranges::equal(of_labels_, labels)) {
        forget();
        tables_ = &tables;
        of_labels_.assign(labels.begin(), labels.end());
        neighbours_.assign(tables.kinds * tables.kinds, -1);
    }
    rows.back_links.resize(rows.length);
    const Index first = sentence.truth.kinds()[0];
    rows.kind[0] = 0;
    rows.add_kind(tables.kind_counts.data() + first * rows.statistics * rows.width,
                  tables.kind_keys.data() + first * rows.width);
    for (Index m = 1; m < rows.length; m++) {
        Neighbours &found = made_[neighbours(sentence, m)];
        if (found.local < 0) {
            found.local = static_cast<std::int32_t>(rows.link_kinds.size());
            rows.link_kinds.push_back({found.scores.data(), found.forward.data(), found.backward.data(),
                                       &tables.link_counts[sentence.truth.table_at(m)]});
            rows.add_kind(found.counts.data(), found.keys.data());
        }
        rows.link_kind.push_back(found.local);
        rows.kind[m] = found.local + 1;
        rows.links[m - 1] = found.forward.data();
        rows.back_links[m - 1] = found.backward.data();
        rows.shares[(m - 1) / bounds::kStretch].largest += found.largest;
        add_range(m - 1, &tables.moved_range[sentence.truth.table_at(m)], tables.links, true);
    }
    for (Index m = 1; m < rows.length; m++) made_[neighbours(sentence, m)].local = -1;
    rows.links.back() = end_table();
    rows.back_links.back() = back_end_.data();
}

// What a position counts at least and at most: for each statistic one of these ranges, `apart` from each other. What
// neighbours count comes in two parts, one with each of them, which are no larger than that and the difference of both.
void SentenceRows::add_range(Index m, const TruthTables::Range *ranges, Index apart, bool parts) {
    ChainRows &rows = messages_.rows();
    const Index first = m / bounds::kStretch, last = (m + (parts ? 1 : 0)) / bounds::kStretch;
    for (Index p = 0; p < rows.statistics; p++) {
        const auto [low, high] = ranges[p * apart];
        rows.range.low[p] += low;
        rows.range.high[p] += high;
        const auto most = std::max(std::abs(low), std::abs(high)) + (parts ? high - low : 0);
        for (Index i = first; i <= last; i++) rows.shares[i].reach[p] += static_cast<double>(most);
    }
}

// The scores of two neighbours at a position and the one before it.
std::int32_t SentenceRows::neighbours(const LossItem &sentence, Index m) {
    const auto kinds = sentence.truth.kinds();
    std::int32_t &number = neighbours_[kinds[m - 1] * tables_->kinds + kinds[m]];
    if (number >= 0) return number;
    number = static_cast<std::int32_t>(made_.size());
    const Neighbours &made = made_.emplace_back(make(sentence, m));
    held_ += static_cast<double>(sizeof(Neighbours) + 8 * (2 * made.forward.size() + made.scores.size()) +
                                 4 * made.counts.size() + 8 * made.keys.size());
    return number;
}

SentenceRows::Neighbours SentenceRows::make(const LossItem &sentence, Index m) const {
    Neighbours made;
    const Index states = tables_->states, width = round_up(states), row = tables_->statistics * width;
    made.forward.assign(states * width, kNegativeInfinity);
    sentence.truth.put_links(sentence.scores[1], sentence.scores[0].size, m, made.forward.data(), width);
    made.backward = made.forward;
    for (Index s = 0; s < states; s++)
        for (Index next = 0; next < states; next++) made.backward[next * width + s] = made.forward[s * width + next];
    made.largest = messages_.kernels().sizes(made.forward.data(), 1, states * width, states * width);
    made.scores = tables_->link_counts[sentence.truth.table_at(m)].pick(made.forward.data());
    const auto *own = tables_->kind_counts.data() + sentence.truth.kinds()[m] * row;
    const auto *usual = tables_->link_usual.data() + sentence.truth.table_at(m) * row;
    made.counts.resize(row);
    for (Index i = 0; i < row; i++) made.counts[i] = own[i] + usual[i];
    made.keys.resize(width);
    ChainRows::pack(made.counts.data(), tables_->statistics, width, made.keys.data());
    return made;
}

// Of single positions, where states are labels.
void SentenceRows::load_kinds(const LossItem &sentence) {
    ChainRows &rows = messages_.rows();
    const TruthTables &tables = sentence.truth.tables();
    const auto kinds = sentence.truth.kinds();
    local_.assign(tables.kinds, -1);
    for (Index m = 0; m < rows.length; m++) {
        std::int32_t &number = local_[kinds[m]];
        if (number < 0) {
            number = static_cast<std::int32_t>(rows.kinds());
            rows.add_kind(tables.kind_counts.data() + kinds[m] * rows.statistics * rows.width,
                          tables.kind_keys.data() + kinds[m] * rows.width);
        }
        rows.kind[m] = number;
    }
}

}  // namespace tallytree
