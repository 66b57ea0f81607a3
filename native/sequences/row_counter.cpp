#include <algorithm>
#include <bit>

#include "sequences/alignment.h"
#include "sequences/counters.h"

namespace tallytree::sequences {

RowCounter::RowCounter(const Sentences &sentences, const Histories &histories, const References &references)
    : sentences_(sentences), histories_(histories), references_(references), begin_{0} {
    for (const auto &reference : references)
        begin_.push_back(begin_.back() + (static_cast<Index>(reference.size()) + 63) / 64);
    places_.assign(sentences.chain->words * words(), 0);
    for (std::size_t i = 0; i < references.size(); i++)
        for (std::size_t j = 0; j < references[i].size(); j++)
            if (references[i][j] >= 0)
                places_[references[i][j] * words() + begin_[i] + j / 64] |= std::uint64_t{1} << j % 64;
}

void RowCounter::read(std::int32_t word, const std::uint64_t *from, std::uint64_t *to) const {
    const std::uint64_t *here = places(word);
    for (std::size_t i = 0; i < references_.size(); i++) {
        std::uint64_t carry = 0;
        for (Index w = begin_[i]; w < begin_[i + 1]; w++) {
            const std::uint64_t row = from[w], met = row & here[w], half = row + met, sum = half + carry;
            carry = (half < row) | (sum < half);
            to[w] = sum | (row & ~here[w]);
        }
    }
}

// The length of the longest common subsequence with the first `size` words of a reference.
std::int32_t RowCounter::grown(const std::uint64_t *bits, std::size_t reference, Index size) const {
    std::int32_t grown = 0;
    for (Index w = 0; w * 64 < size; w++) {
        const Index rest = size - w * 64;
        const std::uint64_t mask = rest >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rest) - 1;
        grown += std::popcount(~bits[begin_[reference] + w] & mask);
    }
    return grown;
}

void RowCounter::prepare(const Prices &prices, const Split &split, std::vector<Bits>) {
    prices_ = prices;
    std::vector<Index> place;  // of each unit in its reference
    for (const auto &reference : references_)
        for (std::size_t j = 0; j < reference.size(); j++) place.push_back(static_cast<Index>(j));
    const auto &units = histories_.units();
    std::vector<Index> whole;
    for (const auto &reference : references_) whole.push_back(static_cast<Index>(reference.size()));
    frontier_.assign(sentences_.length + 1, whole);
    for (Index t = sentences_.length - 1; t >= 0; t--) {
        frontier_[t] = frontier_[t + 1];
        for (std::size_t u = 0; u < units.size(); u++)
            if (split.share[t][u] > 0) frontier_[t][units[u].tally] = std::min(frontier_[t][units[u].tally], place[u]);
    }
}

double RowCounter::step(Index t, const Move &move, const std::uint64_t *from, std::uint64_t *to, Tallies &m) const {
    read(sentences_.chain->word[t][move.label], from, to);
    double credit = 0;
    for (std::size_t i = 0; i < references_.size(); i++) {
        m[i] = grown(to, i, static_cast<Index>(references_[i].size()));
        credit += prices_[i] * grown(to, i, frontier_[t + 1][i]);
    }
    return credit;
}

// A row that is nowhere above another stays so, whatever words follow.
bool RowCounter::dominates(const std::uint64_t *a, const Tallies &ma, const std::uint64_t *b, const Tallies &mb) const {
    for (std::size_t i = 0; i < references_.size(); i++) {
        if (ma[i] > mb[i]) return false;
        std::int32_t above = 0;  // how far the second row is above the first
        for (Index w = begin_[i]; w < begin_[i + 1]; w++)
            for (std::uint64_t other = a[w] ^ b[w]; other; other &= other - 1) {
                above += a[w] & other & -other ? 1 : -1;
                if (above < 0) return false;
            }
    }
    return true;
}

Tallies RowCounter::count(const std::vector<std::int64_t> &labelling) const {
    Bits row(words(), ~std::uint64_t{0});
    for (Index t = 0; t < sentences_.length; t++) read(sentences_.chain->word[t][labelling[t]], row.data(), row.data());
    Tallies m{};
    for (std::size_t i = 0; i < references_.size(); i++)
        m[i] = grown(row.data(), i, static_cast<Index>(references_[i].size()));
    return m;
}

Split RowCounter::split(const std::vector<std::int64_t> &likely) const {
    const std::vector<std::int32_t> sentence = words_of(sentences_, likely);
    Split made{
        std::vector<std::vector<double>>(sentences_.length, std::vector<double>(histories_.units().size(), 0.0))};
    std::size_t first = 0;  // the unit of the first word of the reference
    for (const auto &reference : references_) {
        const auto map = aligned(sentence, reference);
        for (Index t = 0; t < sentences_.length; t++)
            if (map[t] >= 0) made.share[t][first + map[t]] = 1;
        first += reference.size();
    }
    return made;
}

}  // namespace tallytree::sequences
