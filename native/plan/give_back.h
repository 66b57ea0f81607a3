// Memory that was freed, and goes back to the system.
#pragma once

#include <algorithm>
#include <cstddef>  // which tells the C library
#include <limits>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tallytree {

// What was freed in small pieces stays with the process otherwise, and is memory beyond what plans say.
inline void give_memory_back() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

// The same after a plan of so many bytes was made, where what was freed on the way may be a part of its limit.
inline void give_back_after(double plan_bytes, double limit = std::numeric_limits<double>::infinity()) {
    constexpr double kLarge = 16 << 20, kPart = 16;
    if (plan_bytes > std::min(kLarge, limit / kPart)) give_memory_back();
}

}  // namespace tallytree
