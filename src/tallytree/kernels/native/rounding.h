// Single precision rounds every sum up, and factors too. Maxima are exact, so each cell of a table is then an upper
// bound of the best score that it stands for, without any analysis of errors. Double precision rounds as usual.
//
// Sums are made in other files than those that set the mode, or from memory and into it: the compiler cannot move them.
#pragma once

#include <cfenv>

#include "common.h"

namespace tallytree {

// How this thread rounds, for the life of the object.
class RoundingMode {
  public:
    explicit RoundingMode(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
    ~RoundingMode() { std::fesetround(before_); }
    RoundingMode(const RoundingMode &) = delete;
    RoundingMode &operator=(const RoundingMode &) = delete;

  private:
    int before_;
};

// Held while tables of these numbers are made.
template <class Real>
struct TableRounding {
    TableRounding() {}
};
template <>
struct TableRounding<float> : RoundingMode {
    TableRounding() : RoundingMode(FE_UPWARD) {}
};

// The same poll for use meanwhile: what it calls, Python among it, must not notice.
template <class Real>
Poll outside_tables(const Poll &poll) {
    if constexpr (std::is_same_v<Real, double>) return poll;
    else
        return [&poll] {
            const RoundingMode usual(FE_TONEAREST);
            poll();
        };
}

}  // namespace tallytree
