// The rows of a chain from the tables of a model, which are read once.
#include "bounds/chain_rows.h"

namespace tallytree::bounds {

namespace {

constexpr Index kLargest = Index{1} << 30;  // of a count

// Numbers without a pattern, for sums that tell rows apart.
std::vector<std::uint64_t> odd_numbers(Index size) {
    std::vector<std::uint64_t> odd(size);
    std::uint64_t state = 0x9E3779B97F4A7C15u;
    for (auto &one : odd) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        one = state | 1;
    }
    return odd;
}

// How many positions read what comes with the next one where it lies: whole stretches, none of whose rows, rounded up,
// ends behind the table.
Index readable(const PlainChain &chain) {
    if (chain.unary.count != chain.length) return 0;
    const Index beyond = (round_up(chain.states) + chain.states - 1) / chain.states;
    return std::max<Index>(chain.length - 1 - beyond, 0) / kStretch * kStretch;
}

}  // namespace

std::optional<Facts> ChainRows::load(const PlainChain &chain, const ChainKernels &kernels, double most_kinds) {
    begin(chain.length, chain.states, chain.statistics, readable(chain));
    Facts facts;
    facts.operations = chain.operations();
    if (!load_counts(chain, kernels, most_kinds)) return {};
    facts.range = range;
    take_scores(chain, kernels, facts);
    for (Index t = 0; t < length; t++) variable[t] = static_cast<std::int32_t>(t);
    return facts;
}

bool ChainRows::load_counts(const PlainChain &chain, const ChainKernels &kernels, double most_kinds) {
    return take_counts(chain, kernels, most_kinds) && measure_kinds();
}

void ChainRows::take_scores(const PlainChain &chain, const ChainKernels &kernels, Facts &facts) {
    std::copy_n(chain.unary.row(0), states, first.begin());
    model_rows = chain.unary.data + states;
    for (Index t = in_place; t + 1 < length; t++)
        std::copy_n(chain.unary.row(t + 1), states, late + (t - in_place) * width);
    forward_.clear();
    backward_.clear();
    scores_.clear();
    counts_.clear();
    back_links.resize(length);
    double largest = 0;
    const double none = 0;
    for (Index t = 0; t < length; t++) {
        const bool last = t + 1 == length;
        if (last) {
            add_table(&none, states, 1, 0, 0);
            largest = 0;
        } else if (t == 0 || chain.pairs.count > 1) {
            add_table(chain.pairs.row(t), states, states, states, 1);
            largest = kernels.sizes(chain.pairs.row(t), 1, states * states, states * states);
        }
        links[t] = forward_.back().data();
        back_links[t] = backward_.back().data();
        shares[t / kStretch].largest += largest;
    }
    measure_scores(kernels);
    for (const Share &share : shares) facts.magnitude += share.largest;
}

// Which counts the positions have. They are numbered by sums, and compared with those that have the number.
bool ChainRows::take_counts(const PlainChain &chain, const ChainKernels &kernels, double most_kinds) {
    const Index row = statistics * states;
    const auto odd = odd_numbers(row);
    RowNumbers numbers;
    kind_rows_.clear();
    std::array<std::uint64_t, kStretch> sums;
    for (Index t = 0; t < length; t += kStretch) {
        const Index count = std::min(kStretch, length - t);
        std::array<ChainCounts, kMostStatistics> counts;
        sums.fill(0);
        for (Index p = 0; p < statistics; p++) {
            const auto &block = chain.counts[p];
            counts[p] = {count, states, block.count == 1 ? 0 : states, block.row(t)};
            kernels.digest(counts[p], odd.data() + p * states, sums.data());
        }
        for (Index i = 0; i < count; i++) {
            const std::int32_t known = numbers.size();
            kind[t + i] = numbers.number(sums[i]);
            if (kind[t + i] < known) continue;
            for (Index p = 0; p < statistics; p++) {
                const std::int64_t *from = chain.counts[p].row(t + i);
                kind_rows_.insert(kind_rows_.end(), from, from + states);
            }
        }
        if (numbers.size() > most_kinds) return false;
        for (Index p = 0; p < statistics; p++)
            if (!kernels.same(counts[p], kind.data() + t, kind_rows_.data() + p * states, row)) return false;
    }
    return true;
}

// The counts of kinds in rows, less the least of each, and the tallies that there can be; false where they are too
// large.
bool ChainRows::measure_kinds() {
    const Index known = static_cast<Index>(kind_rows_.size()) / (statistics * states);
    std::vector<Tally> least(known), most(known);
    kind_counts.assign(known * statistics * width, 0);
    kind_keys.resize(known * width);
    for (Index k = 0; k < known; k++) {
        for (Index p = 0; p < statistics; p++) {
            const std::int64_t *from = kind_rows_.data() + (k * statistics + p) * states;
            const auto [low, high] = std::ranges::minmax(std::span(from, states));
            if (low <= -kLargest || high >= kLargest) return false;
            least[k][p] = low;
            most[k][p] = high;
            std::transform(from, from + states, kind_counts.begin() + (k * statistics + p) * width,
                           [low](std::int64_t count) { return static_cast<std::int32_t>(count - low); });
        }
        pack(kind_counts.data() + k * statistics * width, statistics, width, kind_keys.data() + k * width);
    }
    for (Index t = 0; t < length; t++)
        for (Index p = 0; p < statistics; p++) {
            const Index low = least[kind[t]][p], high = most[kind[t]][p];
            range.low[p] += low;
            range.high[p] += high;
            constant_counts[p] += low;
            shares[t / kStretch].reach[p] += static_cast<double>(high - low);
        }
    for (Index p = 0; p < statistics; p++)
        if (range.high[p] - range.low[p] >= Packing(statistics).largest()) return false;
    return true;
}

double ChainRows::kept() const {
    std::size_t tables = 0;
    const auto add = [&](const auto &lists) {
        for (const auto &list : lists) tables += list.capacity();
    };
    add(forward_), add(backward_), add(scores_);
    double counts = 0;
    for (const auto &table : counts_) counts += table.bytes();
    return static_cast<double>(links.capacity() + back_links.capacity() + first.capacity() + kind_keys.capacity() +
                               kind_rows_.capacity() + tables) *
               8 +
           static_cast<double>(variable.capacity() + kind.capacity() + kind_counts.capacity()) * 4 +
           static_cast<double>(shares.capacity() * sizeof(Share) + memory_.bytes()) + counts;
}

}  // namespace tallytree::bounds
