#include "plan/placement.h"

#include <algorithm>
#include <string>

#include "plan/sums.h"

namespace tallytree {

void throw_budget(std::int32_t step, double bytes) {
    throw BudgetExceeded("the plan does not fit its memory limit", step, bytes);
}

namespace {

constexpr double kBeyondMemory = 1e17;  // numbers

class Placement {
  public:
    explicit Placement(Layout &layout) : l_(layout), skeleton_(*layout.skeleton) {}

    void place_stretches() {
        l_.start.assign(l_.low.size(), 0);
        for (std::size_t t = 0; t < l_.tables.size(); t++) {
            if (l_.rows) place_rows(static_cast<std::int32_t>(t), skeleton_.consumer[t]);
            else place_cells(static_cast<std::int32_t>(t));
        }
    }

    void place_cells(std::int32_t t) {
        auto &table = l_.tables[t];
        for (Index r = 0; r < table.stretches; r++) l_.start[table.stretches_begin + r] = r * table.states;
        table.stride = 1;
        table.size = padded(table.stretches * table.states) + l_.lanes;
    }

    // An elimination reads whole vectors of its input at every shift: each stretch is surrounded by as many neutral
    // cells as those reads reach. Neighbours share them, also the last stretch of a row and the first of the next, so
    // that a row begins `lead` cells before its first stretch and the table ends `lead` cells after its last row.
    void place_rows(std::int32_t t, std::int32_t consumer) {
        auto &table = l_.tables[t];
        front_.assign(table.stretches, 0);
        back_.assign(table.stretches, 0);
        if (consumer >= 0 && skeleton_.steps[consumer].verb == Verb::Eliminate) reach(t, consumer);
        if (table.stretches == 0) return;
        const Index lead = padded(front_[0]);
        Index end = 0;
        for (Index r = 0; r < table.stretches; r++) {
            const Index stretch = table.stretches_begin + r;
            l_.start[stretch] = r == 0 ? lead : padded(end + std::max(back_[r - 1], front_[r]));
            end = l_.start[stretch] + l_.length[stretch];
        }
        table.stride = padded(end + std::max(back_.back(), front_[0])) - lead;
        table.size = table.stride * table.states + lead;
    }

    void reach(std::int32_t t, std::int32_t consumer) {
        const auto &table = l_.tables[t];
        const StepView s = l_.step(consumer);
        const Index out = l_.tables[consumer].stretches_begin;
        const Index *low = l_.low.data() + table.stretches_begin, *length = l_.length.data() + table.stretches_begin;
        const Index *last = s.pairs.begin + s.classes;
        Index *front = front_.data(), *back = back_.data(), p = 0;
        for (Index to = out; to < out + l_.tables[consumer].stretches; to++, last += s.classes) {
            const Index bottom = l_.low[to], end = padded(std::max(l_.length[to], l_.natural[to]));
            for (const Index until = *last; p < until; p++) {
                const Index r = s.pairs.a[p],
                            offset = landing(low[r] + s.class_shift[s.pairs.b[p]], bottom, l_.length[to]);
                front[r] = std::max(front[r], offset);
                back[r] = std::max(back[r], end - offset - length[r]);
            }
        }
    }

    // All tables side by side where they fit; otherwise the program is cut into segments: tables that cross
    // a cut are kept (checkpoints), the others of a segment share memory with those of other segments and
    // are made again when decoding comes to them.
    void place_tables(double memory_limit) {
        for (std::size_t t = 0; t < skeleton_.steps.size(); t++)
            l_.scratch = std::max(l_.scratch, scratch(static_cast<std::int32_t>(t)));
        const double rest = static_cast<double>(l_.plan_bytes + l_.answer_bytes()) + bytes(l_.scratch);
        Index least = kLarge;
        for (Index segments = 1;; segments *= 2) {
            cut(segments);
            least = std::min(least, l_.arena);
            if (bytes(l_.arena) + rest <= memory_limit) break;
            if (segments >= static_cast<Index>(l_.tables.size()))
                throw_budget(l_.costliest < 0 ? 0 : l_.costliest,
                             bytes(least) + rest + static_cast<double>(skeleton_.bytes));
        }
    }

    // Numbers that a step needs besides its tables: the sum of its factors, and what kernels read in the place of
    // factors and tables; in rows, where each pair of stretches lies, operands between guards, and what a cap folds.
    Index scratch(std::int32_t t) const {
        const Step &step = skeleton_.steps[t];
        const auto &table = l_.tables[t];
        if (step.verb == Verb::Unit) return 0;
        const Index pointers = kLanes == l_.lanes ? 1 : 2;  // one of 64 bits takes so many numbers
        Index folded = 0;
        for (Index r = table.stretches_begin; l_.rows && r < table.stretches_begin + table.stretches; r++)
            if (l_.natural[r] > l_.length[r]) folded = std::max(folded, padded(l_.natural[r]));
        if (step.verb == Verb::Join) {
            const auto &a = l_.tables[step.a], &b = l_.tables[step.b];
            if (!l_.rows) return 2 * pointers * table.states;
            return a.cells + b.cells + 4 * l_.lanes * (a.stretches + b.stretches) + folded;
        }
        Index numbers = step.score_size * (l_.lanes == kLanes ? 1 : 3);  // floats are rounded from doubles
        numbers += l_.rows ? pointers * l_.step(t).pairs.count() : step.score_size + step.fresh;
        const double rows = step.shift_has_fresh ? 1 : static_cast<double>(step.fresh);
        numbers += static_cast<Index>(std::min(static_cast<double>(folded) * rows, kBeyondMemory));
        return numbers + 2 * pointers * step.gone.count * l_.tables[step.a].stretches;
    }

    void cut(Index segments, Index side = kNoLimit) {
        const auto segment_of = begin_segments(segments, side);
        Index kept = 0;
        std::vector<Index> used(l_.segment_begin.size(), 0);
        for (std::size_t t = 0; t < l_.tables.size(); t++) {
            auto &table = l_.tables[t];
            const auto consumer = skeleton_.consumer[t];
            table.checkpoint = consumer < 0 || segment_of[consumer] != segment_of[t];
            Index &cursor = table.checkpoint ? kept : used[segment_of[t]];
            table.base = cursor;
            cursor += padded(table.size);
        }
        l_.arena = kept;
        for (std::size_t i = 0; i < l_.side_begin.size(); i++) {
            const Index first = l_.side_begin[i];
            const Index last = i + 1 < l_.side_begin.size() ? l_.side_begin[i + 1] : std::ssize(used) - 1;
            for (Index t = l_.segment_begin[first]; t < l_.segment_begin[last]; t++)
                if (!l_.tables[t].checkpoint) l_.tables[t].base += l_.arena;
            l_.arena += *std::max_element(used.begin() + first, used.begin() + last);
        }
    }

  private:
    // Segments of about equal size, one of which begins at the other side; returns those of the steps.
    std::vector<Index> begin_segments(Index segments, Index side) {
        double total = 0, sum = 0;
        for (const auto &table : l_.tables) total += static_cast<double>(table.size);
        l_.segment_begin.assign(1, 0);
        l_.side_begin.assign(1, 0);
        std::vector<Index> segment_of;
        for (Index t = 0, cuts = 1; t < std::ssize(l_.tables); t++) {
            const bool full =
                cuts < segments && sum >= total * static_cast<double>(cuts) / static_cast<double>(segments);
            if (full) cuts++;
            if (full || t == side) l_.segment_begin.push_back(t);
            segment_of.push_back(std::ssize(l_.segment_begin) - 1);
            if (t == side) l_.side_begin.push_back(segment_of.back());
            sum += static_cast<double>(l_.tables[t].size);
        }
        l_.segment_begin.push_back(std::ssize(l_.tables));
        return segment_of;
    }

    Index padded(Index n) const { return round_up(n, l_.lanes); }
    double bytes(Index numbers) const { return static_cast<double>(numbers) * static_cast<double>(l_.bytes(1)); }

    Layout &l_;
    const Skeleton &skeleton_;
    std::vector<Index> front_, back_;  // cells around each stretch of the table at hand
};

}  // namespace

void place_stretches(Layout &layout) { Placement(layout).place_stretches(); }
void place_rows(Layout &layout, std::int32_t t, std::int32_t consumer) { Placement(layout).place_rows(t, consumer); }
void cut_tables(Layout &layout, Index segments, Index side) { Placement(layout).cut(segments, side); }
void place_tables(Layout &layout, double memory_limit) { Placement(layout).place_tables(memory_limit); }

}  // namespace tallytree
