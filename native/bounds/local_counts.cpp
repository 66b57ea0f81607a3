// The counts of steps: those that lie in the same tables, or are equal, are kept once.
#include <algorithm>
#include <unordered_set>

#include "bounds/local_tables.h"
#include "plan/layout.h"

namespace tallytree::bounds {

namespace {

constexpr Index kLargest = Index{1} << 30;  // of a count
constexpr std::size_t kMostMet = 4096;      // kinds of counts that steps share, by where their tables lie

// Where the tables of a step's counts lie, in one number.
std::uint64_t place_of(std::span<const FactorRef> refs, std::span<const TableBlock<std::int64_t>> counts) {
    std::uint64_t sum = refs.size();
    for (const FactorRef ref : refs)
        sum = (sum ^ reinterpret_cast<std::uintptr_t>(counts[ref.block].row(ref.row)) >> 3) * 0x9E3779B97F4A7C15u;
    return sum;
}

}  // namespace

double LocalTables::bytes(const Skeleton &skeleton, std::span<const TableBlock<std::int64_t>> counts) {
    double sum = static_cast<double>(skeleton.bytes) + static_cast<double>(sizeof(LocalTables));
    std::unordered_set<std::uint64_t> met;
    for (std::size_t t = 0; t < skeleton.steps.size(); t++) {
        const Step &step = skeleton.steps[t];
        const auto loops = static_cast<double>(skeleton.kept[static_cast<Index>(t)].size());
        sum += static_cast<double>(sizeof(LocalStep)) + loops * sizeof(Loop) + 3 * sizeof(Index);
        sum += 4.0 * static_cast<double>(skeleton.statistics);  // levels
        if (counts.empty() || met.size() >= kMostMet ||
            met.insert(place_of(skeleton.shift_refs[static_cast<Index>(t)], counts)).second)
            sum += 4.0 * static_cast<double>(step.shift_size * skeleton.statistics);
        if (!lies_there(skeleton, static_cast<Index>(t))) sum += 8.0 * static_cast<double>(step.score_size);
    }
    return sum;
}

double LocalTables::most_bytes(const Skeleton &skeleton) {
    constexpr double kStep = sizeof(LocalStep) + 3 * sizeof(Index);
    double entries = 0;
    for (const Step &step : skeleton.steps)
        entries += static_cast<double>(2 * step.score_size + (step.shift_size + 1) * skeleton.statistics);
    return static_cast<double>(skeleton.bytes + sizeof(LocalTables) + skeleton.kept.data.size() * sizeof(Loop)) +
           kStep * static_cast<double>(skeleton.steps.size()) + sizeof(std::int32_t) * entries;
}

// The counts of a variable stand in the row of its kind.
void LocalTables::add_kind(LocalStep &local, const KindCounts &counts, Index variable) {
    const Index kind = counts.kinds[variable];
    local.counts = counts.counts + kind * statistics() * counts.width;
    local.apart = static_cast<std::int32_t>(counts.width);
    local.shared = static_cast<std::int32_t>(kind);
    for (Index p = 0; p < statistics(); p++) {
        const auto [low, high] = counts.ranges[p * shared_ + kind];
        facts_.range.low[p] += low;
        facts_.range.high[p] += high;
        local.reach[p] = static_cast<double>(std::max(std::abs(low), std::abs(high)));
    }
}

void LocalTables::add_counts(Index t, LocalStep &local) {
    const Step &step = skeleton_->steps[t];
    const auto refs = skeleton_->shift_refs[t];
    if (refs.empty() || repeat_counts(t, local)) return;
    local.apart = static_cast<std::int32_t>(step.shift_size);
    fits_ &= local.apart == step.shift_size;
    const auto place = static_cast<Index>(shifts_.size());
    const auto size = static_cast<std::size_t>(step.shift_size);
    shifts_.resize(shifts_.size() + static_cast<std::size_t>(step.shift_size * statistics()), 0);
    each_counted(*skeleton_, counts_, t, [&](Index p, auto each) {
        std::int32_t *out = shifts_.data() + place + p * step.shift_size;
        Index least = 0, most = 0;
        each([&](Index entry, std::int64_t count) {
            const Index sum = out[entry] + count;
            least = std::min(least, sum);
            most = std::max(most, sum);
            out[entry] = static_cast<std::int32_t>(sum);
        });
        fits_ &= std::max(-least, most) < kLargest;
    });
    for (Index p = 0; p < statistics() && fits_; p++)
        level_counts(t, p, {shifts_.data() + place + p * step.shift_size, size});
    shift_places_.emplace_back(t, place_counts(place, local));
}

// What a step counts at least is a constant: priced with every entry, it would only cost digits.
void LocalTables::level_counts(Index t, Index p, std::span<std::int32_t> counts) {
    std::int32_t least = counts[0], most = counts[0];
    for (const std::int32_t count : counts) {
        least = std::min(least, count);
        most = std::max(most, count);
    }
    if (least != 0) {
        if (levels_.empty()) levels_.assign(steps_.size() * static_cast<std::size_t>(statistics()), 0);
        for (std::int32_t &count : counts) count -= least;
        facts_.constant_counts[p] += levels_[t * statistics() + p] = least;
    }
    const Index more = facts_.range.low.more();
    double &reach = p < kMostStatistics ? steps_[t].reach[p] : further_[t * more + p - kMostStatistics];
    reach = static_cast<double>(most) - least;
}

// Takes the counts of an earlier step, if those of this one come from the same tables.
bool LocalTables::repeat_counts(Index t, LocalStep &local) {
    const std::uint64_t key = place_of(skeleton_->shift_refs[t], counts_);
    const auto at = met_.find(key);
    if (at == met_.end()) {
        if (met_.size() < kMostMet) met_.emplace(key, shift_places_.size());
        return false;
    }
    const auto [other, place] = shift_places_[at->second];
    if (!same_counts(t, other)) return false;
    const LocalStep &known = steps_[other];
    local.apart = known.apart;
    local.shared = known.shared;
    local.reach = known.reach;
    const Index more = facts_.range.low.more();
    std::copy_n(further_.begin() + other * more, more, further_.begin() + t * more);
    for (Index p = 0; p < statistics() && !levels_.empty(); p++)
        facts_.constant_counts[p] += levels_[t * statistics() + p] = levels_[other * statistics() + p];
    shift_places_.emplace_back(t, place);
    return true;
}

bool LocalTables::same_counts(Index t, Index other) const {
    const auto refs = skeleton_->shift_refs[t], known = skeleton_->shift_refs[other];
    if (skeleton_->steps[t].shift_size != skeleton_->steps[other].shift_size || refs.size() != known.size())
        return false;
    for (std::size_t i = 0; i < refs.size(); i++) {
        const auto &block = counts_[refs[i].block], &before = counts_[known[i].block];
        const auto loops = skeleton_->shift_loops[skeleton_->shift_refs.begin[t] + static_cast<Index>(i)];
        const auto walked = skeleton_->shift_loops[skeleton_->shift_refs.begin[other] + static_cast<Index>(i)];
        if (block.row(refs[i].row) != before.row(known[i].row) || loops.size() != walked.size() ||
            skeleton_->statistic_of[refs[i].block] != skeleton_->statistic_of[known[i].block])
            return false;
        for (std::size_t k = 0; k < loops.size(); k++)
            if (loops[k].count != walked[k].count || loops[k].stride != walked[k].stride) return false;
    }
    return true;
}

// Where the counts that were added last are to be found: steps with equal counts share them, as a rule.
Index LocalTables::place_counts(Index place, LocalStep &local) {
    constexpr std::size_t kMost = 1024;
    const std::span<const std::int32_t> row(shifts_.begin() + place, shifts_.end());
    const auto size = static_cast<Index>(row.size());
    const std::uint64_t key = mixed(row);
    auto at = shift_rows_.find(key);
    const bool fresh = at == shift_rows_.end() && shift_rows_.size() < kMost;
    if (fresh) at = shift_rows_.emplace(key, SharedRow{place, size, static_cast<std::int32_t>(shared_++)}).first;
    if (at == shift_rows_.end() || at->second.size != size ||
        !std::equal(row.begin(), row.end(), shifts_.begin() + at->second.place)) {
        unshared_++;
        return place;
    }
    local.shared = at->second.number;
    if (!fresh) shifts_.resize(place);
    return at->second.place;
}

}  // namespace tallytree::bounds
