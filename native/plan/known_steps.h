// Steps known from earlier layouts in the same memory.
//
// The sentences of a batch have different truths, but their tables depend on little more than the number of tallies so
// far. So few steps are new: the same stretches, moved by the same shifts or joined with the same
// stretches, add up to known stretches, from known pairs, at the same positions.
#pragma once

#include "plan/layout.h"

namespace tallytree {

// Numbers the distinct sequences that are offered to it.
class SequenceSet {
  public:
    std::pair<std::int32_t, bool> insert(std::span<const Index> sequence);  // its number, and whether it is new
    std::size_t bytes() const { return 8 * (begin_.size() + data_.size()) + 4 * slots_.size(); }

  private:
    std::span<const Index> at(std::int32_t number) const;
    void grow();

    std::vector<Index> begin_{0}, data_;
    std::vector<std::int32_t> slots_ = std::vector<std::int32_t>(64, -1);
};

// What the pools of a layout hold. Steps are numbered by what they depend on: the shapes of their inputs, and the
// distinct shifts of an elimination.
class KnownSteps {
  public:
    SequenceSet steps;

    // Whether they are of use for a layout whose axes are chosen, and not too many for its memory limit.
    bool fit(const Layout &layout, double memory_limit) const;
    // What they take, with the pools of the layout.
    double bytes(const Layout &layout) const;
    // Keeps step t, which has just been made at the end of the pools and is the last that was numbered.
    void remember(Layout &layout, std::int32_t t);
    // Puts a step that is known into a layout, and gives its input the room that it needs; returns the table's shape.
    std::int32_t take(Layout &layout, std::int32_t t, std::int32_t number) const;

  private:
    friend void forget(Layout &layout);
    struct Placed {
        Index begin = 0, stride = 0;  // of stretches in the pools
    };
    struct Shape {  // the stretches of a table, placed for a consumer that reads them as they are
        Placed placed;
        Index stretches, cells;
    };
    struct Made {
        std::int32_t shape;
        Placed input;                            // of an elimination: its input, with room for the shifts
        Index groups = 0, begin = 0, pairs = 0;  // the pairs in the pools
    };
    std::int32_t number_shape(Layout &layout, std::int32_t t);
    Placed place_input(Layout &layout, std::int32_t t) const;
    static void put(TableLayout &table, Placed placed, const Layout &layout);

    Index prefix_size_ = -1, lanes_ = 0;  // of all of them
    SequenceSet shape_numbers_;
    std::vector<Shape> shapes_;
    std::vector<Made> made_;
    std::vector<Index> key_;
};

// Empties the pools of a layout whose axes are chosen.
void forget(Layout &layout);

}  // namespace tallytree
