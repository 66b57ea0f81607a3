// Joins of concave rows in linear time: the differences of both, merged from the largest down, are those of the result.
#pragma once

#include <vector>

#include "common.h"
#include "kernels/maxplus.h"

namespace tallytree {

// Writes out[l] for l < n rounded up, as the kernels do, if both rows are concave between their first and last cell
// above -inf and long enough to be worth it. Exact: bit for bit what trying all pairs gives.
bool join_concave(const Convolution &pair, double *out, Index n, std::vector<double> &merged);

}  // namespace tallytree
