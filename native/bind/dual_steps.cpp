// Blocks of a dual at the border to Python.
#include "svm/dual_steps.h"
#include "svm/plane_sets.h"
#include "bind/checks.h"

namespace tallytree {
namespace {

using Changing = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool holds) {
    if (!holds) throw nb::value_error("the planes of a block do not fit each other or the weights");
}

// All indices at once, by their signs: a branch for each would take longer than the sums they are for.
void require_within(std::span<const std::int64_t> indices, std::size_t dimension) {
    const std::uint64_t last = static_cast<std::uint64_t>(dimension) - 1;
    std::uint64_t signs = 0;
    for (auto index : indices) signs |= static_cast<std::uint64_t>(index) | (last - static_cast<std::uint64_t>(index));
    require(signs >> 63 == 0);
}

PlaneBlock make_block(Ints indices, Doubles values, Ints ends, std::size_t dimension) {
    require(indices.size() == values.size());
    std::int64_t last = 0;
    for (auto end : as_span(ends)) {
        require(end >= last);
        last = end;
    }
    require(last == static_cast<std::int64_t>(indices.size()));
    require_within(as_span(indices), dimension);
    return {as_span(indices), as_span(values), as_span(ends), {}, {}};
}

auto inner(Ints indices, Doubles values, Ints ends, Doubles vector) {
    return to_numpy(block_inner(make_block(indices, values, ends, vector.size()), as_span(vector)));
}

double improve(Ints indices, Doubles values, Ints ends, Doubles offsets, Doubles2 gram, Changing alpha,
               Changing weights, Changing lag, double lag_factor, std::int64_t steps, double enough, double rounding) {
    PlaneBlock block = make_block(indices, values, ends, weights.size());
    const auto planes = offsets.size();
    require(planes > 0 && ends.size() == planes && alpha.size() == planes);
    require(gram.shape(0) == planes && gram.shape(1) == planes);
    require(lag.size() == 0 || lag.size() == weights.size());
    block.offsets = as_span(offsets);
    block.gram = as_span(gram);
    return improve_block(block, {steps, enough, rounding}, as_span(alpha), as_span(weights), as_span(lag), lag_factor);
}

nb::object as_arrays(SlopeSet set) {
    return nb::make_tuple(to_numpy(std::move(set.indices)), to_numpy(std::move(set.values)),
                          to_numpy(std::move(set.ends)));
}

nb::object grow(Ints indices, Doubles values, Ints ends, Doubles offsets, Ints more_indices, Doubles more_values,
                double more_offset, Changing workspace) {
    PlaneBlock block = make_block(indices, values, ends, workspace.size());
    require(ends.size() == offsets.size() && more_indices.size() == more_values.size());
    require_within(as_span(more_indices), workspace.size());
    block.offsets = as_span(offsets);
    const PlaneView plane{as_span(more_indices), as_span(more_values), more_offset};
    if (has_plane(block, plane)) return nb::none();
    auto products = inner_with(block, plane, as_span(workspace));
    return nb::make_tuple(as_arrays(with_slope(block, plane)), to_numpy(std::move(products)));
}

constexpr std::size_t kAnyDimension = std::numeric_limits<std::int64_t>::max();

nb::object take(Ints indices, Doubles values, Ints ends, Ints kept) {
    const PlaneBlock block = make_block(indices, values, ends, kAnyDimension);
    require_within(as_span(kept), ends.size());
    return as_arrays(some_slopes(block, as_span(kept)));
}

nb::object merge(Ints indices, Doubles values, Ints ends, std::int64_t first, std::int64_t second, double of_first,
                 double of_second) {
    const PlaneBlock block = make_block(indices, values, ends, kAnyDimension);
    require(0 <= first && first < second && second < static_cast<std::int64_t>(ends.size()));
    return as_arrays(merged_slopes(block, first, second, of_first, of_second));
}

}  // namespace

void bind_dual_steps(nb::module_ &m) {
    m.def("block_inner", &inner, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(),
          "vector"_a.noconvert());
    m.def("improve_block", &improve, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(),
          "offsets"_a.noconvert(), "gram"_a.noconvert(), "alpha"_a.noconvert(), "weights"_a.noconvert(),
          "lag"_a.noconvert(), "lag_factor"_a, "steps"_a, "enough"_a, "rounding"_a);
    m.def("grow_block", &grow, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(),
          "offsets"_a.noconvert(), "more_indices"_a.noconvert(), "more_values"_a.noconvert(), "more_offset"_a,
          "workspace"_a.noconvert());
    m.def("take_slopes", &take, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(),
          "kept"_a.noconvert());
    m.def("merge_slopes", &merge, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(), "first"_a,
          "second"_a, "of_first"_a, "of_second"_a);
}

}  // namespace tallytree
