// The planes of one example of a structural SVM: adding one, and making room.
#pragma once

#include "svm/dual_steps.h"

namespace tallytree {

// A block with arrays of its own, and the weights of its planes.
struct PlaneSet {
    std::vector<std::int64_t> indices;
    std::vector<double> values;
    std::vector<std::int64_t> ends;
    std::vector<double> offsets, gram, alpha;
};

// A plane: its slope, whose indices are sorted, and its offset.
struct PlaneView {
    std::span<const std::int64_t> indices;
    std::span<const double> values;
    double offset;
};

bool has_plane(const PlaneBlock &block, const PlaneView &plane);

// The block with one more plane, which has the weight 0. `workspace` is as long as the weight vector, and zero before
// and after.
PlaneSet grown(const PlaneBlock &block, std::span<const double> alpha, const PlaneView &plane,
               std::span<double> workspace);

// The block with at most `room` planes. Planes without weight are dropped, those with the lowest `slopes` first; then
// the two with the smallest weights are replaced by their mean, which leaves the weight vector as it is.
PlaneSet trimmed(const PlaneBlock &block, std::span<const double> alpha, std::span<const double> slopes, Index room);

}  // namespace tallytree
