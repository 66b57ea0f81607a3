#include "plan/memory_estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "plan/placement.h"
#include "plan/shift_classes.h"
#include "plan/shift_kinds.h"

namespace tallytree {
namespace {

constexpr Index kOfStep = 1000;     // about how many operations a step takes
constexpr double kApart = 1024;     // places for each sum where sums are far apart
constexpr double kFewPairs = 1024;  // that a layout builder goes through whatever its limit

// What is known of a table, until it is read.
struct Below {
    std::vector<Index> low, high;         // of its sums, per axis
    ShiftKinds::Steps prefixes, tallies;  // that lead to it
    double stretches = 1, cells = 1;
    double least = 1;                    // stretches
    std::vector<double> mean, variance;  // of its sums, per axis, if each shift is as likely as another
};

// Which part of such sums is expected between two ends.
double part_between(double mean, double variance, Index low, Index high) {
    if (variance <= 0) return 1;
    const double scale = std::sqrt(2 * variance);
    const auto below = [&](Index end) { return std::erfc((mean - static_cast<double>(end)) / scale) / 2; };
    return std::max(below(high) - below(low), 0.0);
}

class Estimate {
  public:
    Estimate(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request, const TallyRanges &ranges,
             const Poll &poll, bool rows)
        : skeleton_(*skeleton), meter_(poll), sizes_(skeleton->steps.size()) {
        l_.skeleton = skeleton;
        l_.lanes = request.lanes;
        l_.statistics = static_cast<Index>(request.caps.size());
        l_.tables.resize(skeleton_.steps.size());
        l_.steps.resize(skeleton_.steps.size());
        lists_ = static_cast<double>(bytes_of(l_.tables) + bytes_of(l_.steps));
        ends_.resize(request.caps.size());
        ranges.choose_axes(l_, rows);
        windows_.emplace(request, ranges, l_);
        classes_.emplace(request, ranges, l_);
    }

    MemoryEstimate found() {
        for (std::int32_t t = 0; t < std::ssize(skeleton_.steps); t++) add(t);
        const double cells = below_[std::ssize(skeleton_.steps) - 1].cells;
        const double answer = 8 * cells * static_cast<double>(3 + l_.statistics) + 8.0 * skeleton_.cardinalities.size();
        const double running = lists_ + static_cast<double>(l_.bytes(1)) * (arena() + scratch_) + answer;
        found_.bytes = static_cast<double>(skeleton_.bytes) + std::max(running, 2 * lists_ + listing_);
        return found_;
    }

    // What is certain; no estimate. Found from the first steps where these are enough, or already many.
    double least(double enough, double most_work) {
        certain_ = true;
        for (std::int32_t t = 0; t < std::ssize(skeleton_.steps); t++) {
            add(t);
            if (std::max(least_, least_lists_) > enough || work_ > most_work) break;
        }
        return static_cast<double>(skeleton_.bytes) + std::max(least_, least_lists_);
    }

    FarApart far_apart() {
        for (std::int32_t t = 0; t < std::ssize(skeleton_.steps); t++) {
            add(t, false);
            const auto [choices, places] = choices_and_places(t, below_[t]);
            far_.stretches.push_back(choices <= places / kApart ? choices : 0);
            const auto axes = static_cast<double>(l_.prefix_size), classes = static_cast<double>(l_.steps[t].classes);
            const double stretches = std::min(choices, places / kApart);
            listing_ = std::max(listing_, 2 * lists_ + stretches * (24 * (axes + 4) + 16 * classes));
            lists_ += stretches * (48 + 8 * axes + 8 * classes);
        }
        far_.bytes = std::max(listing_, lists_);
        return std::move(far_);
    }

    const std::vector<double> &least_tallies() const { return least_tallies_; }

  private:
    void add(std::int32_t t, bool noted = true) {
        const Step &step = skeleton_.steps[t];
        meter_.spend(static_cast<double>(kOfStep + step.shift_size));
        Below table;
        table.low.assign(l_.statistics, 0);
        table.high.assign(l_.statistics, 0);
        table.mean.assign(l_.prefix_size, 0);
        table.variance.assign(l_.prefix_size, 0);
        double inputs = 1, least = 1, read = 0;  // pairs of stretches, those that are certain, and numbers
        for (auto input : {step.a, step.b}) {
            if (input < 0) continue;
            const Below from = std::move(below_.extract(input).mapped());
            join(table, from);
            inputs *= from.stretches;
            least *= from.least;
            read += from.cells + 4 * static_cast<double>(l_.lanes) * from.stretches;
            if (step.verb == Verb::Eliminate) shift(t, table, from.stretches);
        }
        if (step.verb != Verb::Unit) clip(t, table);
        count(table);
        if (noted) note(t, table, inputs, read);
        if (certain_) note_least(t, table, least);
        below_[t] = std::move(table);
    }

    static void join(Below &to, const Below &from) {
        for (std::size_t i = 0; i < to.low.size(); i++) {
            to.low[i] += from.low[i];
            to.high[i] += from.high[i];
        }
        for (std::size_t i = 0; i < to.mean.size(); i++) {
            to.mean[i] += from.mean[i];
            to.variance[i] += from.variance[i];
        }
        ShiftKinds::join(to.prefixes, from.prefixes);
        ShiftKinds::join(to.tallies, from.tallies);
    }

    // Adds the shifts of an elimination. Whole vectors of its input are read at each of them, beyond its stretches too.
    void shift(std::int32_t t, Below &table, double stretches) {
        for (auto *pool : {&l_.class_prefix, &l_.class_shift}) pool->clear();
        l_.class_of.clear();
        classes_->make(t);
        const Index classes = l_.steps[t].classes, axes = l_.prefix_size;
        std::vector<std::vector<Index>> prefixes(classes), shifts(classes);
        for (Index d = 0; d < classes; d++) {
            const auto from = l_.class_prefix.begin() + d * axes;
            shifts[d].assign(from, from + axes);
            prefixes[d] = shifts[d];
            if (l_.rows) shifts[d].push_back(l_.class_shift[d]);
        }
        for (Index i = 0; i < l_.statistics; i++) {
            const auto [least, most] =
                std::minmax_element(shifts.begin(), shifts.end(), [i](auto &x, auto &y) { return x[i] < y[i]; });
            table.low[i] += (*least)[i];
            table.high[i] += (*most)[i];
            if (l_.rows && i == axes)
                sizes_[skeleton_.steps[t].a] +=
                    skeleton_.states[skeleton_.steps[t].a] * stretches * static_cast<double>((*most)[i] - (*least)[i]);
        }
        spread(table, prefixes);
        prefix_kinds_.add(table.prefixes, std::move(prefixes));
        tally_kinds_.add(table.tallies, std::move(shifts));
    }

    static void spread(Below &table, const std::vector<std::vector<Index>> &shifts) {
        const auto count = static_cast<double>(shifts.size());
        for (std::size_t i = 0; i < table.mean.size(); i++) {
            double sum = 0, squares = 0;
            for (const auto &shift : shifts) sum += static_cast<double>(shift[i]);
            for (const auto &shift : shifts) squares += std::pow(static_cast<double>(shift[i]) - sum / count, 2);
            table.mean[i] += sum / count;
            table.variance[i] += squares / count;
        }
    }

    // The choices in the window, and the places that there are for their sums.
    std::pair<double, double> choices_and_places(std::int32_t t, const Below &table) {
        const Bounds &window = windows_->of(t);
        double choices = prefix_kinds_.sums(table.prefixes), places = 1;
        for (Index i = 0; i < l_.prefix_size; i++) {
            const Index high = std::min(window.high[i], l_.caps[i]);
            choices *= part_between(table.mean[i], table.variance[i], window.low[i], high);
            places *= static_cast<double>(std::max<Index>(table.high[i] - table.low[i] + 1, 0));
        }
        return {choices, places};
    }

    void clip(std::int32_t t, Below &table) {
        const Bounds &window = windows_->of(t);
        for (Index i = 0; i < l_.statistics; i++) {
            table.low[i] = std::max(table.low[i], window.low[i]);
            table.high[i] = std::min({table.high[i], window.high[i], l_.caps[i]});
        }
    }

    void count(Below &table) const {
        double prefixes = 1, row = 1;
        for (Index i = 0; i < l_.statistics; i++) {
            const auto width = static_cast<double>(std::max<Index>(table.high[i] - table.low[i] + 1, 0));
            (i < l_.prefix_size ? prefixes : row) *= width;
        }
        table.stretches = std::min({prefixes, prefix_kinds_.sums(table.prefixes), kBeyondMemory});
        table.cells = std::min(table.stretches * row, kBeyondMemory);
        if (!classes_->has_gaps()) table.cells = std::min(table.cells, tally_kinds_.sums(table.tallies));
    }

    // As a layout builder counts lists, and a placement tables.
    void note(std::int32_t t, const Below &table, double inputs, double read) {
        const Step &step = skeleton_.steps[t];
        const auto lanes = static_cast<double>(l_.lanes), axes = static_cast<double>(l_.prefix_size);
        const double states = skeleton_.states[t];
        sizes_[t] = states * (l_.rows ? table.cells + lanes * table.stretches : table.cells) + 2 * lanes;
        if (const double size = states * table.cells; size > found_.states * found_.tallies || t == 0)
            found_.largest = t, found_.states = states, found_.tallies = table.cells;
        if (step.verb == Verb::Unit) return;
        const auto classes = static_cast<double>(l_.steps[t].classes);
        const double ways = std::max(classes, 1.0), pairs = inputs * (step.verb == Verb::Join ? 1 : classes);
        lists_ += 8 * (pairs + table.stretches * ways + 1) + table.stretches * (32 + 8 * axes) +
                  4.0 * static_cast<double>(step.shift_size) + 8 * classes * (axes + 1);
        listing_ = std::max({listing_, 20 * pairs, table.stretches * (24 * (axes + 4) + 16 * classes)});
        const double local = 3.0 * static_cast<double>(step.score_size) + static_cast<double>(step.fresh) + 2 * pairs;
        const double gone = 4 * static_cast<double>(step.gone.count) * inputs;
        scratch_ = std::max(scratch_, step.verb == Verb::Join ? read + 4 * states : local + gone);
    }

    // As a layout builder refuses: a table, its lists, or the pairs that a step goes through while the lists grow.
    void note_least(std::int32_t t, Below &table, double inputs) {
        const bool unit = skeleton_.steps[t].verb == Verb::Unit;
        const double cells = unit ? 1 : least_cells(t, table);
        least_tallies_.insert(least_tallies_.end(), {table.least, cells});
        if (unit) return;
        const auto axes = static_cast<double>(l_.prefix_size);
        const double classes = std::max(static_cast<double>(l_.steps[t].classes), 1.0), pairs = inputs * classes;
        least_ = std::max(least_, skeleton_.states[t] * cells * static_cast<double>(l_.bytes(1)));
        if (pairs > kFewPairs) least_ = std::max(least_, 2 * least_lists_ + 20 * pairs);
        least_lists_ += table.least * (40 + 8 * axes + 8 * classes);
    }

    double least_cells(std::int32_t t, Below &table) {
        const Bounds &window = windows_->of(t);
        for (Index i = 0; i < l_.statistics; i++) ends_[i] = {window.low[i], std::min(window.high[i], l_.caps[i])};
        work_ += static_cast<double>(l_.statistics * std::min<Index>(t, kMostCounted)) + kOfStep;
        const double cells = tally_kinds_.least_sums(table.tallies, ends_);
        table.least = l_.rows ? tally_kinds_.least_sums(table.tallies, ends_, l_.prefix_size) : cells;
        return cells;
    }

    // The tables in as few numbers as segments allow.
    double arena() {
        double total = 0;
        for (const double size : sizes_) total += size;
        if (total >= kBeyondMemory) return total;
        for (std::size_t t = 0; t < sizes_.size(); t++) l_.tables[t].size = static_cast<Index>(sizes_[t]);
        double least = total;
        for (Index segments = 1; segments < 2 * std::ssize(sizes_); segments *= 2) {
            cut_tables(l_, segments);
            meter_.spend(static_cast<double>(kOfStep * std::ssize(sizes_)));
            least = std::min(least, static_cast<double>(l_.arena));
        }
        return least;
    }

    const Skeleton &skeleton_;
    Meter meter_;
    Layout l_;
    std::optional<Windows> windows_;
    std::optional<ShiftClasses> classes_;
    ShiftKinds prefix_kinds_, tally_kinds_;
    std::unordered_map<std::int32_t, Below> below_;  // of tables that are not read yet
    std::vector<double> sizes_;                      // numbers of each table
    double lists_ = 0, listing_ = 0, scratch_ = 0;
    ShiftKinds::Ends ends_;  // of the tallies of a table
    bool certain_ = false;   // whether what a layout takes at least is wanted
    double least_ = 0, least_lists_ = 0, work_ = 0;
    std::vector<double> least_tallies_;  // stretches and tallies of each table
    MemoryEstimate found_;
    FarApart far_;
};

}  // namespace

LeastMemory least_memory(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                         const TallyRanges &ranges, const Poll &poll) {
    constexpr double most_work = 2e7;  // a hundredth of a second
    return {Estimate(skeleton, request, ranges, poll, true).least(request.memory_limit, most_work),
            Estimate(skeleton, request, ranges, poll, false).least(request.memory_limit, most_work)};
}

FarApart far_apart(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                   const TallyRanges &ranges, const Poll &poll, bool rows) {
    return Estimate(skeleton, request, ranges, poll, rows).far_apart();
}

std::vector<double> least_tallies(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                                  const Poll &poll) {
    const TallyRanges ranges(*skeleton, request);
    Estimate estimate(skeleton, request, ranges, poll, request.mode == Mode::Rows);
    estimate.least(kBeyondMemory, kBeyondMemory);
    return estimate.least_tallies();
}

MemoryEstimate estimate_memory(const std::shared_ptr<const Skeleton> &skeleton, const LayoutRequest &request,
                               const Poll &poll) {
    const std::size_t sums = request.window.open ? 0 : 2 * request.caps.size();  // that windows are found from
    const auto each = static_cast<double>(sizeof(TableLayout) + sizeof(StepLayout) + (4 + sums) * sizeof(Index));
    constexpr double always = 1 << 20;
    const double room = std::max(request.memory_limit - static_cast<double>(skeleton->bytes), always);
    if (each * static_cast<double>(skeleton->steps.size()) > room) return {};
    const TallyRanges ranges(*skeleton, request);
    const bool rows = request.mode != Mode::Cells && !request.caps.empty();
    const bool cells = request.mode != Mode::Rows;
    if (!rows || (cells && ranges.all_short())) return Estimate(skeleton, request, ranges, poll, false).found();
    const MemoryEstimate in_rows = Estimate(skeleton, request, ranges, poll, true).found();
    if (!cells) return in_rows;
    const MemoryEstimate in_cells = Estimate(skeleton, request, ranges, poll, false).found();
    return in_cells.bytes < in_rows.bytes ? in_cells : in_rows;
}

}  // namespace tallytree
