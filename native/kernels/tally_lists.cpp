// Bounds of many tallies at once, compiled once per instruction set (see CMakeLists.txt).
#include "kernels/tally_lists.h"

#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0} >> (64 - 8 * W);

// Numbers that are found, one behind the other: without a branch for each, which could not be foreseen.
struct Found {
    std::int32_t *numbers;
    Int many = 0;

    INLINE void add(Int number, bool there) {
        numbers[many] = static_cast<std::int32_t>(number);
        many += there ? 1 : 0;
    }
    // Of a vector of them, those below `size`.
    INLINE void add(Int first, Bits there, Int size) {
        std::uint64_t set = bytes_of(there);
        if (first + W > size) set &= (std::uint64_t{1} << 8 * (size - first)) - 1;
        if (set == 0) return;
        if (set == kAll) {
            for (int k = 0; k < W; k++) numbers[many + k] = static_cast<std::int32_t>(first + k);
            many += W;
            return;
        }
        for (int k = 0; k < W; k++, set >>= 8) add(first + k, set & 1);
    }
};

constexpr Vector numbers_from_zero() {
    Vector v{};
    for (int k = 0; k < W; k++) v[k] = k;
    return v;
}

template <int STATISTICS>
INLINE Vector paid(const TallyLists &l, Int i) {
    Vector sum = splat(l.prices[0]) * load(l.counts[0] + i);
    for (int p = 1; p < STATISTICS; p++) sum = sum + splat(l.prices[p]) * load(l.counts[p] + i);
    return sum;
}

// The most that a tally can be worth.
template <bool SLACK, class V>
INLINE V worth(const TallyLine &l, V number, V loss) {
    const V over = l.over - l.price * number;
    if constexpr (SLACK) return (over + l.margin) * loss;
    else return over + l.margin * loss;
}

template <bool SLACK>
Int reach_line(const TallyLine &l, std::int32_t *numbers) {
    Found found{numbers};
    Int i = 0;
    Vector number = numbers_from_zero();
    for (; i + W <= l.size; i += W, number = number + W) {
        const Vector loss = load(l.losses + i);
        Bits there = worth<SLACK>(l, number, loss) >= l.value;
        if constexpr (SLACK) there &= loss > 0;
        found.add(i, there, l.size);
    }
    for (; i < l.size; i++) {
        const bool there = worth<SLACK>(l, static_cast<Real>(i), l.losses[i]) >= l.value;
        found.add(i, there && (!SLACK || l.losses[i] > 0));
    }
    return found.many;
}

Int reach(const TallyLine &line, std::int32_t *numbers) {
    return line.slack ? reach_line<true>(line, numbers) : reach_line<false>(line, numbers);
}

template <int STATISTICS>
Int cut_lists(const TallyLists &l, double *bound) {
    const Vector infinity = -nothing();
    const auto lower = [&](Int i) {
        const Vector here = splat(l.most) - paid<STATISTICS>(l, i), before = load(bound + i);
        const Vector least = here < before ? here : before, need = load(l.need + i);
        store(bound + i, least);
        store(l.need + i, least >= need ? need : infinity);
        return least >= need;
    };
    Bits left{};  // minus how many, in lanes
    Int i = 0, sum = 0;
    for (; i + W <= l.size; i += W) left += lower(i);
    for (int k = 0; k < W; k++) sum -= left[k];
    if (i < l.size) left = lower(i);
    for (int k = 0; i + k < l.size; k++) sum -= left[k];
    return sum;
}

template <int STATISTICS>
Int farthest_of(const TallyLists &l, double *over, std::int32_t *numbers) {
    const auto look = [&](Int i) {
        const Vector here = splat(l.most) - load(l.need + i) - paid<STATISTICS>(l, i);
        store(over + i, here);
        return here;
    };
    Vector most = nothing();
    Int i = 0;
    for (; i + W <= l.size; i += W) most = max(most, look(i));
    Real largest = -static_cast<Real>(__builtin_inf());
    for (int k = 0; k < W; k++) largest = most[k] > largest ? most[k] : largest;
    if (i < l.size) look(i);
    for (; i < l.size; i++) largest = over[i] > largest ? over[i] : largest;
    Found found{numbers};
    for (i = 0; i < l.size; i += W) found.add(i, load(over + i) >= splat(largest), l.size);
    return found.many;
}

Int cut(const TallyLists &l, double *bound) {
    switch (l.statistics) {
        case 1:
            return cut_lists<1>(l, bound);
        case 2:
            return cut_lists<2>(l, bound);
        default:
            return cut_lists<3>(l, bound);
    }
}

Int farthest(const TallyLists &l, double *over, std::int32_t *numbers) {
    switch (l.statistics) {
        case 1:
            return farthest_of<1>(l, over, numbers);
        case 2:
            return farthest_of<2>(l, over, numbers);
        default:
            return farthest_of<3>(l, over, numbers);
    }
}

}  // namespace

extern const TallyKernels tallies;
const TallyKernels tallies{reach, cut, farthest};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
