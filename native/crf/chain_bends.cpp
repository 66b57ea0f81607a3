// How sums over all labellings of chains move when scores do. Everything that a pass makes, a(m) along a chain, goes
// with a'(m), the derivative in the given direction, on the same scale. With the normaliser's own derivative c,
//     marginal' = ahead' * behind + ahead * behind' - marginal * c,
// and pairs likewise.
#include "crf/chain_summer.h"

namespace tallytree {
namespace {

class ChainBender : public ChainSummer {
  public:
    ChainBender(const ChainBatch &chains, const ChainBends &bends, const MaxPlusKernels *kernels)
        : ChainSummer(chains, kernels), bends_(bends) {
        if (!chains.own_links) take_slopes(0, 1);
    }

    // Of pairs, `moved` takes sums that the exponentials of links are to be multiplied by, `plain` those for their
    // derivatives. False where the scores lie too far apart.
    bool bend(Index chain, std::vector<double> &moved, std::vector<double> &plain) {
        if (!start(chain)) return true;
        if (!forward() || (log_sum_ != kNegativeInfinity && !backward())) return false;
        if (log_sum_ == kNegativeInfinity) return true;
        if (chains_.own_links) take_slopes(chains_.link_offset(chain, 1), length_ - 1);
        move_ahead();
        move_behind();
        const double *last = at(ahead_moved_, length_ - 1);
        mean_ = std::accumulate(last, last + labels_, 0.0);
        bends_.means[chain] = mean_;
        put_marginals();
        const double importance = bends_.importance[chain];
        for (Index m = 1; m < length_; m++) {
            double *weighted = at(weighted_, m), *moving = at(weighted_moved_, m);
            for (Index j = 0; j < labels_; j++) moving[j] -= mean_ * weighted[j];
            scale_row(weighted, importance / scales_[m]);
            scale_row(moving, importance / scales_[m]);
        }
        if (chains_.own_links) put_pairs();
        else add_pairs(moved, plain);
        return true;
    }

    double slope(Index i, Index j) const { return sloped_[i * width_ + j]; }

  private:
    // The derivatives of exponentials of links: of `count` tables from an entry on.
    void take_slopes(Index from, Index count) {
        sloped_.assign(count * width_ * width_, 0.0);
        sloped_turned_ = sloped_;
        for (Index k = 0; k < count; k++)
            for (Index i = 0; i < labels_; i++)
                for (Index j = 0; j < labels_; j++) {
                    const Index at = (k * width_ + i) * width_ + j, turned = (k * width_ + j) * width_ + i;
                    const double by = bends_.links[from + (k * labels_ + i) * labels_ + j];
                    sloped_[at] = sloped_turned_[turned] = links_[at] == 0 ? 0 : links_[at] * by;
                }
    }

    const double *direction(Index m) const { return bends_.emissions + (first_ + m) * labels_; }
    double moved_by(Index m, Index j) const { return at_const(emitted_, m)[j] == 0 ? 0 : direction(m)[j]; }
    const double *at_const(const Rows &rows, Index m) const { return rows.data() + m * width_; }
    // out = x times one table + y times another.
    void both(const double *x, const double *one, const double *y, const double *other, double *out) {
        kernels_.matrices.rows_times(x, 1, labels_, one, width_, out, labels_);
        spare_.assign(width_, 0.0);
        kernels_.matrices.rows_times(y, 1, labels_, other, width_, spare_.data(), labels_);
        for (Index j = 0; j < labels_; j++) out[j] += spare_[j];
    }

    void move_ahead() {
        for (auto *rows : {&ahead_moved_, &behind_moved_, &weighted_moved_}) rows->assign((length_ + 1) * width_, 0.0);
        for (Index m = 0; m < length_; m++) {
            double *moved = at(ahead_moved_, m);
            if (m) both(at(ahead_moved_, m - 1), table(links_, m), at(ahead_, m - 1), table(sloped_, m), moved);
            for (Index j = 0; j < labels_; j++) {
                const double led = m ? moved[j] * at(emitted_, m)[j] / scales_[m] : 0;
                moved[j] = led + at(ahead_, m)[j] * moved_by(m, j);
            }
        }
    }

    void move_behind() {
        for (Index m = length_ - 1; m > 0; m--) {
            double *moving = at(weighted_moved_, m), *before = at(behind_moved_, m - 1);
            for (Index j = 0; j < labels_; j++)
                moving[j] = at(emitted_, m)[j] * (at(behind_moved_, m)[j] + moved_by(m, j) * at(behind_, m)[j]);
            both(moving, turned(m), at(weighted_, m), table(sloped_turned_, m), before);
            for (Index i = 0; i < labels_; i++) before[i] = at(ahead_, m - 1)[i] == 0 ? 0 : before[i] / scales_[m];
        }
    }

    void put_marginals() {
        const double importance = bends_.importance[chain_];
        for (Index m = 0; m < length_; m++)
            for (Index j = 0; j < labels_; j++) {
                const double ahead = at(ahead_, m)[j], behind = at(behind_, m)[j];
                const double moved = at(ahead_moved_, m)[j] * behind + ahead * at(behind_moved_, m)[j];
                bends_.marginals[(first_ + m) * labels_ + j] = importance * (moved - ahead * behind * mean_);
            }
    }

    void add_pairs(std::vector<double> &moved, std::vector<double> &plain) {
        const auto add = [&](const double *a, const double *b, std::vector<double> &to) {
            kernels_.matrices.add_outer(a, b, length_ - 1, labels_, width_, to.data(), labels_);
        };
        add(at(ahead_moved_, 0), at(weighted_, 1), moved);
        add(at(ahead_, 0), at(weighted_moved_, 1), moved);
        add(at(ahead_, 0), at(weighted_, 1), plain);
    }

    void put_pairs() {
        for (Index m = 1; m < length_; m++) {
            double *to = bends_.pairs.data() + chains_.link_offset(chain_, m);
            const double *link = table(links_, m), *sloped = table(sloped_, m);
            const double *ahead = at(ahead_, m - 1), *moved = at(ahead_moved_, m - 1);
            const double *weighted = at(weighted_, m), *moving = at(weighted_moved_, m);
            for (Index i = 0; i < labels_; i++)
                for (Index j = 0; j < labels_; j++)
                    *to++ = (moved[i] * weighted[j] + ahead[i] * moving[j]) * link[i * width_ + j] +
                            ahead[i] * weighted[j] * sloped[i * width_ + j];
        }
    }

    const ChainBends &bends_;
    double mean_ = 0;
    Rows sloped_, sloped_turned_;  // derivatives of the exponentials of links
    Rows ahead_moved_, behind_moved_, weighted_moved_, spare_;
};

}  // namespace

void bend_chains(const ChainBatch &chains, const ChainBends &bends, Index threads, const MaxPlusKernels *kernels,
                 const Poll &poll, const Inside &inside) {
    const ChainBender model(chains, bends, kernels);
    const Index labels = chains.labels, width = model.width(), square = chains.own_links ? 0 : width * width;
    const Index groups = group_count(chains.size(), 16 * static_cast<double>(std::max<Index>(square, 1)));
    std::vector<std::vector<double>> moved(groups), plain(groups);
    for (Index g = 0; g < groups; g++) {
        moved[g].assign(square, 0.0);
        plain[g].assign(square, 0.0);
    }
    std::vector<ChainBender> benders(std::max<Index>(threads, 1), model);
    const auto work = 2 * static_cast<double>(labels * labels);
    each_chain(chains, groups, work, threads, poll, inside, [&](Index worker, Index i, Index group) {
        bends.left_out[i] = !benders[worker].bend(i, moved[group], plain[group]);
    });
    for (Index g = 0; !chains.own_links && g < groups; g++)
        for (Index i = 0; i < labels; i++)
            for (Index j = 0; j < labels; j++)
                bends.pairs[i * labels + j] +=
                    moved[g][i * width + j] * model.link(i, j) + plain[g][i * width + j] * model.slope(i, j);
}

}  // namespace tallytree
