#include "crf/spans.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "crf/chunk_sums.h"

namespace tallytree {
namespace {

// A run of positions that may be a chunk of the labelling.
struct Run {
    Index first, last;
    std::int32_t type;
    double probability;
    std::vector<double> joint;  // with each number of chunks of the truth
};

// The labelling of the least expected loss. Most numbers of chunks, and most runs, are ruled out before anything is
// counted, by what some labelling is known to lose:
//
// * The chunks of all runs together are those of the truth, so that k chunks lose no less than
//   Σ_s P(s) (base[k][s] - gain[k][s] s).
// * Without a chunk of probability p, a labelling of k chunks loses base[k] - base[k-1] less, in expectation. All
// others
//   gain (1 + rho) times as much at least, rho the least of gain[k-1][s] / gain[k][s] - 1, and together they must gain
//   base[k] less the known loss. What is given up is p times the largest gain[k][s], at most. So no best labelling has
//   a chunk that is too unlikely. Numbers s that are next to impossible count for nothing here: rho is of the others,
//   and what may be gained with the former is left out.
class ChunkChooser {
  public:
    ChunkChooser(const ChainBatch &chains, const ChunkScheme &scheme, const ExpectedLosses &losses,
                 const MaxPlusKernels *kernels)
        : sums_(chains, scheme, kernels), losses_(losses) {}

    double choose(Index chain, std::vector<ChosenChunk> &to, Meter &meter) {
        sums_.take(chain, true, meter);
        length_ = sums_.length();
        if (length_ == 0) return losses_.base[0];
        counted_ = sums_.size_probabilities();
        list_runs();
        known_ = likely_loss();
        note_usual();
        candidates();
        keep_runs();
        return best_set(chain, to);
    }

  private:
    static constexpr double kRounding = 1e-9;  // far more than sums of products are off by
    Index sizes() const { return length_ + 1; }

    double expected_base(Index k) const {
        const double *base = losses_.base + k * losses_.width;
        return std::inner_product(counted_.begin(), counted_.end(), base, 0.0);
    }

    void list_runs() {
        runs_.clear();
        sums_.each_run(
            [&](Index first, Index last, std::int32_t type, double p) { runs_.push_back({first, last, type, p, {}}); });
    }

    void weigh(Run &run) {
        sums_.open_run(run.first, run.last);
        sums_.close_run(run.first, run.last, run.type, run.joint);
    }

    double worth(const Run &run, Index k) const {
        const double *gain = losses_.gain + k * losses_.width;
        double sums[4] = {};  // in an order that no instruction set changes
        Index s = 0;
        for (; s + 4 <= sizes(); s += 4)
            for (Index lane = 0; lane < 4; lane++) sums[lane] += gain[s + lane] * run.joint[s + lane];
        for (; s < sizes(); s++) sums[0] += gain[s] * run.joint[s];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    // The likeliest runs that do not overlap, one after the other: a few more than there are chunks on average.
    std::vector<Run *> likely_runs() {
        double mean = 0;
        for (Index s = 1; s < sizes(); s++) mean += static_cast<double>(s) * counted_[s];
        std::vector<Run *> likely, chosen;
        for (auto &run : runs_)
            if (run.probability > 0.02) likely.push_back(&run);
        std::stable_sort(likely.begin(), likely.end(),
                         [](const Run *a, const Run *b) { return a->probability > b->probability; });
        for (Run *run : likely) {
            const auto apart = [&](const Run *other) { return run->last < other->first || other->last < run->first; };
            if (std::all_of(chosen.begin(), chosen.end(), apart)) chosen.push_back(run);
            if (static_cast<double>(chosen.size()) > mean + 3) break;
        }
        return chosen;
    }

    // What the best of some labellings loses that are likely to be good.
    double likely_loss() {
        const std::vector<Run *> likely = likely_runs();
        double least = expected_base(0);
        sums_.forget_runs();
        for (Run *run : likely) weigh(*run);
        for (std::size_t k = 1; k <= likely.size(); k++) {
            double loss = expected_base(static_cast<Index>(k));
            for (std::size_t i = 0; i < k; i++) loss -= worth(*likely[i], static_cast<Index>(k));
            least = std::min(least, loss);
        }
        return least;
    }

    // What k chunks lose at least.
    double least_loss(Index k) const {
        const double *gain = losses_.gain + k * losses_.width;
        double least = expected_base(k);
        for (Index s = 0; s < sizes(); s++) least -= gain[s] * static_cast<double>(s) * counted_[s];
        return least;
    }
    static bool is_more(double least, double known) { return least > known + kRounding * (1 + std::abs(known)); }

    // The truth has more chunks than this with next to no probability: so many of them are expected in all.
    void note_usual() {
        unusual_ = 0;
        usual_ = length_;
        for (double next = 0; usual_ > 1; usual_--, unusual_ = next) {
            next = unusual_ + static_cast<double>(usual_) * counted_[usual_];
            if (next > kRounding) break;
        }
    }

    // Numbers of chunks, but 0, that may lose no more than is known.
    void candidates() {
        candidates_.clear();
        for (Index k = 1; k < sizes(); k++)
            if (!is_more(least_loss(k), known_)) candidates_.push_back(k);
    }

    // What a chunk's probability must be for the best labelling of k chunks to have it.
    double least_probability(Index k) const {
        const double *gain = losses_.gain + k * losses_.width, *before = gain - losses_.width;
        double most = 0, rho = -kNegativeInfinity;
        for (Index s = 1; s < sizes(); s++) {
            most = std::max(most, gain[s]);
            if (gain[s] > 0 && s <= usual_) rho = std::min(rho, before[s] / gain[s] - 1);
            if (gain[s] < 0) return 0;
        }
        if (k == 1 || rho == -kNegativeInfinity) rho = 0;  // there are no others
        if (most == 0 || rho < 0) return 0;
        const double base = expected_base(k);
        return (base - expected_base(k - 1) + rho * (base - known_ - most * unusual_)) / (most * (1 + rho));
    }

    void keep_runs() {
        double least = -kNegativeInfinity;
        for (const Index k : candidates_) least = std::min(least, least_probability(k));
        if (candidates_.empty()) least = -kNegativeInfinity;
        std::erase_if(runs_, [&](const Run &run) { return run.probability < least * (1 - kRounding) - 1e-14; });
        sums_.forget_runs();
        starts_.assign(1, 0);
        for (Index first = 0, i = 0; first < length_; first++, starts_.push_back(i))
            for (; i < static_cast<Index>(runs_.size()) && runs_[i].first == first; i++)
                if (runs_[i].joint.empty()) weigh(runs_[i]);
    }

    // The best sets of k runs, for all k; the best of these.
    double best_set(Index chain, std::vector<ChosenChunk> &to) {
        double least = expected_base(0);
        std::vector<Index> best, found;
        for (const Index k : candidates_) {
            if (is_more(least_loss(k), least)) continue;
            const double loss = expected_base(k) - pack(k, found);
            if (!(loss < least)) continue;
            least = loss;
            best = found;
        }
        for (const Index number : best) {
            const Run &run = runs_[number];
            to.push_back({chain, run.first, run.last, run.type, run.probability});
        }
        return least;
    }

    // The largest worth of k runs that do not overlap; -inf where there are no k. `at[m][n]`: of n runs before m.
    double pack(Index k, std::vector<Index> &found) {
        const Index row = k + 1;
        packed_.assign((length_ + 1) * row, kNegativeInfinity);
        taken_.assign((length_ + 1) * row, -1);
        packed_[0] = 0;
        for (Index m = 0; m < length_; m++) {
            for (Index n = 0; n < row; n++) raise((m + 1) * row + n, packed_[m * row + n], -1);
            for (Index i = starts_[m]; i < starts_[m + 1]; i++) {
                const double gained = worth(runs_[i], k);
                for (Index n = 0; n < k; n++)
                    raise((runs_[i].last + 1) * row + n + 1, packed_[m * row + n] + gained, i);
            }
            sums_.meter().spend(static_cast<double>(row * (starts_[m + 1] - starts_[m] + 1)));
        }
        found.clear();
        const double gained = packed_[length_ * row + k];
        Index m = length_, n = k;
        while (gained > kNegativeInfinity && m > 0) {
            const Index number = taken_[m * row + n];
            if (number >= 0) found.push_back(number);
            m = number >= 0 ? runs_[number].first : m - 1;
            n -= number >= 0;
        }
        std::reverse(found.begin(), found.end());
        return gained;
    }

    void raise(Index place, double gained, Index run) {
        if (!(gained > packed_[place])) return;
        packed_[place] = gained;
        taken_[place] = run;
    }

    ChunkSums sums_;
    const ExpectedLosses &losses_;
    Index length_ = 0;
    double known_ = 0;  // what some labelling loses
    Index usual_ = 0;
    double unusual_ = 0;
    std::vector<double> counted_, packed_;
    std::vector<Run> runs_;
    std::vector<Index> candidates_, starts_, taken_;  // starts of the runs that begin at each position
};

// Calls `use(worker, chain, meter)` for all chains.
template <class Use>
void for_chains(const ChainBatch &chains, Index threads, const Poll &poll, const Inside &inside, Use use) {
    const Work work = [&](Worker &worker, Index i) {
        Meter meter(worker.poll);
        use(worker.number, i, meter);
    };
    std::vector<Index> order(chains.size());
    std::iota(order.begin(), order.end(), 0);
    share_out(order, threads, work, poll, inside);
}

std::vector<ChosenChunk> joined(const std::vector<std::vector<ChosenChunk>> &each) {
    std::vector<ChosenChunk> found;
    for (const auto &some : each) found.insert(found.end(), some.begin(), some.end());
    return found;
}

}  // namespace

ChosenChunks choose_chunks(const ChainBatch &chains, const ChunkScheme &scheme, const ExpectedLosses &losses,
                           Index threads, const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    ChosenChunks found;
    found.losses.resize(chains.size());
    std::vector<std::vector<ChosenChunk>> each(chains.size());
    std::vector<ChunkChooser> choosers(std::max<Index>(threads, 1), ChunkChooser(chains, scheme, losses, kernels));
    for_chains(chains, threads, poll, inside, [&](Index worker, Index i, Meter &meter) {
        found.losses[i] = choosers[worker].choose(i, each[i], meter);
    });
    found.chunks = joined(each);
    return found;
}

std::vector<ChosenChunk> likely_chunks(const ChainBatch &chains, const ChunkScheme &scheme, double least, Index threads,
                                       const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    std::vector<std::vector<ChosenChunk>> each(chains.size());
    std::vector<ChunkSums> sums(std::max<Index>(threads, 1), ChunkSums(chains, scheme, kernels));
    for_chains(chains, threads, poll, inside, [&](Index worker, Index i, Meter &meter) {
        sums[worker].take(i, false, meter);
        sums[worker].each_run([&](Index first, Index last, std::int32_t type, double p) {
            if (p > least) each[i].push_back({i, first, last, type, p});
        });
    });
    return joined(each);
}

ChunkNumbers chunk_numbers(const ChainBatch &chains, const ChunkScheme &scheme, Index threads,
                           const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    ChunkNumbers found{std::vector<double>(chains.size()), std::vector<double>(chains.size())};
    std::vector<ChunkSums> sums(std::max<Index>(threads, 1), ChunkSums(chains, scheme, kernels));
    for_chains(chains, threads, poll, inside, [&](Index worker, Index i, Meter &meter) {
        sums[worker].take(i, true, meter);
        const auto likely = sums[worker].size_probabilities();
        for (std::size_t s = 0; s < likely.size(); s++) found.means[i] += static_cast<double>(s) * likely[s];
        for (std::size_t s = 0; s < likely.size(); s++)
            found.variances[i] += std::pow(static_cast<double>(s) - found.means[i], 2) * likely[s];
    });
    return found;
}

}  // namespace tallytree
