#include "bounds/chain_rows.h"

#include <unordered_map>

namespace tallytree::bounds {

void ChainRows::begin(Index positions, Index most, Index counted, Index lying) {
    length = positions;
    states = most;
    statistics = counted;
    width = round_up(states);
    in_place = lying;
    const Index copied = length - in_place;
    memory_ = Arena(copied * width * 8, std::move(memory_));
    late = static_cast<double *>(memory_.data());
    for (Index t = 0; t < copied; t++) std::fill_n(late + t * width + states, width - states, 0.0);
    std::fill_n(late + (copied - 1) * width, states, 0.0);
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
    kind_keys.clear();
    shares.assign((length + kStretch - 1) / kStretch, {});
}

void ChainRows::measure_scores(const ChainKernels &kernels) {
    shares[0].largest += kernels.sizes(first.data(), 1, width, states);
    for (Index t = 0; t < length; t += kStretch) {
        Share &share = shares[t / kStretch];
        const Index count = std::min(kStretch, length - t);
        share.roundings = static_cast<double>(count * (10 + 2 * statistics));
        share.largest += kernels.sizes(late_row(t), count, late_stride(t), states);
    }
}

void ChainRows::pack(const std::int32_t *counts, Index statistics, Index width, Index *keys) {
    const Packing packing(statistics);
    for (Index s = 0; s < width; s++) keys[s] = packing.pack([&](Index p) { return counts[p * width + s]; });
}

// ---- from a program ------------------------------------------------------------------------------------------------

// Whether each step takes the table of the one before, eliminates one variable and brings in the next.
bool ChainRows::is_chain(const LocalTables &tables) {
    const auto &steps = tables.skeleton().steps;
    const auto size = static_cast<Index>(steps.size());
    if (size < 3 || steps[0].verb != Verb::Unit || tables.statistics() > kMostStatistics) return false;
    const Index states = steps[1].gone.count;
    for (Index t = 1; t < size; t++) {
        const Step &step = steps[t];
        if (step.verb != Verb::Eliminate || step.a != t - 1 || step.kept_states != 1 || step.gone.count != states)
            return false;
        if (step.fresh != (t + 1 < size ? states : 1) || (step.shift_has_fresh && step.fresh > 1)) return false;
    }
    return states > 1 && states <= 512;
}

// What has been met on the way along a program.
struct ChainRows::Met {
    struct Mixed {
        std::size_t operator()(const std::vector<std::int32_t> &counts) const { return mixed(counts); }
    };
    const double *scores = nullptr;                                              // of the last table of neighbours,
    std::size_t number = 0;                                                      // and which it is
    std::unordered_map<const double *, std::size_t> tables{};                    // the same for all of them
    std::unordered_map<std::vector<std::int32_t>, std::int32_t, Mixed> kinds{};  // by their counts
    std::vector<std::int32_t> shared{};  // kinds of counts that several steps share
    std::vector<std::int32_t> row{};
    std::vector<Index> keys{};  // of its states
};

// One way along the program, which is longer than what is made of it.
void ChainRows::load(const LocalTables &tables) {
    const auto &steps = tables.skeleton().steps;
    begin(static_cast<Index>(steps.size()) - 1, steps[1].gone.count, tables.statistics());
    constant = tables.constant();
    constant_counts = tables.constant_counts();
    range = tables.range();
    forward_.clear();
    backward_.clear();
    back_links.resize(length);
    Met met;
    met.shared.assign(tables.shared(), -1);
    met.row.assign(statistics * width, 0);
    for (Index t = 0; t < length; t++) {
        const Step &step = steps[t + 1];
        const LocalStep &local = tables[t + 1];
        variable[t] = step.variable;
        const Index there = local.late ? step.fresh : 0;
        std::copy_n(local.late, there, late + t * width);
        std::fill_n(late + t * width + there, states - there, 0.0);
        copy_links(t, step, local.scores, met);
        kind[t] = kind_of(step, local, met);
        add_share(shares[t / kStretch], local);
    }
}

// Tables that several positions share are copied once.
void ChainRows::copy_links(Index t, const Step &step, const double *scores, Met &met) {
    const bool last = t + 1 == length;
    if (scores != met.scores || last) {
        const auto [at, fresh] = met.tables.try_emplace(scores, forward_.size());
        met.scores = scores;
        met.number = at->second;
        if (fresh || last) {
            met.number = add_table(scores, step.fresh, step.gone.score, step.fresh_score);
        }
    }
    links[t] = forward_[met.number].data();
    back_links[t] = backward_[met.number].data();
}

std::size_t ChainRows::add_table(const double *scores, Index fresh, Index stride, Index fresh_stride) {
    auto &there = forward_.emplace_back(states * width, kNegativeInfinity);
    auto &back = backward_.emplace_back(fresh * width, kNegativeInfinity);
    for (Index s = 0; s < states; s++)
        for (Index next = 0; next < fresh; next++)
            there[s * width + next] = back[next * width + s] = scores[s * stride + next * fresh_stride];
    return forward_.size() - 1;
}

std::int32_t ChainRows::kind_of(const Step &step, const LocalStep &local, Met &met) {
    const bool usual = local.shared >= 0 && step.shift_size == states && step.gone.shift == 1;
    if (usual && met.shared[local.shared] >= 0) return met.shared[local.shared];
    for (Index p = 0; p < statistics; p++)
        for (Index s = 0; s < states; s++)
            met.row[p * width + s] = local.counts ? local.counts[p * step.shift_size + s * step.gone.shift] : 0;
    const auto [at, fresh] = met.kinds.try_emplace(met.row, static_cast<std::int32_t>(met.kinds.size()));
    if (usual) met.shared[local.shared] = at->second;
    if (fresh) {
        met.keys.resize(width);
        pack(met.row.data(), statistics, width, met.keys.data());
        add_kind(met.row.data(), met.keys.data());
    }
    return at->second;
}

void ChainRows::add_share(Share &share, const LocalStep &local) {
    share.largest += local.largest;
    share.roundings += local.roundings;
    for (Index p = 0; p < kMostStatistics; p++) share.reach[p] += local.reach[p];
}

}  // namespace tallytree::bounds
