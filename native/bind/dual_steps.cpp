// Blocks of a dual at the border to Python.
#include "svm/dual_steps.h"
#include "bind/checks.h"

namespace tallytree {
namespace {

using Changing = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool holds) {
    if (!holds) throw nb::value_error("the planes of a block do not fit each other or the weights");
}

PlaneBlock make_block(Ints indices, Doubles values, Ints ends, std::size_t dimension) {
    require(indices.size() == values.size());
    std::int64_t last = 0;
    for (auto end : as_span(ends)) {
        require(end >= last);
        last = end;
    }
    require(last == static_cast<std::int64_t>(indices.size()));
    for (auto index : as_span(indices)) require(index >= 0 && index < static_cast<std::int64_t>(dimension));
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

}  // namespace

void bind_dual_steps(nb::module_ &m) {
    m.def("block_inner", &inner, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(),
          "vector"_a.noconvert());
    m.def("improve_block", &improve, "indices"_a.noconvert(), "values"_a.noconvert(), "ends"_a.noconvert(),
          "offsets"_a.noconvert(), "gram"_a.noconvert(), "alpha"_a.noconvert(), "weights"_a.noconvert(),
          "lag"_a.noconvert(), "lag_factor"_a, "steps"_a, "enough"_a, "rounding"_a);
}

}  // namespace tallytree
