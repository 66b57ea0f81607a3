// Steps that were met in layouts made before in the same memory.
//
// Sentences of a batch differ in their truths, but what their tables hold depends on little of them: how many tallies
// there are so far. So few steps are new: the same runs, moved by the same shifts or joined with the same runs, add up
// to runs that are known, from pairs that are known, and lie where they lay.
#pragma once

#include "layout.h"

namespace tallytree {

// Numbers the distinct sequences that are offered to it.
class SequenceSet {
  public:
    std::pair<std::int32_t, bool> insert(std::span<const Index> sequence);  // its number, and whether it is new

  private:
    std::span<const Index> at(std::int32_t number) const;
    void grow();

    std::vector<Index> begin_{0}, data_;
    std::vector<std::int32_t> slots_ = std::vector<std::int32_t>(64, -1);
};

struct KnownSteps {
    struct Placed {
        Index begin = 0, stride = 0;  // of runs in the layout's pools
    };
    struct Shape {  // the runs of a table, placed for a consumer that reads them as they are
        Placed placed;
        Index runs, cells;
    };
    struct Made {
        std::int32_t shape;
        Placed input;                            // of an elimination: its input, with room for the shifts
        Index groups = 0, begin = 0, pairs = 0;  // the pairs in the layout's pools
        Index count = 0;                         // of pairs
    };

    Index prefix_size = -1, lanes = 0;  // of all of them
    SequenceSet shape_numbers, step_numbers;
    std::vector<Shape> shapes;
    std::vector<Made> made;
};

}  // namespace tallytree
