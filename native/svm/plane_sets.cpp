#include "svm/plane_sets.h"

#include <numeric>

namespace tallytree {
namespace {

PlaneView plane_of(const PlaneBlock &block, Index k) {
    const Index begin = k ? block.ends[k - 1] : 0, size = block.ends[k] - begin;
    return {block.indices.subspan(begin, size), block.values.subspan(begin, size), block.offsets[k]};
}

double square(std::span<const double> values) {
    double sum = 0;
    for (double value : values) sum += value * value;
    return sum;
}

// The mean of two planes, with arrays of its own.
struct Mean {
    std::vector<std::int64_t> indices;
    std::vector<double> values;
    double offset;

    Mean(const PlaneView &a, const PlaneView &b, double of_a, double of_b) : offset(a.offset * of_a + b.offset * of_b) {
        std::size_t i = 0, j = 0;
        while (i < a.indices.size() || j < b.indices.size()) {
            const bool first = j == b.indices.size() || (i < a.indices.size() && a.indices[i] <= b.indices[j]);
            const bool second = i == a.indices.size() || (j < b.indices.size() && b.indices[j] <= a.indices[i]);
            const std::int64_t index = first ? a.indices[i] : b.indices[j];
            double value = first ? a.values[i++] * of_a : 0;
            if (second) value += b.values[j++] * of_b;
            if (value == 0) continue;
            indices.push_back(index);
            values.push_back(value);
        }
    }
    PlaneView view() const { return {indices, values, offset}; }
};

// Planes that can be dropped and merged; `left` are the numbers of those that remain, in order.
class Trimming {
  public:
    Trimming(const PlaneBlock &block, std::span<const double> alpha)
        : gram_(block.gram.begin(), block.gram.end()), alpha_(alpha.begin(), alpha.end()), left_(alpha.size()) {
        std::iota(left_.begin(), left_.end(), Index{0});
        for (Index k : left_) planes_.push_back(plane_of(block, k));
    }

    Index size() const { return static_cast<Index>(left_.size()); }

    void drop_idle(std::span<const double> slopes, Index excess) {
        std::vector<Index> idle;
        std::copy_if(left_.begin(), left_.end(), std::back_inserter(idle), [&](Index k) { return alpha_[k] == 0; });
        std::stable_sort(idle.begin(), idle.end(), [&](Index k, Index l) { return slopes[k] < slopes[l]; });
        idle.resize(std::min(static_cast<Index>(idle.size()), excess));
        for (Index k : idle) std::erase(left_, k);
    }

    void merge_lightest() {
        auto order = left_;
        std::stable_sort(order.begin(), order.end(), [&](Index k, Index l) { return alpha_[k] < alpha_[l]; });
        const auto [first, second] = std::minmax(order[0], order[1]);
        const double total = alpha_[first] + alpha_[second];
        const double of_first = alpha_[first] / total, of_second = alpha_[second] / total;
        means_.push_back(std::make_unique<Mean>(planes_[first], planes_[second], of_first, of_second));
        planes_[first] = means_.back()->view();
        std::erase(left_, second);
        const Index count = static_cast<Index>(planes_.size());
        for (Index k : left_)
            gram_[k * count + first] = gram_[first * count + k] =
                of_first * gram_[first * count + k] + of_second * gram_[second * count + k];
        gram_[first * count + first] = square(planes_[first].values);
        alpha_[first] = total;
    }

    PlaneSet result() const {
        PlaneSet set;
        for (Index k : left_) {
            const PlaneView &plane = planes_[k];
            set.indices.insert(set.indices.end(), plane.indices.begin(), plane.indices.end());
            set.values.insert(set.values.end(), plane.values.begin(), plane.values.end());
            set.ends.push_back(static_cast<std::int64_t>(set.indices.size()));
            set.offsets.push_back(plane.offset);
            set.alpha.push_back(alpha_[k]);
            for (Index l : left_) set.gram.push_back(gram_[k * static_cast<Index>(planes_.size()) + l]);
        }
        return set;
    }

  private:
    std::vector<double> gram_, alpha_;
    std::vector<Index> left_;
    std::vector<PlaneView> planes_;
    std::vector<std::unique_ptr<Mean>> means_;
};

}  // namespace

bool has_plane(const PlaneBlock &block, const PlaneView &plane) {
    for (Index k = 0; k < block.size(); k++) {
        const PlaneView one = plane_of(block, k);
        if (one.offset == plane.offset && std::ranges::equal(one.indices, plane.indices) &&
            std::ranges::equal(one.values, plane.values))
            return true;
    }
    return false;
}

PlaneSet grown(const PlaneBlock &block, std::span<const double> alpha, const PlaneView &plane,
               std::span<double> workspace) {
    for (std::size_t e = 0; e < plane.indices.size(); e++) workspace[plane.indices[e]] = plane.values[e];
    const auto products = block_inner(block, workspace);
    for (auto index : plane.indices) workspace[index] = 0;
    const Index size = block.size();
    PlaneSet set;
    auto extended = [](auto span, auto more) {
        std::vector<typename decltype(span)::value_type> joined;
        joined.reserve(span.size() + more.size());
        joined.insert(joined.end(), span.begin(), span.end());
        joined.insert(joined.end(), more.begin(), more.end());
        return joined;
    };
    set.indices = extended(block.indices, plane.indices);
    set.values = extended(block.values, plane.values);
    set.ends.assign(block.ends.begin(), block.ends.end());
    set.ends.push_back(static_cast<std::int64_t>(set.indices.size()));
    set.offsets.assign(block.offsets.begin(), block.offsets.end());
    set.offsets.push_back(plane.offset);
    set.alpha.assign(alpha.begin(), alpha.end());
    set.alpha.push_back(0);
    set.gram.reserve((size + 1) * (size + 1));
    for (Index k = 0; k < size; k++) {
        const auto row = block.gram.subspan(k * size, size);
        set.gram.insert(set.gram.end(), row.begin(), row.end());
        set.gram.push_back(products[k]);
    }
    set.gram.insert(set.gram.end(), products.begin(), products.end());
    set.gram.push_back(square(plane.values));
    return set;
}

PlaneSet trimmed(const PlaneBlock &block, std::span<const double> alpha, std::span<const double> slopes, Index room) {
    Trimming planes(block, alpha);
    planes.drop_idle(slopes, std::max(planes.size() - room, Index{0}));
    while (planes.size() > room) planes.merge_lightest();
    return planes.result();
}

}  // namespace tallytree
