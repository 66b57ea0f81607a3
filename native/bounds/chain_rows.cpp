#include "bounds/chain_rows.h"

#include <unordered_map>

namespace tallytree::bounds {

void ChainRows::begin(Index positions, Index most, Index counted) {
    length = positions;
    states = most;
    statistics = counted;
    width = round_up(states);
    memory_ = Arena(length * width * 8, std::move(memory_));
    late = static_cast<double *>(memory_.data());
    std::fill_n(late, length * width, 0.0);
    first.assign(width, kNegativeInfinity);
    std::fill_n(first.begin(), states, 0.0);
    constant = 0;
    constant_counts = {};
    range = {};
    variable.resize(length);
    links.resize(length);
    back_links.clear();
    link_kind.clear();
    link_kinds.clear();
    kind.resize(length);
    kind_counts.clear();
    shares.assign((length + kStretch - 1) / kStretch, {});
}

void ChainRows::pack_kinds() {
    const Packing packing(statistics);
    kind_keys.assign(kinds() * width, 0);
    for (Index k = 0; k < kinds(); k++)
        for (Index s = 0; s < states; s++) {
            Tally offset{};
            for (Index p = 0; p < statistics; p++) offset[p] = kind_counts[(k * statistics + p) * width + s];
            kind_keys[k * width + s] = packing.pack(offset);
        }
}

// ---- from a program ------------------------------------------------------------------------------------------------

// Whether each step takes the table of the one before, eliminates one variable and brings in the next.
bool ChainRows::is_chain(const LocalTables &tables) {
    const auto &steps = tables.skeleton().steps;
    const auto size = static_cast<Index>(steps.size());
    if (size < 3 || steps[0].verb != Verb::Unit) return false;
    const Index states = steps[1].gone.count;
    for (Index t = 1; t < size; t++) {
        const Step &step = steps[t];
        if (step.verb != Verb::Eliminate || step.a != t - 1 || step.kept_states != 1 || step.gone.count != states)
            return false;
        if (step.fresh != (t + 1 < size ? states : 1) || (step.shift_has_fresh && step.fresh > 1)) return false;
    }
    return states > 1 && states <= 512;
}

void ChainRows::load(const LocalTables &tables) {
    const auto &steps = tables.skeleton().steps;
    begin(static_cast<Index>(steps.size()) - 1, steps[1].gone.count, tables.statistics());
    constant = tables.constant();
    constant_counts = tables.constant_counts();
    range = tables.range();
    for (Index t = 0; t < length; t++) {
        variable[t] = steps[t + 1].variable;
        if (const double *scores = tables[t + 1].late) std::copy_n(scores, steps[t + 1].fresh, late + t * width);
    }
    copy_links(tables);
    find_kinds(tables);
    pack_kinds();
    sum_stretches(tables);
}

// Tables that several positions share are copied once.
void ChainRows::copy_links(const LocalTables &tables) {
    forward_.clear();
    backward_.clear();
    std::unordered_map<const double *, std::int32_t> known;
    back_links.resize(length);
    for (Index t = 0; t < length; t++) {
        const Step &step = tables.skeleton().steps[t + 1];
        const double *scores = tables[t + 1].scores;
        const auto [at, fresh] = known.try_emplace(scores, static_cast<std::int32_t>(forward_.size()));
        std::size_t number = at->second;
        if (fresh || t + 1 == length) {
            number = forward_.size();
            auto &there = forward_.emplace_back(states * width, kNegativeInfinity);
            auto &back = backward_.emplace_back(step.fresh * width, kNegativeInfinity);
            for (Index s = 0; s < states; s++)
                for (Index next = 0; next < step.fresh; next++)
                    there[s * width + next] = back[next * width + s] =
                        scores[s * step.gone.score + next * step.fresh_score];
        }
        links[t] = forward_[number].data();
        back_links[t] = backward_[number].data();
    }
}

void ChainRows::find_kinds(const LocalTables &tables) {
    const Index size = statistics * width;
    const auto mixed = [](const std::vector<std::int32_t> &row) {
        std::uint64_t sum = 0;
        for (const auto x : row) sum = (sum ^ static_cast<std::uint32_t>(x)) * 0x9E3779B97F4A7C15u;
        return static_cast<std::size_t>(sum >> 16);
    };
    std::unordered_map<std::vector<std::int32_t>, std::int32_t, decltype(mixed)> known(16, mixed);
    std::vector<std::int32_t> row(size, 0);
    for (Index t = 0; t < length; t++) {
        const Step &step = tables.skeleton().steps[t + 1];
        const std::int32_t *counts = tables[t + 1].counts;
        for (Index p = 0; p < statistics; p++)
            for (Index s = 0; s < states; s++)
                row[p * width + s] = counts ? counts[p * step.shift_size + s * step.gone.shift] : 0;
        const auto [at, fresh] = known.try_emplace(row, static_cast<std::int32_t>(known.size()));
        kind[t] = at->second;
        if (fresh) kind_counts.insert(kind_counts.end(), row.begin(), row.end());
    }
}

void ChainRows::sum_stretches(const LocalTables &tables) {
    for (Index t = 0; t < length; t++) {
        const LocalStep &local = tables[t + 1];
        Share &share = shares[t / kStretch];
        share.largest += local.largest;
        share.roundings += local.roundings;
        for (Index p = 0; p < kMostStatistics; p++) share.reach[p] += local.reach[p];
    }
}

}  // namespace tallytree::bounds
