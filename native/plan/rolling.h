// Tables that stay near the processor: a layout with checkpoints, for time instead of memory.
#pragma once

#include <memory>

#include "plan/layout.h"

namespace tallytree {

// Where all tables together are far larger than a cache, the same layout cut into segments whose tables share memory
// that fits one, provided that decoding then has little to compute again; otherwise the layout itself.
std::shared_ptr<const Layout> rolled(const std::shared_ptr<const Layout> &layout);

}  // namespace tallytree
