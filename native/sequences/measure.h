// The quality of a sentence, by its tallies: BLEU and ROUGE as concave functions, and the score needed to win.
#pragma once

#include <algorithm>
#include <array>

#include "bounds/need.h"

namespace tallytree::sequences {

inline constexpr Index kMostTallies = 8;
using Tallies = std::array<std::int32_t, kMostTallies>;
using Prices = std::array<double, kMostTallies>;

struct Box {
    Tallies low{}, high{};
};

// The measure of the sentences of one length: it never falls with a tally, and is concave in all of them together.
class Measure {
  public:
    // factor · Π_n (tally_n / (length - n))^(1/orders)
    static Measure geometric(Index orders, Index length, double factor);
    // min(1, constant + Σ weight · tally)
    static Measure linear(std::vector<double> weights, double constant);

    Index tallies() const { return tallies_; }
    bool geometric() const { return !roots_.empty(); }
    double operator()(const Tallies &tallies) const;
    const std::vector<double> &weights() const { return weights_; }  // of a linear one
    // Where it is smooth; at 0 that of 1.
    Prices slope(const Tallies &tallies) const;

  private:
    Index tallies_ = 0;
    double factor_ = 1;
    std::vector<std::vector<double>> roots_;
    std::vector<double> weights_;
};

using bounds::Scaling;  // margin or slack

// What is maximised: score + margin·(1 - measure), or (1 - measure)·(margin + score - truth).
struct Objective {
    Scaling scaling;
    double margin, truth;

    double operator()(double score, double measure) const {
        const double loss = std::max(0.0, 1 - measure);
        return scaling == Scaling::Margin ? score + margin * loss : loss * (margin + score - truth);
    }
};

// The least score that gives more than a value, and its least together with prices over a box of tallies.
class Need {
  public:
    Need(const Measure &measure, const Objective &objective) : measure_(measure), objective_(objective) {}

    // A bound from below of min over the box of (need(m) - prices·m), and a tally where it is attained. The need is
    // bounded by a + b·measure, which is concave, so its minimum is at a corner. In a chain, tallies of longer n-grams
    // are no larger than those of shorter ones. With slack scaling and a linear measure it is the least itself.
    double least(double value, const Prices &prices, Box box, bool chain, Tallies *at = nullptr) const;
    // The least score that gives a value with some tallies.
    double at(double value, const Tallies &tallies) const;
    // The prices at which what is wanted is level around a tally.
    Prices level(double value, const Tallies &tallies) const;

  private:
    struct Corner {
        double measure, paid;
        Tallies tallies;
    };
    double linear(double value, const Prices &prices, const Box &box, Tallies *at) const;
    void corners(const Box &box, bool chain, Index n, Tallies &m, const Prices &prices) const;

    const Measure &measure_;
    const Objective &objective_;
    mutable std::vector<Corner> corners_;
};

// Restricts a box to what a chain allows; false if nothing is left.
bool tighten(Box &box, Index tallies, bool chain);

}  // namespace tallytree::sequences
