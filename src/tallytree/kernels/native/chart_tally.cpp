// A chart with statistics: each item is a row of tallies. The rules of a parent that share a child are mixed first,
//     c[l] = max over B of  left[B, l] + f(A -> B C),      then      open[A] = max over C of  c_C * right[C],
// so that a convolution (*) is paid for each group of rules and not for each rule.
#include <algorithm>
#include <cstring>

#include "chart_run.h"

namespace tallytree {

class TallyChart {
  public:
    TallyChart(ChartRun &run, const Poll &poll)
        : run_(run), l_(*run.layout_), grammar_(run.grammar_), spans_(l_.spans), meter_(poll) {}

    template <class Algebra>
    void inside(Algebra &algebra) {
        double *data = run_.arena_.data();
        std::fill(data, data + l_.arena, Algebra::zero());
        for (Index width = 1; width <= spans_.words; width++)
            for (Index start = 0; start < spans_.starts(width); start++) {
                span_ = spans_.number(start, width);
                open_ = l_.table_number(span_, Layer::Open);
                closed_ = l_.table_number(span_, Layer::Closed);
                if (width == 1) take_word(start);
                for (Index split = 1; split < width; split++)
                    join(algebra, l_.table_number(spans_.number(start, split), Layer::Closed),
                         l_.table_number(spans_.number(start + split, width - split), Layer::Closed));
                for (auto target : grammar_.targets) chain(algebra, target, width == 1);
            }
    }

  private:
    // A pair of runs, of the left and the right table, and how far the sum of their lows is from the output's.
    struct Pair {
        Index left, right, offset;
    };

    void take_word(Index word) {
        if (l_.tables[open_].runs == 0) return;
        for (std::int32_t s = 0; s < grammar_.symbols; s++)
            if (const auto slot = l_.slot_of(open_, s); slot >= 0)
                run_.row(open_, slot)[0] = run_.scores_.words[word * grammar_.symbols + s];
    }

    // ---- open ------------------------------------------------------------------------------------------------
    template <class Algebra>
    void join(Algebra &algebra, Index left, Index right) {
        if (l_.tables[left].runs == 0 || l_.tables[right].runs == 0 || l_.tables[open_].runs == 0) return;
        find_pairs(left, right);
        for (std::int32_t parent = 0; parent < grammar_.symbols; parent++)
            if (const auto slot = l_.slot_of(open_, parent); slot >= 0 && !grammar_.groups[parent].empty())
                join_parent(algebra, parent, run_.row(open_, slot), left, right);
    }

    void find_pairs(Index left, Index right) {
        const ChartRuns a(l_, left), b(l_, right), out(l_, open_);
        const Index q = l_.prefix_size;
        pairs_.assign(out.count, {});
        prefix_.resize(q);
        for (Index x = 0; x < a.count; x++)
            for (Index y = 0; y < b.count; y++) {
                for (Index i = 0; i < q; i++)
                    prefix_[i] = std::min(l_.caps[i], a.prefix[x * q + i] + b.prefix[y * q + i]);
                if (const auto r = l_.run_of(open_, prefix_.data()); r >= 0)
                    pairs_[r].push_back({x, y, a.low[x] + b.low[y] - out.low[r]});
            }
        meter_.spend(8.0 * static_cast<double>(a.count) * static_cast<double>(b.count));
    }

    // The groups that are there, each mixed into a row of its own.
    template <class Algebra>
    void join_parent(Algebra &algebra, std::int32_t parent, double *row, Index left, Index right) {
        const auto groups = grammar_.groups[parent];
        const bool shared_left = groups[0].left;
        const Index shared = shared_left ? left : right, mixed = shared_left ? right : left;
        find_guards(mixed);
        shared_rows_.clear();
        if (static_cast<Index>(mixes_.size()) < guarded_size_ * static_cast<Index>(groups.size()))
            mixes_.resize(guarded_size_ * groups.size());
        for (const auto &group : groups) {
            const auto slot = l_.slot_of(shared, group.shared);
            if (slot < 0) continue;
            double *to = mixes_.data() + guarded_size_ * static_cast<Index>(shared_rows_.size());
            if (mix(algebra, group, mixed, to)) shared_rows_.push_back(run_.row(shared, slot));
        }
        const ChartRuns a(l_, shared), b(l_, mixed), out(l_, open_);
        if (shared_rows_.empty()) return;
        for (Index r = 0; r < out.count; r++) {
            operands_.clear();
            double operations = 0;
            for (const auto &pair : pairs_[r]) {
                const Index x = shared_left ? pair.left : pair.right, y = shared_left ? pair.right : pair.left;
                for (std::size_t g = 0; g < shared_rows_.size(); g++)
                    operands_.push_back({shared_rows_[g] + a.start[x], a.length[x],
                                         mixes_.data() + guarded_size_ * static_cast<Index>(g) + guards_[y],
                                         b.length[y], pair.offset});
                operations += static_cast<double>(a.length[x] * b.length[y]);
            }
            if (operands_.empty()) continue;
            convolve(algebra, row + out.start[r], out.length[r], out.natural[r]);
            meter_.spend(operations * static_cast<double>(shared_rows_.size()) + 32);
        }
    }

    // Where the runs of a table lie in a row with -inf around each of them.
    void find_guards(Index table) {
        const ChartRuns runs(l_, table);
        guards_.resize(runs.count);
        guarded_size_ = 0;
        for (Index r = 0; r < runs.count; r++) {
            guards_[r] = guarded_size_ + kGuard;
            guarded_size_ += round_up(runs.length[r]) + 2 * kGuard;
        }
    }

    // False where no rule of the group can be used.
    template <class Algebra>
    bool mix(Algebra &algebra, const RuleGroup &group, Index table, double *to) {
        rows_.clear();
        factors_.clear();
        for (Index q = group.begin; q < group.end; q++) {
            const auto number = grammar_.by_group[q];
            const auto &rule = grammar_.rules[number];
            const auto slot = l_.slot_of(table, group.left ? rule.right : rule.left);
            const double *f = run_.scores_.rules.address(number, span_);
            if (slot < 0 || *f == kNegativeInfinity) continue;
            rows_.push_back(run_.row(table, slot));
            factors_.push_back(f);
        }
        if (rows_.empty()) return false;
        const ChartRuns runs(l_, table);
        std::fill(to, to + guarded_size_, Algebra::zero());
        for (Index r = 0; r < runs.count; r++) {
            mix_run(algebra, runs.start[r], runs.length[r], to + guards_[r]);
            meter_.spend(static_cast<double>(runs.length[r] * static_cast<Index>(rows_.size())));
        }
        return true;
    }

    void mix_run(MaxPlus &, Index start, Index length, double *to) {
        x_.clear();
        for (const double *row : rows_) x_.push_back(row + start);
        run_.kernels_->mix(
            {static_cast<Index>(x_.size()), x_.data(), factors_.data(), 0, nullptr, 1, to, 0, round_up(length)});
    }
    template <class Algebra>
    void mix_run(Algebra &algebra, Index start, Index length, double *to) {
        terms_.clear();
        for (std::size_t i = 0; i < rows_.size(); i++)
            terms_.push_back({rows_[i] + start, Algebra::lift(*factors_[i]), 0, length});
        algebra.combine(terms_, to, length);
    }

    // The convolutions of all operands, added to what the row holds; above a cap, to its last cell.
    void convolve(MaxPlus &, double *to, Index n, Index natural) {
        buffer_.resize(round_up(natural) + kGuard);
        run_.kernels_->convolve(operands_.data(), static_cast<Index>(operands_.size()), buffer_.data(), 0,
                                round_up(natural));
        run_.kernels_->raise(buffer_.data(), 0, to, n);
        for (Index i = n; i < natural; i++) to[n - 1] = std::max(to[n - 1], buffer_[i]);
    }
    template <class Algebra>
    void convolve(Algebra &algebra, double *to, Index n, Index natural) {
        buffer_.assign(to, to + n);
        terms_.assign(1, {buffer_.data(), Algebra::one(), 0, n});
        for (const auto &c : operands_)
            for (Index i = 0; i < c.na; i++) add_terms(c.b, c.a[i], c.offset + i, c.nb, n, natural);
        algebra.combine(terms_, to, n);
    }

    // Cell k of x goes to cell k + offset, and to the last one above a cap.
    void add_terms(const double *x, double f, Index offset, Index length, Index n, Index natural) {
        if (f == kNegativeInfinity) return;
        const Index first = std::max<Index>(offset, 0), last = std::min(n, offset + length);
        if (first < last) terms_.push_back({x - offset, f, first, last});
        if (natural > n)
            for (Index k = std::max<Index>(n - offset, 0); k < length; k++)
                terms_.push_back({x + k - (n - 1), f, n - 1, n});
    }

    // ---- closed ----------------------------------------------------------------------------------------------
    template <class Algebra>
    void chain(Algebra &algebra, std::int32_t target, bool word) {
        const auto slot = l_.slot_of(closed_, target);
        const ChartRuns out(l_, closed_);
        if (slot < 0 || out.count == 0) return;
        collected_.resize(out.count);
        for (auto &terms : collected_) terms.clear();
        for (auto number : grammar_.by_target[target]) collect(number, word);
        for (Index r = 0; r < out.count; r++) {
            algebra.combine(collected_[r], run_.row(closed_, slot) + out.start[r], out.length[r]);
            meter_.spend(static_cast<double>(out.length[r] * static_cast<Index>(collected_[r].size() + 1)));
        }
    }

    void collect(std::int32_t number, bool word) {
        const auto &chain = grammar_.chains[number];
        const Index from = chain.from_closed ? closed_ : open_;
        const auto slot = l_.slot_of(from, chain.source);
        const double f = run_.scores_.chains.at(number, span_);
        if (slot < 0 || f == kNegativeInfinity) return;
        const ChartRuns in(l_, from), out(l_, closed_);
        const Index q = l_.prefix_size, p = l_.statistics;
        const auto bag = word ? chain.word_bag : chain.bag;
        const auto *shift = bag < 0 ? nullptr : l_.shift(bag, span_);
        prefix_.resize(q);
        for (Index x = 0; x < in.count; x++) {
            for (Index i = 0; i < q; i++)
                prefix_[i] = std::min(l_.caps[i], in.prefix[x * q + i] + (shift ? shift[i] : 0));
            const auto r = l_.run_of(closed_, prefix_.data());
            if (r < 0) continue;
            terms_.clear();
            add_terms(run_.row(from, slot) + in.start[x], f, in.low[x] + (shift && p ? shift[p - 1] : 0) - out.low[r],
                      in.length[x], out.length[r], out.natural[r]);
            collected_[r].insert(collected_[r].end(), terms_.begin(), terms_.end());
        }
    }

    ChartRun &run_;
    const ChartLayout &l_;
    const ChartGrammar &grammar_;
    const Spans spans_;
    Meter meter_;
    Index span_ = 0, open_ = 0, closed_ = 0;
    std::vector<std::vector<Pair>> pairs_;  // by the run they go to
    std::vector<Index> prefix_, guards_;
    Index guarded_size_ = 0;
    std::vector<double> mixes_, buffer_;
    std::vector<const double *> shared_rows_, rows_, factors_, x_;
    std::vector<Convolution> operands_;
    std::vector<Term<double>> terms_;
    std::vector<std::vector<Term<double>>> collected_;
};

void ChartRun::tally_inside(const Poll &poll) {
    TallyChart chart(*this, poll);
    if (is_max_plus()) {
        MaxPlus algebra;
        chart.inside(algebra);
    } else {
        LogSumExp algebra;
        algebra.kernels = kernels_;
        chart.inside(algebra);
    }
}

}  // namespace tallytree
