#include "svm/plane_sets.h"

namespace tallytree {
namespace {

PlaneView slope_of(const PlaneBlock &block, Index k) {
    const Index begin = k ? block.ends[k - 1] : 0, size = block.ends[k] - begin;
    return {block.indices.subspan(begin, size), block.values.subspan(begin, size), 0};
}

void append(SlopeSet &set, const PlaneView &plane) {
    set.indices.insert(set.indices.end(), plane.indices.begin(), plane.indices.end());
    set.values.insert(set.values.end(), plane.values.begin(), plane.values.end());
    set.ends.push_back(static_cast<std::int64_t>(set.indices.size()));
}

// Entries that cancel are left out.
void append_sum(SlopeSet &set, const PlaneView &a, const PlaneView &b, double of_a, double of_b) {
    std::size_t i = 0, j = 0;
    while (i < a.indices.size() || j < b.indices.size()) {
        const bool first = j == b.indices.size() || (i < a.indices.size() && a.indices[i] <= b.indices[j]);
        const bool second = i == a.indices.size() || (j < b.indices.size() && b.indices[j] <= a.indices[i]);
        const std::int64_t index = first ? a.indices[i] : b.indices[j];
        double value = first ? a.values[i++] * of_a : 0;
        if (second) value += b.values[j++] * of_b;
        if (value == 0) continue;
        set.indices.push_back(index);
        set.values.push_back(value);
    }
    set.ends.push_back(static_cast<std::int64_t>(set.indices.size()));
}

SlopeSet with_room(std::size_t entries, std::size_t planes) {
    SlopeSet set;
    set.indices.reserve(entries);
    set.values.reserve(entries);
    set.ends.reserve(planes);
    return set;
}

}  // namespace

bool has_plane(const PlaneBlock &block, const PlaneView &plane) {
    for (Index k = 0; k < block.size(); k++) {
        if (block.offsets[k] != plane.offset) continue;
        const PlaneView one = slope_of(block, k);
        if (std::ranges::equal(one.indices, plane.indices) && std::ranges::equal(one.values, plane.values)) return true;
    }
    return false;
}

std::vector<double> inner_with(const PlaneBlock &block, const PlaneView &plane, std::span<double> workspace) {
    for (std::size_t e = 0; e < plane.indices.size(); e++) workspace[plane.indices[e]] = plane.values[e];
    auto products = block_inner(block, workspace);
    for (auto index : plane.indices) workspace[index] = 0;
    return products;
}

SlopeSet with_slope(const PlaneBlock &block, const PlaneView &plane) {
    SlopeSet set = with_room(block.indices.size() + plane.indices.size(), block.ends.size() + 1);
    set.indices.assign(block.indices.begin(), block.indices.end());
    set.values.assign(block.values.begin(), block.values.end());
    set.ends.assign(block.ends.begin(), block.ends.end());
    append(set, plane);
    return set;
}

SlopeSet some_slopes(const PlaneBlock &block, std::span<const std::int64_t> kept) {
    SlopeSet set = with_room(block.indices.size(), kept.size());
    for (auto k : kept) append(set, slope_of(block, k));
    return set;
}

SlopeSet merged_slopes(const PlaneBlock &block, Index first, Index second, double of_first, double of_second) {
    SlopeSet set = with_room(block.indices.size(), block.ends.size());
    for (Index k = 0; k < static_cast<Index>(block.ends.size()); k++) {
        if (k == first) append_sum(set, slope_of(block, first), slope_of(block, second), of_first, of_second);
        else if (k != second) append(set, slope_of(block, k));
    }
    return set;
}

}  // namespace tallytree
