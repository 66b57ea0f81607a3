// Which chains are summed in plain products, and the boxes of tallies at each of their positions.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "bulk/spread.h"
#include "bulk/tallied_chain.h"

namespace tallytree {

bool TalliedChain::take(const BatchItem &item, Objective objective, double memory_limit) {
    const bool known =
        objective == Objective::SoftmaxMargin || objective == Objective::Risk || objective == Objective::Evidence;
    if (!known || !item.truth || !item.losses || !item.truth.fold.empty() || item.truth.unary != 0) return false;
    if (item.scores.empty()) return false;  // a model without variables
    const auto &tables = item.truth.tables();
    const auto &scopes = item.skeleton->score_scopes.blocks;
    item_ = &item;
    objective_ = objective;
    length_ = static_cast<Index>(item.truth.kinds().size());
    states_ = tables.states;
    labels_ = item.scores[0].size;
    statistics_ = tables.statistics;
    if (statistics_ < 1 || statistics_ > kMostTallied || length_ < 1 || (!tables.links && labels_ != states_))
        return false;
    if (static_cast<Index>(item.scores.size()) != (length_ > 1 ? 2 : 1) || !is_chain_block(scopes[0], length_, 1) ||
        (length_ > 1 && !is_chain_block(scopes[1], length_, 2)))
        return false;
    return is_level() && note_steps() && lay_boxes(memory_limit);
}

void TalliedChain::trim(double share) {
    constexpr double kPart = 16;
    std::size_t cells = 0;
    for (const Row *row : {&tables_, &ahead_, &behind_, &back_, &factors_}) cells += row->capacity();
    if (kPart * 8 * static_cast<double>(cells) > share) *this = TalliedChain();
}

// Whether all scores are finite and close enough together; takes down the largest ones.
bool TalliedChain::is_level() {
    const auto labels = static_cast<std::size_t>(labels_);
    double emissions = 0, links = 0;
    tops_.assign(length_, 0.0);
    for (Index m = 0; m < length_; m++) {
        Spread row;
        row.take({item_->scores[0].row(m), labels});
        if (row.forbids || row.broken || !std::isfinite(row.high)) return false;
        tops_[m] = row.high;
        emissions = std::max(emissions, row.width());
    }
    link_tops_.assign(length_ > 1 ? item_->scores[1].count : 0, 0.0);
    for (std::size_t k = 0; k < link_tops_.size(); k++) {
        Spread table;
        table.take({item_->scores[1].row(static_cast<Index>(k)), labels * labels});
        if (table.forbids || table.broken || !std::isfinite(table.high)) return false;
        link_tops_[k] = table.high;
        links = std::max(links, table.width());
    }
    width_ = emissions + links;
    return width_ <= kWidest;
}

bool TalliedChain::lay_boxes(double memory_limit) {
    boxes_.resize(length_);
    double cells = 0, largest = 0;
    for (Index m = 0; m < length_; m++) {
        Box &box = boxes_[m];
        if (!add_box(m)) return false;
        box.begin = static_cast<Index>(cells);
        box.guard = padded(box.reach) + kPadding;
        box.before = box.guard + box.width + kPadding;
        cells += static_cast<double>(m ? states_ * box.before : 0);
        largest = std::max(largest, static_cast<double>(states_ * box.before));
        bytes_ = 8 * (cells + 3 * largest + 2 * static_cast<double>(length_ * states_ * states_));
        if (bytes_ > std::min(kMostBytes, memory_limit / 2)) return false;
    }
    return true;
}

// How far tallies move at each position, and, of evidence, how large they may be there: larger ones cannot come back.
bool TalliedChain::note_steps() {
    const auto &tables = item_->truth.tables();
    steps_.assign(length_ * statistics_, {0, 0});
    limits_.assign(length_ * statistics_, kNoLimit);
    for (Index m = 0; m < length_; m++)
        for (Index p = 0; p < statistics_; p++) {
            auto &[least, most] = steps_[m * statistics_ + p];
            std::tie(least, most) = tables.given_range[p * tables.kinds + item_->truth.kinds()[m]];
            if (!m || !tables.links) continue;
            const auto [low, high] = tables.moved_range[p * tables.links + item_->truth.table_at(m)];
            least += low;
            most += high;
        }
    if (objective_ != Objective::Evidence) return true;
    std::vector<Index> largest(statistics_, -kNoLimit);
    const LossTable &losses = *item_->losses;
    for (std::size_t i = 0; i < losses.losses.size(); i++) {
        if (losses.losses[i] != 0) continue;
        const auto tally = losses.tally(static_cast<Index>(i));
        for (Index p = 0; p < statistics_; p++) largest[p] = std::max(largest[p], tally[p]);
    }
    for (Index m = length_; m-- > 0;)
        for (Index p = 0; p < statistics_; p++) {
            limits_[m * statistics_ + p] = largest[p];
            if (largest[p] > -kNoLimit) largest[p] -= steps_[m * statistics_ + p].first;
        }
    return true;
}

bool TalliedChain::add_box(Index m) {
    Box &box = boxes_[m];
    for (auto *list : {&box.low, &box.extent, &box.keep, &box.stride, &box.least}) list->assign(statistics_, 0);
    box.cells = 1;
    box.reach = 0;
    for (Index p = statistics_; p-- > 0;) {
        const auto [least, most] = steps_[m * statistics_ + p];
        box.least[p] = least;
        box.low[p] = least + (m ? boxes_[m - 1].low[p] : 0);
        box.extent[p] = most - least + (m ? boxes_[m - 1].keep[p] : 1);
        box.keep[p] = std::min(box.extent[p], limits_[m * statistics_ + p] - box.low[p] + 1);
        if (box.keep[p] <= 0) return false;  // what is known is impossible
        box.stride[p] = box.cells;
        box.reach += (most - least) * box.stride[p];
        box.cells *= box.extent[p];
    }
    box.width = padded(box.cells);
    return true;
}

}  // namespace tallytree
