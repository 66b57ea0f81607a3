#include <algorithm>
#include <bit>

#include "sequences/alignment.h"
#include "sequences/counters.h"

namespace tallytree::sequences {
namespace {

constexpr std::int32_t kNoWord = -2;  // in no reference

}  // namespace

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

// The length of the longest common subsequence with a reference. Bits behind its last word stay set.
std::int32_t RowCounter::grown(const std::uint64_t *bits, std::size_t reference) const {
    std::int32_t grown = 0;
    for (Index w = begin_[reference]; w < begin_[reference + 1]; w++) grown += std::popcount(~bits[w]);
    return grown;
}

// Later charges at places up to j, of positions and places of which no two can both be in one alignment, have a sum of
// at most E(j). A growth of the row at j is worth 1 - E(j) of the price beside all that is charged later: if one more
// word is read, the worth of the row grows by what it is charged at least.
void RowCounter::prepare(const Prices &prices, const Split &split, std::vector<Bits>) {
    const Index length = sentences_.length;
    worth_.assign((length + 1) * words() * 64, 0.0);
    counted_.assign((length + 1) * words(), 0);
    std::vector<double> later;
    Index first = 0;  // the unit of the first word of the reference
    for (std::size_t i = 0; i < references_.size(); i++) {
        const Index size = static_cast<Index>(references_[i].size());
        later.assign(size, 0.0);
        for (Index t = length; t > 0; t--) {
            double before = 0;
            for (Index j = 0; j < size && t < length; j++)
                before = later[j] = std::max(before, later[j]) + split.row(t)[first + j];
            for (Index j = 0; j < size && later[j] < 1; j++) {
                const Index bit = begin_[i] * 64 + j;
                worth_[t * words() * 64 + bit] = prices[i] * (1 - later[j]);
                counted_[t * words() + bit / 64] |= std::uint64_t{1} << bit % 64;
            }
        }
        first += size;
    }
}

double RowCounter::step(Index t, const Move &move, const std::uint64_t *from, std::uint64_t *to, Tallies &m) const {
    read(sentences_.chain->word[t][move.label], from, to);
    for (std::size_t i = 0; i < references_.size(); i++) m[i] = grown(to, i);
    double credit = 0;
    const double *worth = worth_.data() + (t + 1) * words() * 64;
    const std::uint64_t *counted = counted_.data() + (t + 1) * words();
    for (Index w = 0; w < words(); w++)
        for (std::uint64_t some = ~to[w] & counted[w]; some; some &= some - 1)
            credit += worth[w * 64 + std::countr_zero(some)];
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
    for (std::size_t i = 0; i < references_.size(); i++) m[i] = grown(row.data(), i);
    return m;
}

Split RowCounter::split(const std::vector<std::int64_t> &likely) const {
    const std::vector<std::int32_t> sentence =
        likely.empty() ? std::vector<std::int32_t>(sentences_.length, kNoWord) : words_of(sentences_, likely);
    Split made(sentences_.length, histories_.units().size(), 0.0);
    std::size_t first = 0;  // the unit of the first word of the reference
    for (const auto &reference : references_) {
        const auto map = aligned(sentence, reference);
        for (Index t = 0; t < sentences_.length; t++)
            if (map[t] >= 0) made.row(t)[first + map[t]] = 1;
        first += reference.size();
    }
    return made;
}

// An alignment with each reference.
void RowCounter::answer(const std::vector<double> &used, double part, Split &split) const {
    Index first = 0;  // the unit of the first word of the reference
    for (const auto &reference : references_) {
        const Index size = static_cast<Index>(reference.size());
        for (const auto &[t, j] : heaviest({used.data() + first, sentences_.length, size, split.units}))
            split.row(t)[first + j] = std::min(1.0, split.row(t)[first + j] + part);
        first += size;
    }
}

}  // namespace tallytree::sequences
