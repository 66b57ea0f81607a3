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

double graph_bytes(const LossItem &item, double passes) {
    return LocalTables::bytes(item.skeleton) - static_cast<double>(item.skeleton.bytes) +
           GraphMessages::bytes(item.skeleton, passes);
}

}  // namespace

bool ItemSearch::take(const LossItem &item, double may_wait) {
    chain_ = SentenceRows::suits(item);
    if (!chain_ && !counts_variables(item)) return false;
    if (chains_.held() > may_wait) chains_.forget();
    bytes_ = chains_.held() + (chain_ ? SentenceRows::bytes(item) : graph_bytes(item, kPasses)) +
             TallySearch::bytes_each(item.truth.tables().statistics) * static_cast<double>(item.losses.losses.size());
    return true;
}

bool ItemSearch::run(const LossItem &item, double truth_score, double *prices, TallySearch::Limits limits,
                     Meter &meter) {
    messages_ = &load(item);
    const LossTable &table = item.losses;
    LossBox asked{table.losses.data(),
                  table.inverses.data(),
                  {},
                  {},
                  item.truth.tables().statistics,
                  table.slack,
                  table.margin,
                  truth_score,
                  table.largest,
                  table.regular};
    std::copy(table.low.begin(), table.low.end(), asked.low.begin());
    std::copy(table.extent.begin(), table.extent.end(), asked.extent.begin());
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

}  // namespace tallytree
