// Single precision rounds every sum up, and factors too. Maxima are exact, so each cell of a table is then an upper
// bound of the best score that it stands for, without any analysis of errors. Double precision rounds as usual.
//
// Sums are made in other files than those that set the mode, or from memory and into it: the compiler cannot move them.
#pragma once

#include <cfenv>

#include "common.h"

namespace tallytree {

// How this thread rounds, for the life of the object; what sums raise meanwhile (flags) is forgotten at its end.
class RoundingMode {
  public:
    explicit RoundingMode(int mode) {
        std::fegetenv(&before_);
        std::fesetround(mode);
    }
    ~RoundingMode() { std::fesetenv(&before_); }
    RoundingMode(const RoundingMode &) = delete;
    RoundingMode &operator=(const RoundingMode &) = delete;

  private:
    std::fenv_t before_;
};

// Held while tables of these numbers are made.
template <class Real>
struct TableRounding {
    TableRounding() {}
    bool overflowed() const { return false; }
};
template <>
struct TableRounding<float> : RoundingMode {
    TableRounding() : RoundingMode(FE_UPWARD) { std::feclearexcept(FE_OVERFLOW); }
    // Whether some number was beyond all floats. Vectors may hold numbers that are of no use, so that this can be so
    // without harm; if it is not, no cell that should be finite is infinite.
    bool overflowed() const { return std::fetestexcept(FE_OVERFLOW) != 0; }
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
