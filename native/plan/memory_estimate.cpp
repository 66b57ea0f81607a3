#include "plan/memory_estimate.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "plan/placement.h"
#include "plan/shift_classes.h"

namespace tallytree {
namespace {

constexpr std::size_t kMostKinds = 16;
constexpr double kBeyondMemory = 1e15;  // numbers
constexpr Index kOfStep = 1000;         // about how many operations a step takes

// In how many ways n steps can choose among d shifts, whatever their order: (n + d - 1 over d - 1).
double multisets(Index n, Index d) {
    const Index few = std::min(n, d - 1);
    double found = 1;
    for (Index i = 1; i <= few && found < kBeyondMemory; i++)
        found *= static_cast<double>(n + d - 1 - few + i) / static_cast<double>(i);
    return found;
}

// How many different sums there are at most of the shifts of some steps. Those with the same distinct shifts are of one
// kind, and their order does not matter.
class ShiftKinds {
  public:
    struct Steps {
        std::vector<Index> of_kind;  // how many
        double others = 1;           // ways to choose in steps of further kinds
    };

    void add(Steps &to, std::vector<std::vector<Index>> shifts) {
        std::sort(shifts.begin(), shifts.end());
        shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
        if (shifts.size() == 1) return;
        for (std::size_t i = shifts.size(); i-- > 0;)  // from the first one on
            for (std::size_t k = 0; k < shifts[i].size(); k++) shifts[i][k] -= shifts[0][k];
        const auto ways = static_cast<double>(shifts.size());
        auto kind = std::find(kinds_.begin(), kinds_.end(), shifts);
        if (kind == kinds_.end() && kinds_.size() < kMostKinds) kind = kinds_.insert(kinds_.end(), std::move(shifts));
        if (kind == kinds_.end()) {
            to.others = std::min(to.others * ways, kBeyondMemory);
            return;
        }
        to.of_kind.resize(kMostKinds);
        to.of_kind[kind - kinds_.begin()]++;
    }

    static void join(Steps &to, const Steps &from) {
        to.others = std::min(to.others * from.others, kBeyondMemory);
        if (to.of_kind.empty()) to.of_kind.resize(from.of_kind.size());
        for (std::size_t k = 0; k < from.of_kind.size(); k++) to.of_kind[k] += from.of_kind[k];
    }

    double sums(const Steps &steps) const {
        double found = steps.others;
        for (std::size_t k = 0; k < std::min(steps.of_kind.size(), kinds_.size()); k++)
            found = std::min(found * multisets(steps.of_kind[k], std::ssize(kinds_[k])), kBeyondMemory);
        return found;
    }

  private:
    std::vector<std::vector<std::vector<Index>>> kinds_;
};

// What is known of a table, until it is read.
struct Below {
    std::vector<Index> low, high;         // of its sums, per axis
    ShiftKinds::Steps prefixes, tallies;  // that lead to it
    double stretches = 1, cells = 1;
};

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

  private:
    void add(std::int32_t t) {
        const Step &step = skeleton_.steps[t];
        meter_.spend(static_cast<double>(kOfStep + step.shift_size));
        Below table;
        table.low.assign(l_.statistics, 0);
        table.high.assign(l_.statistics, 0);
        double inputs = 1, read = 0;  // pairs of stretches, and numbers
        for (auto input : {step.a, step.b}) {
            if (input < 0) continue;
            const Below from = std::move(below_.extract(input).mapped());
            join(table, from);
            inputs *= from.stretches;
            read += from.cells + 4 * static_cast<double>(l_.lanes) * from.stretches;
            if (step.verb == Verb::Eliminate) shift(t, table, from.stretches);
        }
        if (step.verb != Verb::Unit) clip(t, table);
        count(table);
        note(t, table, inputs, read);
        below_[t] = std::move(table);
    }

    static void join(Below &to, const Below &from) {
        for (std::size_t i = 0; i < to.low.size(); i++) {
            to.low[i] += from.low[i];
            to.high[i] += from.high[i];
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
        prefix_kinds_.add(table.prefixes, std::move(prefixes));
        tally_kinds_.add(table.tallies, std::move(shifts));
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
    MemoryEstimate found_;
};

}  // namespace

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
