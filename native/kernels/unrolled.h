// Loops that the compiler unrolls, so that the arrays they index stay in registers.
#pragma once

#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

constexpr bool kManyRegisters = TALLYTREE_VECTOR_BYTES == 64;

template <int I>
struct Constant {
    constexpr operator int() const { return I; }
};

// f(0), f(1), …, f(N - 1) as constants: arrays that they index stay in registers, despite branches in between.
template <int N, int I = 0, class F>
INLINE void unrolled(const F &f) {
    if constexpr (I < N) {
        f(Constant<I>{});
        unrolled<N, I + 1>(f);
    }
}
#define EACH(i) [&](auto i) __attribute__((always_inline))

}  // namespace
}  // namespace TALLYTREE_ISA
}  // namespace tallytree
