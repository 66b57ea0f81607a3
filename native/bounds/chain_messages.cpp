#include "bounds/chain_messages.h"

#include <unordered_map>

namespace tallytree::bounds {

namespace {

constexpr Index kStretch = 64;  // positions between which messages are brought back to about 0

// Whether each step takes the table of the one before, eliminates one variable and brings in the next.
bool is_chain(const LocalTables &tables) {
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

}  // namespace

bool ChainMessages::fits(const LocalTables &tables, double memory_limit) {
    return is_chain(tables) && bytes(tables) <= memory_limit;
}

double ChainMessages::bytes(const LocalTables &tables) {
    const auto &steps = tables.skeleton().steps;
    const double row = 8 * std::ceil(static_cast<double>(steps[1].gone.count) / 8) * sizeof(double);
    double links = 1;
    for (std::size_t t = 2; t < steps.size(); t++)
        links += tables[static_cast<Index>(t)].scores != tables[static_cast<Index>(t) - 1].scores;
    return row * static_cast<double>(steps.size()) * 7 + 2 * links * row * row / sizeof(double);
}

ChainMessages::ChainMessages(const LocalTables &tables, const ChainKernels &kernels)
    : tables_(tables), kernels_(kernels), packing_(tables.statistics()), merger_(cells_) {
    const Skeleton &skeleton = tables.skeleton();
    length_ = static_cast<Index>(skeleton.steps.size()) - 1;
    states_ = skeleton.steps[1].gone.count;
    width_ = round_up(states_);
    weighed_.assign(width_, 0);
    into_.resize(states_);
    copy_links();
    copy_rows();
    sum_stretches();
}

// Tables that several positions share are copied once.
void ChainMessages::copy_links() {
    std::unordered_map<const double *, std::int32_t> known;
    link_of_.resize(length_);
    for (Index t = 0; t < length_; t++) {
        const Step &step = tables_.skeleton().steps[t + 1];
        const double *scores = tables_[t + 1].scores;
        const auto [at, fresh] = known.try_emplace(scores, static_cast<std::int32_t>(forward_.size()));
        link_of_[t] = at->second;
        if (!fresh && t + 1 < length_) continue;
        link_of_[t] = static_cast<std::int32_t>(forward_.size());
        std::vector<double> there(states_ * width_, kNegativeInfinity), back(step.fresh * width_, kNegativeInfinity);
        for (Index s = 0; s < states_; s++)
            for (Index next = 0; next < step.fresh; next++)
                there[s * width_ + next] = back[next * width_ + s] =
                    scores[s * step.gone.score + next * step.fresh_score];
        forward_.push_back(std::move(there));
        backward_.push_back(std::move(back));
    }
    for (auto number : link_of_) {
        links_.push_back(forward_[number].data());
        back_links_.push_back(backward_[number].data());
    }
}

void ChainMessages::copy_rows() {
    const Index statistics = tables_.statistics();
    const Index row = length_ * width_;
    memory_ = Arena(row * (static_cast<Index>(kept_.size() + 1) * 8 + statistics * 4));
    late_ = static_cast<double *>(memory_.data());
    for (std::size_t i = 0; i < kept_.size(); i++) kept_[i].priced = late_ + row * static_cast<Index>(i + 1);
    counts_ = reinterpret_cast<std::int32_t *>(late_ + row * static_cast<Index>(kept_.size() + 1));
    std::fill_n(late_, row, 0.0);
    std::fill_n(counts_, row * statistics, 0);
    for (Index t = 0; t < length_; t++) {
        const Step &step = tables_.skeleton().steps[t + 1];
        const LocalStep &local = tables_[t + 1];
        variable_.push_back(step.variable);
        if (local.late) std::copy_n(local.late, step.fresh, late_ + t * width_);
        for (Index p = 0; local.counts && p < statistics; p++)
            for (Index s = 0; s < states_; s++)
                counts_[(t * statistics + p) * width_ + s] = local.counts[p * step.shift_size + s * step.gone.shift];
    }
}

void ChainMessages::sum_stretches() {
    shares_.assign((length_ + kStretch - 1) / kStretch, {});
    for (Index t = 0; t < length_; t++) {
        const LocalStep &local = tables_[t + 1];
        Share &share = shares_[t / kStretch];
        share.largest += local.largest;
        share.roundings += local.roundings;
        for (Index p = 0; p < kMostStatistics; p++) share.reach[p] += local.reach[p];
    }
}

Pass ChainMessages::pass(const Prices &prices, Meter &meter) {
    current_ = (current_ + 1) % kept_.size();
    Kept &kept = kept_[current_];
    kept.there = true;
    kept.prices = prices;
    kept.states.resize(length_);
    std::vector<double> message(width_, kNegativeInfinity);
    std::fill_n(message.begin(), states_, 0.0);
    const Index statistics = tables_.statistics();
    ChainStretch stretch{0,       states_, width_,        statistics,     nullptr,
                         nullptr, nullptr, prices.data(), message.data(), nullptr};
    Sum taken;
    double slips = 0, spread = 0;  // spread: how large values of the message are
    for (Index t = 0; t < length_; t += kStretch) {
        stretch.count = std::min(kStretch, length_ - t);
        stretch.links = links_.data() + t;
        stretch.late = late_ + t * width_;
        stretch.counts = counts_ + t * statistics * width_;
        stretch.priced = kept.priced + t * width_;
        kernels_.pass(stretch);
        const Share &share = shares_[t / kStretch];
        double largest = spread + share.largest;
        for (Index p = 0; p < statistics; p++) largest += std::abs(prices[p]) * share.reach[p];
        slips += (share.roundings + 4) * largest;
        double most = kNegativeInfinity, least = kInfinity;
        for (Index s = 0; s < states_; s++) {
            most = std::max(most, message[s]);
            if (message[s] != kNegativeInfinity) least = std::min(least, message[s]);
        }
        if (most == kNegativeInfinity) return {prices, kNegativeInfinity};
        for (Index s = 0; s < states_; s++) message[s] -= most;
        taken.add(most);
        spread = most - least;
        meter.spend(static_cast<double>(stretch.count * states_ * width_) / 4);
    }
    taken.add(tables_.constant());
    taken.add(paid(prices, tables_.constant_counts()));
    Pass found{prices, taken.total()};
    if (found.most != kNegativeInfinity) find_best(found);
    found.tolerance = kUnit * (slips + 16 * (std::abs(found.most) + tables_.range().reach(prices)));
    return found;
}

bool ChainMessages::recall(const Prices &prices) {
    for (std::size_t i = 0; i < kept_.size(); i++)
        if (kept_[i].there && kept_[i].prices == prices) {
            current_ = i;
            return true;
        }
    return false;
}

double ChainMessages::weigh(Index t, Index next) {
    const double *x = row(t), *link = backward_[link_of_[t]].data() + next * width_;
    double *to = weighed_.data(), best[2] = {kNegativeInfinity, kNegativeInfinity};
    for (Index s = 0; s < width_; s += 2)
        for (Index i = 0; i < 2; i++) {
            to[s + i] = x[s + i] + link[s + i];
            best[i] = best[i] > to[s + i] ? best[i] : to[s + i];
        }
    return std::max(best[0], best[1]);
}

Index ChainMessages::key_of(Index t, Index state) const {
    std::array<Index, kMostStatistics> offset{};
    for (Index p = 0; p < tables_.statistics(); p++)
        offset[p] = counts_[(t * tables_.statistics() + p) * width_ + state];
    return packing_.pack(offset);
}

void ChainMessages::find_best(Pass &pass) {
    std::int32_t *states = kept_[current_].states.data();
    kernels_.back({length_, width_, row(0), back_links_.data(), 0, states});
    pass.tally = tables_.constant_counts();
    const Index statistics = tables_.statistics();
    for (Index p = 0; p < statistics; p++) {
        Index sum = 0;
        for (Index t = 0; t < length_; t++) sum += counts_[(t * statistics + p) * width_ + states[t]];
        pass.tally[p] += sum;
    }
}

double ChainMessages::best(std::int64_t *labelling) const {
    const std::int32_t *states = kept_[current_].states.data();
    Sum score;
    score.add(tables_.constant());
    for (Index t = 0; t < length_; t++) {
        const Index next = t + 1 < length_ ? states[t + 1] : 0;
        score.add(back_links_[t][next * width_ + states[t]]);
        if (t > 0) score.add(late_[(t - 1) * width_ + states[t]]);
        labelling[variable_[t]] = states[t];
    }
    return score.total();
}

}  // namespace tallytree::bounds
