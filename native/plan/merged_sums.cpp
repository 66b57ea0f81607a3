#include "plan/merged_sums.h"

#include <algorithm>
#include <numeric>

namespace tallytree {
namespace {

void merge_lists(std::span<const PairSum> x, std::span<const PairSum> y, PairSum *out) {
    const PairSum *i = x.data(), *i_end = i + x.size(), *j = y.data(), *j_end = j + y.size();
    while (i < i_end && j < j_end) {
        const bool second = j->key < i->key;
        *out++ = second ? *j : *i;
        i += !second;
        j += second;
    }
    out = std::copy(i, i_end, out);
    std::copy(j, j_end, out);
}

// Sorts `lists` sorted lists of `length` sums each, one behind the other in `sums`, by way of `other`.
void merge_all(PairSum *sums, PairSum *other, Index lists, Index length, bool into_other) {
    const auto list = [&](PairSum *from, Index count) { return std::span(from, static_cast<std::size_t>(count)); };
    if (lists == 1) {
        if (into_other) std::copy(sums, sums + length, other);
        return;
    }
    const Index half = lists / 2, left = half * length, right = (lists - half) * length;
    merge_all(sums, other, half, length, !into_other);
    merge_all(sums + left, other + left, lists - half, length, !into_other);
    PairSum *from = into_other ? sums : other, *to = into_other ? other : sums;
    merge_lists(list(from, left), list(from + left, right), to);
}

}  // namespace

void merge_sums(std::span<const Index> a, std::span<const Index> b, std::vector<PairSum> &sums,
                std::vector<PairSum> &scratch) {
    std::vector<std::int32_t> order(b.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto x, auto y) { return b[x] < b[y]; });
    sums.resize(a.size() * b.size());
    auto add = [&, to = sums.data()](std::size_t ra, std::int32_t rb) mutable {
        *to++ = {a[ra] + b[rb], static_cast<std::int32_t>(ra), rb};
    };
    const bool by_b = b.size() <= a.size();
    if (by_b)  // of equal sums those with the larger entry of b have the smaller one of a
        for (std::size_t i = b.size(); i-- > 0;)
            for (std::size_t ra = 0; ra < a.size(); ra++) add(ra, order[i]);
    else
        for (std::size_t ra = 0; ra < a.size(); ra++)
            for (const auto rb : order) add(ra, rb);
    scratch.resize(sums.size());
    const auto [lists, length] = by_b ? std::pair(b.size(), a.size()) : std::pair(a.size(), b.size());
    merge_all(sums.data(), scratch.data(), static_cast<Index>(lists), static_cast<Index>(length), false);
}

}  // namespace tallytree
