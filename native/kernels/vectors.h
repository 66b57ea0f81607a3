// Vectors of the width that a file is compiled for. No std:: templates here nor in the files that include this: a
// weak symbol shared with another instruction set would be resolved to whichever the linker finds first.
#pragma once

#include "kernels/maxplus.h"

#ifndef TALLYTREE_ISA
#define TALLYTREE_ISA baseline
#define TALLYTREE_VECTOR_BYTES 16
#define TALLYTREE_REAL double
#define TALLYTREE_KERNELS doubles
#endif

#define INLINE inline __attribute__((always_inline))
#define HIDE(x) __asm__("" : "+r"(x))

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

using Int = std::int64_t;
using Real = TALLYTREE_REAL;
constexpr int W = TALLYTREE_VECTOR_BYTES / sizeof(Real);
typedef Real Vector __attribute__((vector_size(TALLYTREE_VECTOR_BYTES), aligned(sizeof(Real)), may_alias));
using Bits = decltype(Vector{} > Vector{});  // integers of the same size

INLINE Vector load(const Real *p) { return *reinterpret_cast<const Vector *>(p); }
INLINE void store(Real *p, Vector v) { *reinterpret_cast<Vector *>(p) = v; }
INLINE Vector splat(Real v) { return v - Vector{}; }
INLINE Vector max(Vector v, Vector o) { return v > o ? v : o; }
typedef std::uint8_t Bytes __attribute__((vector_size(W), aligned(1), may_alias));
// Which lanes of a vector of doubles are set: a byte for each, 0 or 255.
template <class Lanes>
INLINE std::uint64_t bytes_of(Lanes lanes) {
    std::uint64_t set = 0;
    const Bytes bytes = __builtin_convertvector(lanes, Bytes);
    __builtin_memcpy(&set, &bytes, W);
    return set;
}
INLINE Vector nothing() { return splat(-static_cast<Real>(__builtin_inf())); }

}  // namespace
}  // namespace TALLYTREE_ISA
}  // namespace tallytree
