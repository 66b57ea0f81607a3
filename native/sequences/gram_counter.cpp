#include <algorithm>
#include <bit>

#include "sequences/alignment.h"
#include "sequences/counters.h"

namespace tallytree::sequences {

GramCounter::GramCounter(const Sentences &sentences, const Histories &histories, Index tallies,
                         const References &references, const Ends &ends)
    : sentences_(sentences), histories_(histories), tallies_(tallies), references_(references), ends_(ends) {
    of_tally_.assign(tallies, Bits(words(), 0));
    for (const Unit &unit : histories.units())
        for (Index k = 0; unit.cap != kUncapped && k < unit.cap; k++)
            of_tally_[unit.tally][(unit.bit + k) / 64] |= std::uint64_t{1} << (unit.bit + k) % 64;
}

// Charges at later positions are refunded as far as they exceed what can still be paid for. The k-th use of a unit adds
// max(0, later - (cap - k)·μ) - max(0, later - (cap - k + 1)·μ) to that, so every bit has a refund of its own.
void GramCounter::prepare(const Prices &prices, const Split &split, std::vector<Bits> matter) {
    prices_ = prices;
    matter_ = std::move(matter);
    const Index length = sentences_.length;
    refunded_.assign(length + 1, Bits(words(), 0));
    refund_.assign(length + 1, std::vector<double>(histories_.bits(), 0.0));
    const auto &units = histories_.units();
    for (std::size_t u = 0; u < units.size(); u++) {
        const double price = prices[units[u].tally];
        if (units[u].cap == kUncapped || price <= 0 || price == -kNegativeInfinity) continue;
        double later = 0;
        for (Index t = length - 1; t > 0; t--) {
            later += split.at(t, static_cast<std::int32_t>(u));
            for (Index k = 1; k <= units[u].cap; k++) {
                const double left = static_cast<double>(units[u].cap - k);
                const double more = std::max(0.0, later - left) - std::max(0.0, later - left - 1);
                const Index bit = units[u].bit + k - 1;
                if (more <= 0 || !(matter_[t][bit / 64] >> bit % 64 & 1)) continue;
                refund_[t][bit] = price * more;
                refunded_[t][bit / 64] |= std::uint64_t{1} << bit % 64;
            }
        }
    }
}

void GramCounter::use(std::span<const std::int32_t> units, std::uint64_t *bits, Tallies &m) const {
    for (std::int32_t u : units) {
        const Unit &unit = histories_.units()[u];
        if (unit.cap == kUncapped) {
            m[unit.tally]++;
            continue;
        }
        for (Index bit = unit.bit; bit < unit.bit + unit.cap; bit++) {
            std::uint64_t &word = bits[bit / 64];
            const std::uint64_t one = std::uint64_t{1} << bit % 64;
            if (word & one) continue;
            word |= one;
            m[unit.tally]++;
            break;
        }
    }
}

double GramCounter::step(Index t, const Move &move, const std::uint64_t *from, std::uint64_t *to, Tallies &m) const {
    std::copy_n(from, words(), to);
    use(move.units, to, m);
    double credit = 0;
    for (Index n = 0; n < tallies_; n++)
        if (m[n]) credit += prices_[n] * m[n];
    const Bits &matter = matter_[t + 1], &refunded = refunded_[t + 1];
    for (Index w = 0; w < words(); w++) {
        to[w] &= matter[w];
        for (std::uint64_t some = to[w] & refunded[w]; some; some &= some - 1)
            credit -= refund_[t + 1][w * 64 + std::countr_zero(some)];
    }
    return credit;
}

// What the first has left to use beyond the second is |B \ A|: with that it has no more than the second has now.
bool GramCounter::dominates(const std::uint64_t *a, const Tallies &ma, const std::uint64_t *b,
                            const Tallies &mb) const {
    for (Index n = 0; n < tallies_; n++) {
        std::int32_t more = mb[n] - ma[n];
        if (more < 0) return false;
        for (Index w = 0; w < words(); w++) more -= std::popcount(b[w] & ~a[w] & of_tally_[n][w]);
        if (more < 0) return false;
    }
    return true;
}

Tallies GramCounter::count(const std::vector<std::int64_t> &labelling) const {
    Bits bits(words() + 1, 0);
    Tallies m{};
    histories_.follow(words_of(sentences_, labelling), [&](Index, auto units) { use(units, bits.data(), m); });
    return m;
}

// The whole price where the reference has the n-gram, as it is aligned with a likely sentence.
Split GramCounter::split(const std::vector<std::int64_t> &likely) const {
    const auto &units = histories_.units();
    const Index length = sentences_.length;
    Split made(length, units.size(), 0.0);
    const std::vector<std::int32_t> sentence = words_of(sentences_, likely);
    std::vector<std::vector<Index>> position;  // of each place of each reference
    for (const auto &reference : references_) {
        auto &row = position.emplace_back(reference.size(), -1);
        const auto map = aligned(sentence, reference);
        for (Index t = 0; t < length; t++)
            if (map[t] >= 0) row[map[t]] = t;
    }
    for (std::size_t u = 0; u < units.size(); u++) {
        const bool capped = units[u].cap != kUncapped;
        for (Index t = 0; !capped && t < length; t++) made.row(t)[u] = 1;
        for (std::size_t k = 0; capped && k < ends_[u].second.size(); k++)
            if (const Index t = position[ends_[u].first][ends_[u].second[k]]; t >= 0) made.row(t)[u] = 1;
    }
    return made;
}

// The positions where a unit is used most, as many as count.
void GramCounter::answer(const std::vector<double> &used, double part, Split &split) const {
    const auto &units = histories_.units();
    std::vector<std::pair<double, Index>> most;
    for (std::size_t u = 0; u < units.size(); u++) {
        most.clear();
        for (Index t = 0; t < sentences_.length; t++)
            if (const double x = used[t * split.units + u]; x > 0) most.emplace_back(-x, t);
        const auto some = std::min<std::size_t>(most.size(), units[u].cap);
        std::partial_sort(most.begin(), most.begin() + some, most.end());
        for (std::size_t k = 0; k < some; k++) {
            double &share = split.row(most[k].second)[u];
            share = std::min(1.0, share + part);
        }
    }
}

}  // namespace tallytree::sequences
