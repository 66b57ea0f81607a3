// Launches of kernels on a GPU.
#pragma once

#include <nanobind/nanobind.h>

namespace tallytree {

void bind_launches(nanobind::module_ &m);

}  // namespace tallytree
