// Attributes of positions as Python has them.
#pragma once

#include <nanobind/nanobind.h>

namespace tallytree {

void bind_names(nanobind::module_ &m);

}  // namespace tallytree
