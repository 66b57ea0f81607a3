#include "charts/binary_trees.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bulk/spread.h"
#include "walk/evaluate.h"

namespace tallytree {
namespace {

// What one thread needs for one sentence after the other. There is a row for the spans of each width, in the order of
// their first words, with room for whole vectors wherever one begins.
class TreeRows {
  public:
    TreeRows(const SpanScores &spans, const MaxPlusKernels *kernels) : spans_(spans), kernels_(*kernels) {}

    bool sum(Index sentence, const TreeSums &sums, Meter &meter) {
        if (!upward(sentence, meter)) return false;
        const double found = sums.log_sums[sentence] = row(inner_, words_)[0];
        if (found == kNegativeInfinity) return true;
        outer_.assign(inner_.size(), 0.0);
        row(outer_, words_)[0] = 1;
        for (Index width = words_; width >= 1; width--) {
            give_own(width, sums.marginals.data() + sentence * spans_.sentence());
            if (width > 1) hand_down(width);
            meter.spend(work(width));
        }
        return true;
    }

    bool find_best(Index sentence, const BestTrees &best, Meter &meter) {
        start(sentence);
        for (Index width = 1; width <= words_; width++) {
            if (!raise_own(width, row(inner_, width))) return false;
            if (width > 1) {
                raise_splits(width, splits_.data());
                for (Index i = 0; i < starts(width); i++) row(inner_, width)[i] += splits_[i];
            }
            meter.spend(work(width) / 4);
        }
        const double promised = row(inner_, words_)[0];
        if (!std::isfinite(promised)) return false;
        const Evaluation found = walk(best.trees.data() + sentence * spans_.sentence(), [&](Index first, Index width) {
            return std::pair(best_label(first, width), best_split(first, width));
        });
        return std::abs(found.score - promised) <= rounding_bound(found);
    }

    bool draw(Index sentence, const TreeDraws &draws, Meter &meter) {
        if (!upward(sentence, meter) || row(inner_, words_)[0] == kNegativeInfinity) return false;
        shares_.resize(std::max(stride_, round_up(spans_.labels)));
        for (Index number = 0; number < draws.draws; number++) {
            const Index place = number * spans_.size() + sentence;
            const double *uniform = draws.uniforms.data() + place * 3 * spans_.words;
            walk(draws.trees.data() + place * spans_.sentence(), [&](Index first, Index width) {
                const Index label = drawn_label(first, width, *uniform++);
                return std::pair(label, width > 1 ? drawn_split(first, width, *uniform++) : 0);
            });
            meter.spend(static_cast<double>(words_ * (words_ + spans_.labels)));
        }
        return true;
    }

  private:
    using Rows = std::vector<double>;

    void start(Index sentence) {
        scores_ = spans_.scores + sentence * spans_.sentence();
        words_ = spans_.lengths[sentence];
        stride_ = round_up(words_) + kLanes;
        inner_.assign(words_ * stride_, 0.0);
        for (auto *one : {&label_, &splits_, &shares_}) one->assign(stride_, 0.0);
    }

    Index starts(Index width) const { return words_ - width + 1; }
    double *row(Rows &rows, Index width) const { return rows.data() + (width - 1) * stride_; }
    double work(Index width) const { return static_cast<double>(starts(width) * (4 * width + 2 * spans_.labels)); }
    Index place(Index first, Index width) const { return (first * spans_.words + first + width - 1) * spans_.labels; }

    // The sums below all spans. False if a score is not valid.
    bool upward(Index sentence, Meter &meter) {
        start(sentence);
        for (auto *rows : {&tops_, &totals_, &own_tops_, &own_totals_}) rows->resize(inner_.size());
        for (Index width = 1; width <= words_; width++) {
            if (!take_own(width)) return false;
            if (width > 1) add_splits(width);
            meter.spend(work(width));
        }
        return true;
    }

    // The scores of one label for all spans of a width. False if one of them is not valid.
    bool take_label(Index width, Index label) {
        bool valid = true;
        for (Index i = 0; i < starts(width); i++) {
            label_[i] = scores_[place(i, width) + label];
            valid &= std::abs(label_[i]) <= kLargestScore || label_[i] == kNegativeInfinity;
        }
        return valid;
    }

    bool raise_own(Index width, double *top) {
        const Index n = starts(width);
        std::fill_n(top, n, kNegativeInfinity);
        for (Index label = 0; label < spans_.labels; label++) {
            if (!take_label(width, label)) return false;
            kernels_.raise(label_.data(), 0, top, n);
        }
        return true;
    }

    bool take_own(Index width) {
        const Index n = starts(width);
        double *top = row(own_tops_, width), *total = row(own_totals_, width), *inner = row(inner_, width);
        if (!raise_own(width, top)) return false;
        std::fill_n(total, n, 0.0);
        for (Index label = 0; label < spans_.labels; label++) {
            take_label(width, label);
            kernels_.add_exponentials(label_.data(), 0, top, total, n);
        }
        for (Index i = 0; i < n; i++) inner[i] = top[i] + std::log(total[i]);  // -inf where nothing is allowed
        return true;
    }

    // Calls `use(left, right, split)` for the two parts of all spans of a width. What it reads beyond the last span may
    // be anything.
    template <class Use>
    void each_split(Index width, Use use) {
        for (Index split = 1; split < width; split++)
            use(row(inner_, split), row(inner_, width - split) + split, split);
    }

    void raise_splits(Index width, double *top) {
        const Index n = round_up(starts(width));
        std::fill_n(top, n, kNegativeInfinity);
        each_split(width, [&](const double *left, const double *right, Index) {
            kernels_.raise_sum(left, right, nullptr, 0, top, n);
        });
    }

    void add_splits(Index width) {
        double *top = row(tops_, width), *total = row(totals_, width), *inner = row(inner_, width);
        raise_splits(width, top);
        std::fill_n(total, round_up(starts(width)), 0.0);
        each_split(width, [&](const double *left, const double *right, Index) {
            kernels_.add_exponentials_of_sum(left, right, nullptr, 0, top, total, round_up(starts(width)));
        });
        for (Index i = 0; i < starts(width); i++) inner[i] += top[i] + std::log(total[i]);
    }

    // The probability of each label of the spans of a width.
    void give_own(Index width, double *marginals) {
        const Index n = starts(width);
        const double *outer = row(outer_, width), *total = row(own_totals_, width);
        for (Index i = 0; i < n; i++) splits_[i] = outer[i] > 0 ? outer[i] / total[i] : 0;
        for (Index label = 0; label < spans_.labels; label++) {
            take_label(width, label);
            kernels_.share_exponentials(label_.data(), 0, row(own_tops_, width), splits_.data(), shares_.data(), n);
            for (Index i = 0; i < n; i++) marginals[place(i, width) + label] = shares_[i];
        }
    }

    // What the spans of a width give to the parts of each split.
    void hand_down(Index width) {
        const Index n = starts(width);
        const double *outer = row(outer_, width), *top = row(tops_, width), *total = row(totals_, width);
        for (Index i = 0; i < n; i++) splits_[i] = outer[i] > 0 ? outer[i] / total[i] : 0;
        each_split(width, [&](const double *left, const double *right, Index split) {
            std::fill_n(shares_.data(), round_up(n), 0.0);
            kernels_.add_exponentials_of_sum(left, right, nullptr, 0, top, shares_.data(), round_up(n));
            double *to_left = row(outer_, split), *to_right = row(outer_, width - split) + split;
            for (Index i = 0; i < n; i++) to_left[i] += shares_[i] *= splits_[i];
            for (Index i = 0; i < n; i++) to_right[i] += shares_[i];
        });
    }

    // Marks the constituents of a tree, from the whole sentence down. `choose(first, width)` returns the label of a
    // span and the width of its first part.
    template <class Choose>
    Evaluation walk(std::int64_t *tree, Choose choose) {
        Evaluation found;
        open_.assign({{0, words_}});
        while (!open_.empty()) {
            const auto [first, width] = open_.back();
            open_.pop_back();
            const auto [label, split] = choose(first, width);
            found.add(scores_[place(first, width) + label]);
            tree[place(first, width) + label] = 1;
            if (width == 1) continue;
            open_.emplace_back(first, split);
            open_.emplace_back(first + split, width - split);
        }
        return found;
    }

    Index best_label(Index first, Index width) const {
        const double *scores = scores_ + place(first, width);
        return std::max_element(scores, scores + spans_.labels) - scores;
    }

    Index best_split(Index first, Index width) {
        Index best = 1;
        double most = kNegativeInfinity;
        each_split(width, [&](const double *left, const double *right, Index split) {
            if (left[first] + right[first] <= most) return;
            best = split;
            most = left[first] + right[first];
        });
        return best;
    }

    Index drawn_label(Index first, Index width, double uniform) {
        kernels_.exponentials(scores_ + place(first, width), row(own_tops_, width)[first], shares_.data(),
                              spans_.labels);
        return share_at(uniform * row(own_totals_, width)[first], first_shares(spans_.labels));
    }

    Index drawn_split(Index first, Index width, double uniform) {
        each_split(width, [&](const double *left, const double *right, Index split) {
            label_[split - 1] = left[first] + right[first];
        });
        kernels_.exponentials(label_.data(), row(tops_, width)[first], shares_.data(), width - 1);
        return 1 + share_at(uniform * row(totals_, width)[first], first_shares(width - 1));
    }

    std::span<const double> first_shares(Index count) const {
        return {shares_.data(), static_cast<std::size_t>(count)};
    }

    const SpanScores &spans_;
    const MaxPlusKernels &kernels_;
    const double *scores_ = nullptr;  // of the sentence at hand
    Index words_ = 0, stride_ = 0;
    Rows inner_, outer_;  // the sums below spans, and their probabilities
    Rows tops_, totals_, own_tops_,
        own_totals_;                // the largest terms of sums over splits and labels, and what is relative
    Rows label_, splits_, shares_;  // of the width at hand
    std::vector<std::pair<Index, Index>> open_;  // first words and widths of the constituents to come
};

template <class Body>
void each_sentence(const SpanScores &spans, Index threads, const MaxPlusKernels *kernels, const Poll &poll,
                   const Inside &inside, Body body) {
    std::vector<TreeRows> rows(std::max<Index>(threads, 1), TreeRows(spans, kernels));
    std::vector<Index> order(spans.size());
    std::iota(order.begin(), order.end(), 0);
    const Work work = [&](Worker &worker, Index sentence) {
        Meter meter(worker.poll);
        body(rows[worker.number], sentence, meter);
    };
    share_out(order, threads, work, poll, inside);
}

}  // namespace

void sum_trees(const SpanScores &spans, const TreeSums &sums, Index threads, const MaxPlusKernels *kernels,
               const Poll &poll, const Inside &inside) {
    each_sentence(spans, threads, kernels, poll, inside, [&](TreeRows &rows, Index sentence, Meter &meter) {
        sums.left_out[sentence] = !rows.sum(sentence, sums, meter);
    });
}

void find_best_trees(const SpanScores &spans, const BestTrees &best, Index threads, const MaxPlusKernels *kernels,
                     const Poll &poll, const Inside &inside) {
    each_sentence(spans, threads, kernels, poll, inside, [&](TreeRows &rows, Index sentence, Meter &meter) {
        best.left_out[sentence] = !rows.find_best(sentence, best, meter);
    });
}

void draw_trees(const SpanScores &spans, const TreeDraws &draws, Index threads, const MaxPlusKernels *kernels,
                const Poll &poll, const Inside &inside) {
    each_sentence(spans, threads, kernels, poll, inside, [&](TreeRows &rows, Index sentence, Meter &meter) {
        draws.left_out[sentence] = !rows.draw(sentence, draws, meter);
    });
}

}  // namespace tallytree
