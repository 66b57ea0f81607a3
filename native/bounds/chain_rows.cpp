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

// What has been met on the way along a program.
struct ChainRows::Met {
    struct Mixed {
        std::size_t operator()(const std::vector<std::int32_t> &counts) const { return mixed(counts); }
    };
    std::unordered_map<std::vector<std::int32_t>, std::int32_t, Mixed> kinds{};  // by their counts
    std::vector<std::int32_t> shared{};  // kinds of counts that several steps share
    std::vector<std::int32_t> row{};
    std::vector<Index> keys{};  // of its states
    std::int32_t none = -1;     // the kind that counts nothing
};

// One way along the program, which is longer than what is made of it.
void ChainRows::load(const LocalTables &tables, const ChainTables &chain) {
    const auto &steps = tables.skeleton().steps;
    begin(static_cast<Index>(steps.size()) - 1, chain.states, tables.statistics());
    std::fill(first.begin() + steps[1].gone.count, first.begin() + states, kNegativeInfinity);
    constant = tables.constant();
    constant_counts = tables.constant_counts();
    range = tables.range();
    copy_links(tables, chain);
    if (chain.linked) copy_counts(tables, chain);
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
        kind[t] = kind_of(step, local, met);
        add_share(shares[t / kStretch], local);
    }
}

// Tables that several positions share are copied once.
void ChainRows::copy_links(const LocalTables &tables, const ChainTables &chain) {
    forward_.clear();
    backward_.clear();
    scores_.clear();
    counts_.clear();
    for (const auto &table : chain.distinct) {
        const Step &step = tables.skeleton().steps[table.step];
        add_table(table.scores, table.before, table.after, step.gone.score, step.fresh_score);
    }
    back_links.resize(length);
    for (Index t = 0; t < length; t++) {
        links[t] = forward_[chain.number[t]].data();
        back_links[t] = backward_[chain.number[t]].data();
    }
}

void ChainRows::add_table(const double *scores, Index before, Index after, Index stride, Index fresh_stride) {
    auto &there = forward_.emplace_back(states * width, kNegativeInfinity);
    auto &back = backward_.emplace_back(after * width, kNegativeInfinity);
    for (Index s = 0; s < before; s++)
        for (Index next = 0; next < after; next++)
            there[s * width + next] = back[next * width + s] = scores[s * stride + next * fresh_stride];
}

// Each table of neighbours has one of counts, which several share.
void ChainRows::copy_counts(const LocalTables &tables, const ChainTables &chain) {
    std::unordered_map<ChainTables::Table, const LinkCounts *, ChainTables::Mixed> known;
    for (std::size_t k = 0; k + 1 < chain.distinct.size(); k++) {
        const auto &table = chain.distinct[k];
        const Step &step = tables.skeleton().steps[table.step];
        const auto [at, fresh] = known.try_emplace({nullptr, table.counts, table.before, table.after, 0}, nullptr);
        if (fresh)
            at->second = &counts_.emplace_back(statistics, states, width, [&](Index p, Index first, Index second) {
                const bool there = table.counts && first < table.before && second < table.after;
                return there ? table.counts[p * step.shift_size + first * step.gone.shift + second] : 0;
            });
        const double *scores = scores_.emplace_back(at->second->pick(forward_[k].data())).data();
        link_kinds.push_back({scores, forward_[k].data(), backward_[k].data(), at->second});
    }
    link_kind.assign(chain.number.begin(), chain.number.end() - 1);
}

std::int32_t ChainRows::kind_of(const Step &step, const LocalStep &local, Met &met) {
    const bool none = !local.counts || (step.shift_has_fresh && step.fresh > 1), usual = !none && local.shared >= 0;
    if (none && met.none >= 0) return met.none;
    if (usual && met.shared[local.shared] >= 0) return met.shared[local.shared];
    std::fill(met.row.begin(), met.row.end(), 0);
    for (Index p = 0; p < statistics && !none; p++)
        for (Index s = 0; s < step.gone.count; s++)
            met.row[p * width + s] = local.counts[p * step.shift_size + s * step.gone.shift];
    const auto [at, fresh] = met.kinds.try_emplace(met.row, static_cast<std::int32_t>(met.kinds.size()));
    if (none) met.none = at->second;
    if (usual && step.gone.shift == 1 && step.shift_size == step.gone.count) met.shared[local.shared] = at->second;
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
