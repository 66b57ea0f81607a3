// The planes of one example of a structural SVM: adding one, and making room.
#pragma once

#include "svm/dual_steps.h"

namespace tallytree {

// Slopes with arrays of their own, one after the other.
struct SlopeSet {
    std::vector<std::int64_t> indices;
    std::vector<double> values;
    std::vector<std::int64_t> ends;
};

// A plane: its slope, whose indices are sorted, and its offset.
struct PlaneView {
    std::span<const std::int64_t> indices;
    std::span<const double> values;
    double offset;
};

bool has_plane(const PlaneBlock &block, const PlaneView &plane);

// The inner product of each slope with that of a plane. `workspace` is as long as the weight vector, and zero before
// and after.
std::vector<double> inner_with(const PlaneBlock &block, const PlaneView &plane, std::span<double> workspace);

// The slopes with one more.
SlopeSet with_slope(const PlaneBlock &block, const PlaneView &plane);

// Some of the slopes.
SlopeSet some_slopes(const PlaneBlock &block, std::span<const std::int64_t> kept);

// The slopes without the second of two, and with a combination of both in place of the first.
SlopeSet merged_slopes(const PlaneBlock &block, Index first, Index second, double of_first, double of_second);

}  // namespace tallytree
