// The algebras that messages are computed over. Each one gives
//   Value, zero (nothing), one (no score), lift (of a factor's score), times
//   combine    out[l] = sum over terms of x[l] * f        with "sum" and "*" of the algebra
#pragma once

#include <cmath>

#include "common.h"
#include "kernels/maxplus.h"

namespace tallytree {

// out[l] takes x[l * step] * f for first <= l < last.
template <class Value>
struct Term {
    const Value *x;
    Value f;
    Index first, last;
    Index step = 1;
};

template <class Real>
struct MaxPlusOf {
    using Value = Real;
    static constexpr Value zero() { return kNothing<Real>; }
    static constexpr Value one() { return 0; }
    static Value lift(double score) { return score; }
    static Value times(Value a, Value b) { return a + b; }
    void combine(std::span<const Term<Value>> terms, Value *out, Index n) {
        for (Index l = 0; l < n; l++) out[l] = zero();
        for (const auto &t : terms)
            for (Index l = t.first; l < t.last; l++) {
                const Value v = t.x[l * t.step] + t.f;
                out[l] = v > out[l] ? v : out[l];
            }
    }
};

using MaxPlus = MaxPlusOf<double>;

// log of a sum of exponentials: the largest term is factored out first, so that nothing overflows and only
// negligible terms are lost.
struct LogSumExp {
    using Value = double;
    const MaxPlusKernels *kernels = nullptr;
    static constexpr Value zero() { return kNegativeInfinity; }
    static constexpr Value one() { return 0; }
    static Value lift(double score) { return score; }
    static Value times(Value a, Value b) { return a + b; }
    void combine(std::span<const Term<Value>> terms, Value *out, Index n) {
        largest_.assign(n, kNegativeInfinity);
        for (const auto &t : terms) kernels->raise(stretch(t), t.f, largest_.data() + t.first, t.last - t.first);
        for (auto &v : largest_)
            if (v == kNegativeInfinity) v = 0;  // nothing to add there, and no nan
        sum_.assign(n, 0);
        for (const auto &t : terms)
            kernels->add_exponentials(stretch(t), t.f, largest_.data() + t.first, sum_.data() + t.first,
                                      t.last - t.first);
        for (Index l = 0; l < n; l++) out[l] = sum_[l] > 0 ? largest_[l] + std::log(sum_[l]) : zero();
    }

  private:
    // The cells of a term side by side, also where it repeats one.
    const Value *stretch(const Term<Value> &t) {
        if (t.step == 1) return t.x + t.first;
        repeated_.assign(t.last - t.first, *t.x);
        return repeated_.data();
    }
    std::vector<Value> largest_, sum_, repeated_;
};

// The number of labellings modulo a prime below 2^31: counts of any size are combined from several
// primes by the Chinese remainder theorem. Products of residues stay below 2^62, so that two of them fit.
struct CountingModulo {
    using Value = double;  // residues below 2^31 are exact in a double, and share the arena of the others
    std::uint64_t prime = 0;
    static constexpr Value zero() { return 0; }
    static constexpr Value one() { return 1; }
    static Value lift(double score) { return score == kNegativeInfinity ? 0 : 1; }
    Value times(Value a, Value b) const {
        return static_cast<Value>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) % prime);
    }
    void combine(std::span<const Term<Value>> terms, Value *out, Index n) {
        sum_.assign(n, 0);
        const std::uint64_t wrap = prime * prime * 2;
        for (const auto &t : terms) {
            const auto f = static_cast<std::uint64_t>(t.f);
            for (Index l = t.first; l < t.last; l++) {
                const std::uint64_t s = sum_[l] + static_cast<std::uint64_t>(t.x[l * t.step]) * f;
                sum_[l] = s < s - wrap ? s : s - wrap;  // unsigned: s - wrap is huge where s is smaller
            }
        }
        for (Index l = 0; l < n; l++) out[l] = static_cast<Value>(sum_[l] % prime);
    }

  private:
    std::vector<std::uint64_t> sum_;
};

}  // namespace tallytree
