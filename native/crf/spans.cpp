#include "crf/spans.h"

#include <algorithm>
#include <numeric>

namespace tallytree {
namespace {

// Sums over labellings by their number of chunks, and what every run of positions is worth.
class ChunkChooser {
  public:
    ChunkChooser(const ChainBatch &chains, const ChunkScheme &scheme, const ExpectedLosses &losses,
                 const MaxPlusKernels *kernels)
        : chains_(chains), scheme_(scheme), losses_(losses), kernels_(*kernels), labels_(chains.labels) {
        links_.resize(labels_ * labels_);
        const double top = *std::max_element(chains.links, chains.links + labels_ * labels_);
        kernels_.exponentials(chains.links, top, links_.data(), labels_ * labels_);
    }

    double choose(Index chain, std::vector<ChosenChunk> &to, Meter &meter) {
        first_ = chains_.starts[chain];
        length_ = chains_.lengths[chain];
        sizes_ = length_ + 1;
        counting_ = 1;
        meter_ = &meter;
        if (length_ == 0) return losses_.base[0];
        sum_ahead();
        sum_behind();
        each_run([&](Index first, Index last, const std::vector<Rows> &open) { weigh(first, last, open); });
        return best_set(chain, to);
    }

    // All chunks that are more likely than `least`, without counting any.
    void list(Index chain, double least, std::vector<ChosenChunk> &to, Meter &meter) {
        first_ = chains_.starts[chain];
        length_ = chains_.lengths[chain];
        sizes_ = 1;
        counting_ = 0;
        meter_ = &meter;
        if (length_ == 0) return;
        sum_ahead();
        sum_behind();
        each_run([&](Index first, Index last, const std::vector<Rows> &open) {
            for (std::int32_t type = 0; type < scheme_.type_count; type++)
                if (close(last, type, open) && joint_[0] > least) to.push_back({chain, first, last, type, joint_[0]});
        });
    }

  private:
    using Rows = std::vector<double>;  // [position][label][number of chunks]
    double *at(Rows &rows, Index m, Index label) const { return rows.data() + (m * labels_ + label) * sizes_; }
    bool inside(Index label) const { return scheme_.types[label] >= 0; }
    bool boundary(Index a, Index b) const { return scheme_.boundaries[a * labels_ + b] != 0; }
    double link(Index a, Index b) const { return links_[a * labels_ + b]; }

    // to[n + by] += f * from[n]
    void add(const double *from, double f, Index by, double *to) const {
        for (Index n = 0; n + by < sizes_; n++) to[n + by] += f * from[n];
    }

    // Labellings up to each position, by their label there and the chunks that have begun; and those where one begins
    // there.
    void sum_ahead() {
        const std::size_t size = static_cast<std::size_t>(length_ * labels_ * sizes_);
        for (auto *rows : {&ahead_, &opened_, &behind_, &closed_}) rows->assign(size, 0.0);
        emitted_.assign(length_ * labels_, 0.0);
        for (Index m = 0; m < length_; m++) {
            double *emitted = emitted_.data() + m * labels_;
            const double *scores = chains_.emissions + (first_ + m) * labels_;
            kernels_.exponentials(scores, *std::max_element(scores, scores + labels_), emitted, labels_);
            for (Index b = 0; b < labels_; b++) enter(m, b);
            double sum = 0;
            for (const double *x = at(ahead_, m, 0), *end = at(ahead_, m, 0) + labels_ * sizes_; x < end; x++)
                sum += *x;
            for (Index i = 0; i < labels_ * sizes_; i++) at(ahead_, m, 0)[i] /= sum;
            for (Index i = 0; i < labels_ * sizes_; i++) at(opened_, m, 0)[i] /= sum;
            for (Index b = 0; b < labels_; b++) emitted[b] /= sum;  // from here on, all of the position's scale
            meter_->spend(static_cast<double>(labels_ * labels_ * sizes_));
        }
    }

    void enter(Index m, Index b) {
        const double emitted = emitted_[m * labels_ + b];
        double *ahead = at(ahead_, m, b), *opened = at(opened_, m, b);
        if (m == 0) {
            ahead[inside(b) ? counting_ : 0] = emitted;
            if (inside(b)) opened[counting_] = emitted;
            return;
        }
        for (Index a = 0; a < labels_; a++) {
            const bool opens = inside(b) && boundary(a, b);
            add(at(ahead_, m - 1, a), link(a, b) * emitted, opens ? counting_ : 0, ahead);
            if (opens) add(at(ahead_, m - 1, a), link(a, b) * emitted, counting_, opened);
        }
    }

    // What can follow a label at each position, by the chunks that begin later; and where there is a boundary behind
    // it.
    void sum_behind() {
        for (Index a = 0; a < labels_; a++) *at(behind_, length_ - 1, a) = *at(closed_, length_ - 1, a) = 1;
        for (Index m = length_ - 1; m > 0; m--) {
            for (Index a = 0; a < labels_; a++)
                for (Index b = 0; b < labels_; b++) {
                    const double f = link(a, b) * emitted_[m * labels_ + b];
                    const bool cut = boundary(a, b);
                    const Index opens = cut && inside(b) ? counting_ : 0;
                    add(at(behind_, m, b), f, opens, at(behind_, m - 1, a));
                    if (cut) add(at(behind_, m, b), f, opens, at(closed_, m - 1, a));
                }
            meter_->spend(static_cast<double>(labels_ * labels_ * sizes_));
        }
    }

    struct Run {
        Index first, last;
        std::vector<double> worth, probability;  // for each number of chunks of the labelling, of the best type
        std::vector<std::int32_t> type;
    };

    // Every run that can be a chunk, with the labellings that have one open there.
    template <class Use>
    void each_run(Use use) {
        runs_.clear();
        starts_.assign(1, 0);
        std::vector<Rows> open(labels_);
        for (Index first = 0; first < length_; first++) {
            for (Index a = 0; a < labels_; a++) open[a].assign(at(opened_, first, a), at(opened_, first, a) + sizes_);
            for (Index last = first; last < length_; last++) {
                if (last > first && !go_on(open, last)) break;
                use(first, last, open);
            }
            starts_.push_back(static_cast<Index>(runs_.size()));
        }
    }

    // Moves open chunks on by one position; false where none can go on.
    bool go_on(std::vector<Rows> &open, Index m) const {
        std::vector<Rows> next(labels_, Rows(sizes_, 0.0));
        bool any = false;
        for (Index a = 0; a < labels_; a++)
            for (Index b = 0; b < labels_; b++)
                if (inside(b) && !boundary(a, b)) {
                    add(open[a].data(), link(a, b) * emitted_[m * labels_ + b], 0, next[b].data());
                    any = any || std::any_of(open[a].begin(), open[a].end(), [](double x) { return x > 0; });
                }
        open.swap(next);
        return any;
    }

    void weigh(Index first, Index last, const std::vector<Rows> &open) {
        Run run{first, last, Rows(sizes_, kNegativeInfinity), Rows(sizes_, 0.0), std::vector<std::int32_t>(sizes_, -1)};
        for (std::int32_t type = 0; type < scheme_.type_count; type++)
            if (close(last, type, open)) weigh(run, type);
        if (run.type[1] >= 0) runs_.push_back(std::move(run));
    }

    // The probability of an open chunk of a type to end at a position, by the truth's chunks; false where it is none.
    bool close(Index last, std::int32_t type, const std::vector<Rows> &open) {
        joint_.assign(sizes_, 0.0);
        bool any = false;
        for (Index a = 0; a < labels_; a++)
            for (Index n = counting_; n < sizes_ && scheme_.types[a] == type; n++)
                if (open[a][n] > 0) {
                    add(at(closed_, last, a), open[a][n], n, joint_.data());
                    any = true;
                }
        return any;
    }

    // With the probability of the run being a chunk of a type of the truth, by the truth's chunks.
    void weigh(Run &run, std::int32_t type) const {
        const double probability = std::accumulate(joint_.begin(), joint_.end(), 0.0);
        for (Index k = 1; k < sizes_; k++) {
            const double *gain = losses_.gain + k * losses_.width;
            double worth = 0;
            for (Index s = 0; s < sizes_; s++) worth += gain[s] * joint_[s];
            if (worth <= run.worth[k]) continue;
            run.worth[k] = worth;
            run.type[k] = type;
            run.probability[k] = probability;
        }
        meter_->spend(static_cast<double>(sizes_ * sizes_));
    }

    // The best sets of k runs, for all k; the best of these.
    double best_set(Index chain, std::vector<ChosenChunk> &to) {
        sizes_of_truth();
        Index best_k = 0;
        double least = expected_base(0);
        std::vector<Index> best, found;
        for (Index k = 1; k < sizes_; k++) {
            const double loss = expected_base(k) - pack(k, found);
            if (!(loss < least)) continue;
            least = loss;
            best_k = k;
            best = found;
        }
        for (const Index number : best) {
            const Run &run = runs_[number];
            to.push_back({chain, run.first, run.last, run.type[best_k], run.probability[best_k]});
        }
        return least;
    }

    void sizes_of_truth() {
        counted_.assign(sizes_, 0.0);
        for (Index a = 0; a < labels_; a++) add(at(ahead_, length_ - 1, a), 1, 0, counted_.data());
    }

    double expected_base(Index k) const {
        const double *base = losses_.base + k * losses_.width;
        return std::inner_product(counted_.begin(), counted_.end(), base, 0.0);
    }

    // The largest worth of k runs that do not overlap; -inf where there are no k. `at[m][n]`: of n runs before m.
    double pack(Index k, std::vector<Index> &found) {
        const Index row = k + 1;
        packed_.assign((length_ + 1) * row, kNegativeInfinity);
        taken_.assign((length_ + 1) * row, -1);
        packed_[0] = 0;
        for (Index m = 0; m < length_; m++) {
            for (Index n = 0; n < row; n++) raise((m + 1) * row + n, packed_[m * row + n], -1);
            for (Index i = starts_[m]; i < starts_[m + 1]; i++)
                for (Index n = 0; n < k; n++)
                    raise((runs_[i].last + 1) * row + n + 1, packed_[m * row + n] + runs_[i].worth[k], i);
            meter_->spend(static_cast<double>(row * (starts_[m + 1] - starts_[m] + 1)));
        }
        found.clear();
        const double worth = packed_[length_ * row + k];
        Index m = length_, n = k;
        while (worth > kNegativeInfinity && m > 0) {
            const Index number = taken_[m * row + n];
            if (number >= 0) found.push_back(number);
            m = number >= 0 ? runs_[number].first : m - 1;
            n -= number >= 0;
        }
        std::reverse(found.begin(), found.end());
        return worth;
    }

    void raise(Index place, double worth, Index run) {
        if (!(worth > packed_[place])) return;
        packed_[place] = worth;
        taken_[place] = run;
    }

    const ChainBatch &chains_;
    const ChunkScheme &scheme_;
    const ExpectedLosses &losses_;
    const MaxPlusKernels &kernels_;
    const Index labels_;
    std::vector<double> links_;
    Meter *meter_ = nullptr;
    Index first_ = 0, length_ = 0, sizes_ = 0;  // of the chain at hand; numbers of chunks are below the last
    Index counting_ = 1;                        // 0 where chunks are not counted
    Rows ahead_, opened_, behind_, closed_, emitted_, joint_, counted_, packed_;
    std::vector<Run> runs_;
    std::vector<Index> starts_, taken_;  // of the runs that begin at each position
};

}  // namespace

ChosenChunks choose_chunks(const ChainBatch &chains, const ChunkScheme &scheme, const ExpectedLosses &losses,
                           Index threads, const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    ChosenChunks found;
    found.losses.resize(chains.size());
    std::vector<std::vector<ChosenChunk>> each(chains.size());
    std::vector<ChunkChooser> choosers(std::max<Index>(threads, 1), ChunkChooser(chains, scheme, losses, kernels));
    const Work work = [&](Worker &worker, Index i) {
        Meter meter(worker.poll);
        found.losses[i] = choosers[worker.number].choose(i, each[i], meter);
    };
    std::vector<Index> order(chains.size());
    std::iota(order.begin(), order.end(), 0);
    share_out(order, threads, work, poll, inside);
    for (const auto &some : each) found.chunks.insert(found.chunks.end(), some.begin(), some.end());
    return found;
}

std::vector<ChosenChunk> likely_chunks(const ChainBatch &chains, const ChunkScheme &scheme, double least, Index threads,
                                       const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    std::vector<std::vector<ChosenChunk>> each(chains.size());
    const ExpectedLosses nothing{nullptr, nullptr, 0};
    std::vector<ChunkChooser> choosers(std::max<Index>(threads, 1), ChunkChooser(chains, scheme, nothing, kernels));
    const Work work = [&](Worker &worker, Index i) {
        Meter meter(worker.poll);
        choosers[worker.number].list(i, least, each[i], meter);
    };
    std::vector<Index> order(chains.size());
    std::iota(order.begin(), order.end(), 0);
    share_out(order, threads, work, poll, inside);
    std::vector<ChosenChunk> found;
    for (const auto &some : each) found.insert(found.end(), some.begin(), some.end());
    return found;
}

}  // namespace tallytree
