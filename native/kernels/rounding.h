// Single precision rounds every sum up, and factors too. Maxima are exact, so each cell of a table is then an upper
// bound of the best score that it stands for, without any analysis of errors. Double precision rounds as usual.
//
// Sums are computed in other files than those that set the mode, or from and to memory, so the compiler cannot move
// them.
#pragma once

#include <cfenv>

#include "common.h"

namespace tallytree {

// Sets the rounding mode of this thread for the lifetime of the object; floating-point flags are restored at its end.
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

// Held while tables of these numbers are computed.
template <class Real>
struct TableRounding {
    TableRounding() {}
    bool overflowed() const { return false; }
};
template <>
struct TableRounding<float> : RoundingMode {
    TableRounding() : RoundingMode(FE_UPWARD) { std::feclearexcept(FE_OVERFLOW); }
    // Whether some number overflowed. The padding of vectors can overflow without harm; if nothing overflowed, no
    // cell that should be finite is infinite.
    bool overflowed() const { return std::fetestexcept(FE_OVERFLOW) != 0; }
};

// The same poll for use meanwhile: Python, which it may call, must not see the rounding mode.
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
