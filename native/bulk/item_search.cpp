#include "bulk/item_search.h"

namespace tallytree {

using namespace bounds;

namespace {

// Whether statistics count single variables alone, and are not folded into the scores.
bool counts_variables(const LossItem &item) {
    const TruthTables &tables = item.truth.tables();
    return item.truth.fold.empty() && tables.links == 0 && tables.statistics > 0 &&
           tables.statistics <= kMostStatistics && item.skeleton.feasible && !item.skeleton.chart;
}

double graph_bytes(const Skeleton &skeleton, double passes) {
    return LocalTables::bytes(skeleton) - static_cast<double>(skeleton.bytes) + GraphMessages::bytes(skeleton, passes);
}

// The tallies that a window leaves; one that ends at a cap has no end, and one that begins above it holds nothing.
std::optional<FewBox> relevant(const ScoreItem &item, const Ends &ends) {
    FewBox box;
    for (Index p = 0; p < item.skeleton.statistics; p++) {
        const Index low = item.request.window.low[p], high = item.request.window.high[p], cap = item.request.caps[p];
        if (!(std::max(-ends.low[p], ends.high[p]) < kNoLimit) || low > cap) return {};
        box.low[p] = std::max(low, static_cast<Index>(ends.low[p]));
        box.high[p] = std::min(high < cap ? high : kNoLimit, static_cast<Index>(ends.high[p]));
        if (box.low[p] > box.high[p]) return {};
    }
    return box;
}

}  // namespace

bool has_ties(const Skeleton &skeleton, std::span<const TableBlock<double>> scores) {
    constexpr Index kMany = 64;
    std::array<double, kMany> sample;
    for (std::size_t b = 0; b < scores.size(); b++) {
        if (skeleton.score_scopes.blocks[b].arity != 1) continue;
        const Index size = std::min(kMany, scores[b].count * scores[b].size);
        const auto end = std::copy_if(scores[b].data, scores[b].data + size, sample.begin(),
                                      [](double score) { return score > kNegativeInfinity; });
        std::sort(sample.begin(), end);
        const auto distinct = std::unique(sample.begin(), end) - sample.begin();
        return 2 * distinct < end - sample.begin();
    }
    return false;
}

bool ItemSearch::take(const LossItem &item, double may_wait) {
    chain_ = SentenceRows::suits(item);
    if (!chain_ && !counts_variables(item)) return false;
    if (chains_.held() > may_wait) chains_.forget();
    bytes_ = chains_.held() + (chain_ ? SentenceRows::bytes(item) : graph_bytes(item.skeleton, kPasses)) +
             TallySearch::bytes_each(item.truth.tables().statistics) * static_cast<double>(item.losses.losses.size());
    return true;
}

bool ItemSearch::take(const ScoreItem &item, double may_wait) {
    const Skeleton &skeleton = item.skeleton;
    if (skeleton.statistics < 1 || skeleton.statistics > kMostStatistics || skeleton.cardinalities.empty())
        return false;
    if (!skeleton.feasible || skeleton.chart) return false;
    const Ends ends = LocalTables::ends(skeleton, item.request.shifts);
    const auto box = relevant(item, ends);
    if (!box) return false;
    box_ = *box;
    plain_ = PlainChain::of(skeleton, item.scores, item.request.shifts);
    if (chains_.held() > may_wait) chains_.forget();
    bytes_ = chains_.held() + (plain_ ? SentenceRows::bytes(*plain_) : graph_bytes(skeleton, kPasses)) +
             TallySearch::bytes_each(skeleton.statistics) * box_.tallies();
    return true;
}

bool ItemSearch::run(const ScoreItem &item, TallySearch::Limits limits, Meter &meter) {
    if (TallySearch::least_work(box_.tallies()) > limits.work) return false;
    messages_ = load(item);
    if (!messages_) return false;
    TallyGoal goal{.statistics = item.skeleton.statistics, .box = box_};
    for (Index p = 0; p < goal.statistics; p++) goal.caps[p] = item.request.caps[p];
    if (item.allowed) {
        goal.allowed = item.allowed->allowed.data();
        std::copy(item.allowed->low.begin(), item.allowed->low.end(), goal.low.begin());
        std::copy(item.allowed->extent.begin(), item.allowed->extent.end(), goal.extent.begin());
    }
    return search_.run(*messages_, goal, {}, limits, meter);
}

bool ItemSearch::run(const LossItem &item, Index count, double truth_score, double *prices, TallySearch::Limits limits,
                     Meter &meter) {
    messages_ = &load(item);
    const LossTable &table = item.losses;
    TallyGoal asked{.statistics = item.truth.tables().statistics,
                    .count = count,
                    .losses = table.losses.data(),
                    .inverses = table.inverses.data(),
                    .slack = table.slack,
                    .margin = table.margin,
                    .truth = truth_score,
                    .largest = table.largest,
                    .regular = table.regular};
    for (Index p = 0; p < asked.statistics; p++) {
        asked.low[p] = asked.box.low[p] = table.low[p];
        asked.extent[p] = table.extent[p];
        asked.box.high[p] = table.low[p] + table.extent[p] - 1;
    }
    std::optional<Few<double>> start;
    if (prices) {
        start = Few<double>{};
        std::copy_n(prices, asked.statistics, start->begin());
        for (const double price : *start)
            if (!std::isfinite(price)) start.reset();
    }
    const bool found = search_.run(*messages_, asked, start, limits, meter);
    if (prices) std::copy_n(search_.prices().begin(), asked.statistics, prices);
    return found;
}

TiedMessages &ItemSearch::load(const LossItem &item) {
    if (chain_) return chains_.load(item);
    const TruthTables &tables = item.truth.tables();
    tables_.load(item.skeleton, item.scores,
                 {tables.kind_counts.data(), round_up(tables.states), tables.given_range, item.truth.kinds()});
    graphs_.begin(tables_);
    return graphs_;
}

TiedMessages *ItemSearch::load(const ScoreItem &item) {
    if (plain_)
        if (auto *messages = chains_.load(*plain_)) return messages;
    tables_.load(item.skeleton, item.scores, item.request.shifts);
    if (!tables_.fits() || !tables_.keyed()) return nullptr;
    graphs_.begin(tables_);
    return &graphs_;
}

}  // namespace tallytree
