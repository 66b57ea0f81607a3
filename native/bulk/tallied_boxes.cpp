// Which chains are summed in plain products, and the boxes of tallies at each of their positions.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "bulk/spread.h"
#include "bulk/tallied_chain.h"

namespace tallytree {

// Whether it counts what this can count, and looks at its losses if there are any.
bool TalliedChain::suits(const BatchItem &item) const {
    const bool alone = question_.objective == Objective::Given || question_.objective == Objective::Sums;
    if (question_.objective == Objective::Likelihood || !item.truth || (!alone && !item.losses)) return false;
    return item.truth.fold.empty() && item.truth.unary == 0;
}

bool TalliedChain::take(const BatchItem &item, const TallyQuestion &question, double memory_limit) {
    question_ = question;
    if (!suits(item)) return false;
    if (item.scores.empty()) return false;  // a model without variables
    const auto &tables = item.truth.tables();
    const auto &scopes = item.skeleton->score_scopes.blocks;
    item_ = &item;
    length_ = static_cast<Index>(item.truth.kinds().size());
    states_ = tables.states;
    labels_ = item.scores[0].size;
    statistics_ = tables.statistics;
    if (statistics_ < 1 || statistics_ > kMostTallied || length_ < 1 || (!tables.links && labels_ != states_))
        return false;
    if (static_cast<Index>(item.scores.size()) != (length_ > 1 ? 2 : 1) || !is_chain_block(scopes[0], length_, 1) ||
        (length_ > 1 && !is_chain_block(scopes[1], length_, 2)))
        return false;
    if (!is_level()) return false;
    note_steps();
    return lay_boxes(memory_limit);
}

void TalliedChain::trim(double share) {
    constexpr double kPart = 16;
    std::size_t cells = 0;
    for (const Row *row : {&tables_, &ahead_, &behind_, &back_, &factors_}) cells += row->capacity();
    if (kPart * 8 * static_cast<double>(cells) > share) *this = TalliedChain();
}

// Whether all scores, but for -inf, are close enough together; takes down the largest ones.
bool TalliedChain::is_level() {
    const auto labels = static_cast<std::size_t>(labels_);
    double emissions = 0, links = 0;
    forbids_ = false;
    tops_.assign(length_, 0.0);
    for (Index m = 0; m < length_; m++)
        if (!add_width({item_->scores[0].row(m), labels}, tops_[m], emissions)) return false;
    link_tops_.assign(length_ > 1 ? item_->scores[1].count : 0, 0.0);
    for (std::size_t k = 0; k < link_tops_.size(); k++)
        if (!add_width({item_->scores[1].row(static_cast<Index>(k)), labels * labels}, link_tops_[k], links))
            return false;
    width_ = emissions + links;
    return width_ <= kWidest;
}

bool TalliedChain::add_width(std::span<const double> scores, double &top, double &widest) {
    Spread spread;
    spread.take(scores);
    if (spread.broken || !std::isfinite(spread.high)) return false;
    forbids_ |= spread.forbids;
    top = spread.high;
    widest = std::max(widest, spread.width());
    return true;
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

// How far tallies move at each position.
void TalliedChain::note_steps() {
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
    if (question_.objective == Objective::Evidence) limit_tallies(*item_->losses, item_->losses->losses, true);
    if (question_.objective == Objective::Given) limit_tallies(*question_.grid, question_.gains, false);
}

// How large tallies may be at each position, where only those count in the end whose number is 0, or is not: larger
// ones cannot come back.
void TalliedChain::limit_tallies(const TallyGrid &grid, std::span<const double> numbers, bool zeros) {
    std::vector<Index> largest(statistics_, -kNoLimit);
    for (std::size_t i = 0; i < numbers.size(); i++) {
        if ((numbers[i] == 0) != zeros) continue;
        const auto tally = grid.tally(static_cast<Index>(i));
        for (Index p = 0; p < statistics_; p++) largest[p] = std::max(largest[p], tally[p]);
    }
    for (Index m = length_; m-- > 0;)
        for (Index p = 0; p < statistics_; p++) {
            limits_[m * statistics_ + p] = largest[p];
            if (largest[p] > -kNoLimit) largest[p] -= steps_[m * statistics_ + p].first;
        }
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
