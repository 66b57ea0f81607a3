#include "crf/chain_summer.h"

namespace tallytree {
void ChainSummer::add_up(const ChainSums &sums, const std::vector<std::vector<double>> &parts) const {
    for (const auto &part : parts)
        for (Index i = 0; i < labels_; i++)
            for (Index j = 0; j < labels_; j++) sums.pairs[i * labels_ + j] += part[i * width_ + j];
    for (Index i = 0; i < labels_; i++)
        for (Index j = 0; j < labels_; j++) sums.pairs[i * labels_ + j] *= link(i, j);
}

namespace {

void subtract_truths(const ChainBatch &chains, const ChainSums &sums) {
    for (Index c = 0; c < chains.size(); c++) {
        const std::int64_t *y = sums.truths.data() + chains.starts[c];
        if (sums.left_out[c] || !std::isfinite(sums.log_sums[c])) continue;
        for (Index m = 1; m < chains.lengths[c]; m++) sums.pairs[y[m - 1] * chains.labels + y[m]] -= sums.importance[c];
    }
}

}  // namespace

void each_chain(const ChainBatch &chains, Index groups, double work_each, Index threads, const Poll &poll,
                const Inside &inside, const EachChain &body) {
    const Work work = [&](Worker &worker, Index group) {
        Meter meter(worker.poll);
        const Index first = group * chains.size() / groups, last = (group + 1) * chains.size() / groups;
        for (Index i = first; i < last; i++) {
            body(worker.number, i, group);
            meter.spend(static_cast<double>(chains.lengths[i]) * work_each);
        }
    };
    std::vector<Index> order(groups);
    std::iota(order.begin(), order.end(), 0);
    share_out(order, threads, work, poll, inside);
}

bool are_level(const ChainBatch &chains) {
    const auto labels = static_cast<std::size_t>(chains.labels);
    Spread links;
    links.take({chains.links, labels * labels});
    double widest = 0;
    bool forbids = links.forbids;
    for (Index c = 0; c < chains.size(); c++)
        for (Index m = 0; m < chains.lengths[c]; m++) {
            Spread row;
            row.take({chains.emissions + (chains.starts[c] + m) * chains.labels, labels});
            if (!(row.width() <= widest)) widest = row.width();
            forbids |= row.forbids;
        }
    return !forbids && links.width() + widest <= kWidest && std::isfinite(links.high);
}

void sum_chains(const ChainBatch &chains, const ChainSums &sums, Index threads, const MaxPlusKernels *kernels,
                const Poll &poll, const Inside &inside) {
    const ChainSummer model(chains, kernels);
    const Index square = chains.own_links ? 0 : model.width() * model.width();
    const Index groups = group_count(chains.size(), 8 * static_cast<double>(std::max<Index>(square, 1)));
    std::vector<std::vector<double>> pairs(groups);
    for (auto &part : pairs) part.assign(square, 0.0);
    const auto work = static_cast<double>(chains.labels * chains.labels) / 2;
    std::vector<ChainSummer> summers(std::max<Index>(threads, 1), model);
    each_chain(chains, groups, work, threads, poll, inside, [&](Index worker, Index i, Index group) {
        sums.left_out[i] = !summers[worker].sum(i, sums, pairs[group]);
    });
    if (!chains.own_links) model.add_up(sums, pairs);
    if (!chains.own_links && !sums.truths.empty()) subtract_truths(chains, sums);
}

void draw_chains(const ChainBatch &chains, const ChainDraws &draws, Index threads, const MaxPlusKernels *kernels,
                 const Poll &poll, const Inside &inside) {
    const ChainSummer model(chains, kernels);
    const Index groups = group_count(chains.size(), 8);
    const auto work = static_cast<double>(chains.labels * (chains.labels + draws.draws)) / 2;
    std::vector<ChainSummer> summers(std::max<Index>(threads, 1), model);
    each_chain(chains, groups, work, threads, poll, inside,
               [&](Index worker, Index i, Index) { draws.left_out[i] = !summers[worker].draw(i, draws); });
}

}  // namespace tallytree
