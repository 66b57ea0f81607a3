// The range of scores, whether their exponentials can be added without scaling, and samples from such sums.
#pragma once

#include <algorithm>
#include <span>

#include "common.h"

namespace tallytree {

inline constexpr double kWidest = 500;  // exp(-500) is a normal number, by far

struct Spread {
    double low = -kNegativeInfinity, high = kNegativeInfinity;  // of the finite scores
    bool forbids = false, broken = false;                       // whether some are -inf, or no scores at all
    void take(std::span<const double> scores) {
        constexpr std::size_t kLanesHere = 4;
        double least[kLanesHere], most[kLanesHere], poison[kLanesHere] = {};  // the last is nan unless all are finite
        std::fill_n(least, kLanesHere, -kNegativeInfinity);
        std::fill_n(most, kLanesHere, kNegativeInfinity);
        const std::size_t whole = scores.size() / kLanesHere * kLanesHere;
        for (std::size_t i = 0; i < whole; i += kLanesHere)
            for (std::size_t l = 0; l < kLanesHere; l++) {
                const double score = scores[i + l];
                least[l] = score < least[l] ? score : least[l];
                most[l] = score > most[l] ? score : most[l];
                poison[l] += score * 0;
            }
        if (poison[0] + poison[1] + poison[2] + poison[3] == 0) {
            low = std::min(low, *std::min_element(least, least + kLanesHere));
            high = std::max(high, *std::max_element(most, most + kLanesHere));
            scores = scores.subspan(whole);
        }
        for (const double score : scores) {
            if (score == kNegativeInfinity) {
                forbids = true;
                continue;
            }
            broken |= !(score < -kNegativeInfinity);
            low = std::min(low, score);
            high = std::max(high, score);
        }
    }
    double top() const { return high == kNegativeInfinity ? 0 : high; }
    double width() const { return broken ? -kNegativeInfinity : high == kNegativeInfinity ? 0 : high - low; }
};

// The index of the share that contains a number between 0 and their sum, if shares are stacked; never an empty one.
inline Index share_at(double left, std::span<const double> shares) {
    Index last = 0;
    for (std::size_t i = 0; i < shares.size(); i++) {
        if (shares[i] == 0) continue;
        last = static_cast<Index>(i);
        if ((left -= shares[i]) < 0) break;
    }
    return last;
}

}  // namespace tallytree
