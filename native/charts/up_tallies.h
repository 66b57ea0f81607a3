// The verbs of charts with statistics: each item is a row of tallies. The rules of a parent that share a child are
// mixed first,
//     c[l] = max over B of  left[B, l] + f(A -> B C),      then      open[A] = max over C of  c_C * right[C],
// so that there is one convolution (*) for each group of rules and not for each rule.
#pragma once

#include "charts/layout.h"
#include "tables/upward.h"

namespace tallytree {

class UpTallies {
  public:
    UpTallies(Run &run, Meter &meter);

    // Makes the tables of step t and of those that are done together with it.
    template <class Algebra>
    void step(Algebra &algebra, std::int32_t t);

  private:
    // A pair of stretches, of the left and the right table, and how far the sum of their lows is from the output's.
    struct Pair {
        Index left, right, offset;
    };

    template <class Algebra>
    void take_word(std::int32_t t, Index word);
    template <class Algebra>
    void combine(Algebra &algebra, std::int32_t t, std::int32_t left, std::int32_t right);
    void find_pairs(std::int32_t t, std::int32_t left, std::int32_t right);
    template <class Algebra>
    void join_parent(Algebra &algebra, std::int32_t t, std::int32_t parent, std::int32_t left, std::int32_t right);
    void find_guards(std::int32_t table);
    template <class Algebra>
    bool mix(Algebra &algebra, const RuleGroup &group, std::int32_t table, double *to);
    void mix_stretch(MaxPlus &, Index start, Index length, double *to);
    template <class Algebra>
    void mix_stretch(Algebra &algebra, Index start, Index length, double *to);
    void convolve(MaxPlus &, double *to, Index n, Index natural);
    template <class Algebra>
    void convolve(Algebra &algebra, double *to, Index n, Index natural);
    template <class Algebra>
    void add_terms(const double *x, double f, Index offset, Index length, Index n, Index natural);
    template <class Algebra>
    void unary(Algebra &algebra, std::int32_t t, std::int32_t target);
    template <class Algebra>
    void collect(std::int32_t t, std::int32_t number);

    Run &run_;
    const Layout &layout_;
    const ChartTables &chart_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Meter &meter_;
    Index span_ = 0;                        // of the table at hand
    std::vector<std::vector<Pair>> pairs_;  // by the stretch they go to
    std::vector<Index> prefix_, guards_;
    Index guarded_size_ = 0;
    std::vector<double> mixes_, buffer_;
    std::vector<const double *> shared_rows_, rows_, factors_, x_;
    std::vector<Convolution> operands_;
    std::vector<Term<double>> terms_;
    std::vector<std::vector<Term<double>>> collected_;
};

}  // namespace tallytree
