// Plain passes at prices, and the tallies of all labellings that are nearly as good as the best one there.
//
// At prices λ a labelling y is worth F(y) + λ·G(y), and a plain max-plus pass finds the maximum, A. What a choice loses
// against the best choice at the same place is its *regret*: the difference of two numbers that the pass compared, so
// exactly 0 on the best labelling. The regrets of y add up to A - F(y) - λ·G(y), up to `Pass::tolerance`. The *band* of
// a budget holds, for every tally, the least regret of a labelling with it, if that is within the budget.
#pragma once

#include <limits>
#include <optional>

#include "bounds/tally.h"

namespace tallytree::bounds {

struct Pass {
    Prices prices{};
    double most = 0;       // A
    Tally tally{};         // of the best labelling
    double tolerance = 0;  // the largest error of a sum of regrets
};

// A tally, as an offset from that of the best labelling, and the least regret with it.
struct Cell {
    Index key;
    double regret;
};

class Messages {
  public:
    virtual ~Messages() = default;

    // Its messages are kept until the next pass.
    virtual Pass pass(const Prices &prices, Meter &meter) = 0;
    // What that takes, in the units of work of the subject.
    virtual double pass_work() const = 0;
    // Returns to an earlier pass whose messages have been kept.
    virtual bool recall(const Prices &) { return false; }
    // Keeps the messages of a pass for longer than others.
    virtual void hold(const Prices &) {}
    // The best labelling of the last pass, and its score as if added up in twice the precision.
    virtual double best(std::int64_t *labelling) const = 0;
    // Fills the band of a budget at the last pass; false where that takes more work or memory than it may.
    virtual bool band(double budget, double most_work, Meter &meter) = 0;
    // What the band holds in the end: one cell for each tally.
    virtual std::span<const Cell> tallies() const = 0;
    // A labelling with the tally and the regret of one of them; returns what that took, in units of work.
    virtual double decode(Index number, std::int64_t *labelling) const = 0;
    // What the last band took, in the units of work of the subject.
    double work() const { return work_; }
    // How many cells it has.
    virtual Index cells() const = 0;
    // The bytes that a band may take.
    void leave(double room) { room_ = room; }
    // Whether the last band would have taken more.
    bool full() const { return full_; }

  protected:
    // A band begins that may take so much work.
    void begin_band(double most_work) {
        work_ = 0;
        most_work_ = most_work;
    }
    // Counts work that is to be done; false, and not counted, where it is more than the band may take.
    bool may(double work) {
        if (!(work_ + work <= most_work_)) return false;
        work_ += work;
        return true;
    }
    // Notes how many bytes a band has; false where that is too much. Lists are copied as they grow.
    bool has_room(double bytes) {
        constexpr double kCopied = 2;
        full_ = kCopied * bytes > room_;
        return !full_;
    }

  private:
    double work_ = 0, most_work_ = 0;
    double room_ = std::numeric_limits<double>::infinity();
    bool full_ = false;
};

// What a search over a list of tallies needs to know about a model besides its passes.
struct Measures {
    Box range;             // no tally lies outside
    double variables = 0;  // how many
    double magnitude = 0;  // the largest sizes of all scores, added up
    double sums = 0;       // roughly how many numbers a regret is added up from, at most
    double load = 0;       // what it takes to load the model, in units of work, about a nanosecond each;
    double pass = 0;       // what a pass takes,
    double few = 0;        // a band that takes about as long as a pass,
    double second = 0;     // and finding the second best labelling of a pass
};

// Messages whose bands notice ties, for models of which many are solved at once.
class TiedMessages : public Messages {
  public:
    virtual Measures measures() const = 0;
    // The second best labelling of the last pass: how much less than the best one it is worth there, and its tally.
    // Nothing where there is no other, or it is not known.
    struct Second {
        double regret;
        Few<Index> tally;
    };
    virtual std::optional<Second> second(const Pass &) { return {}; }
    // Two labellings with one tally are as good as each other if they are no further apart than this.
    virtual void set_near(double near) = 0;
    // Whether there is another labelling with the tally of one of the band, as good as it.
    virtual bool tied(Index number) const = 0;
};

// Cells of one list, one for each tally: of those that are alike the one of least regret.
template <class Cell>
class Merger {
  public:
    explicit Merger(std::vector<Cell> &cells) : cells_(cells) {}

    double near = 0;  // cells that are alike are tied where their regrets are no further apart

    // A new list begins at the end of the cells, of about so many.
    void begin(Index expected) {
        first_ = cells_.size();
        Index size = 16;
        while (size < 2 * expected && size < kExpected) size *= 2;
        if (size > static_cast<Index>(slots_.size())) slots_.assign(size, {});
        mask_ = size - 1;
        next_list();
    }
    void add(const Cell &cell) {
        if (2 * static_cast<Index>(cells_.size() - first_) > mask_) grow();
        Slot &slot = find(cell.key);
        if (slot.list != list_) {
            slot = {cell.key, list_, static_cast<std::uint32_t>(cells_.size() - first_)};
            cells_.push_back(cell);
            return;
        }
        Cell &kept = cells_[first_ + slot.cell];
        const double less = kept.regret - cell.regret;
        if constexpr (requires { kept.tied; }) {
            const bool tied = std::abs(less) <= near || (less > 0 ? cell.tied : kept.tied);
            if (less > 0) kept = cell;
            kept.tied = tied;
        } else if (less > 0) {
            kept = cell;
        }
    }

    double bytes() const { return static_cast<double>(slots_.size() * sizeof(Slot)); }

  private:
    static constexpr Index kExpected = 4096;
    struct Slot {
        Index key = 0;
        std::uint32_t list = 0, cell = 0;
    };
    Slot &find(Index key) {
        const auto mixed = static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u;
        Index at = static_cast<Index>(mixed >> 32) & mask_;
        while (slots_[at].list == list_ && slots_[at].key != key) at = (at + 1) & mask_;
        return slots_[at];
    }
    void next_list() {
        if (++list_ != 0) return;
        slots_.assign(slots_.size(), {});
        list_ = 1;
    }
    void grow() {
        mask_ = 2 * mask_ + 1;
        if (mask_ >= static_cast<Index>(slots_.size())) slots_.resize(mask_ + 1);
        next_list();
        for (std::size_t i = first_; i < cells_.size(); i++)
            find(cells_[i].key) = {cells_[i].key, list_, static_cast<std::uint32_t>(i - first_)};
    }

    std::vector<Cell> &cells_;
    std::vector<Slot> slots_;
    Index mask_ = 0;
    std::size_t first_ = 0;
    std::uint32_t list_ = 0;  // slots of other lists are free
};

}  // namespace tallytree::bounds
