#include "bulk/chains.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bulk/thread_pool.h"
#include "bulk/workspace.h"

namespace tallytree {
namespace {

class Solver {
  public:
    Solver(const ChainTask &task, const LabelChain &chain, Workspace &space)
        : task_(task), kinds_(task.kinds), chain_(chain), space_(space), states_(task.kinds.states) {}

    std::vector<ChainAnswer> run(const MaxPlusKernels *kernels, const Poll &poll) {
        make_scores();
        make_shifts();
        space_.lay_out(chain_.skeleton, space_.request, poll);
        std::vector<ChainAnswer> answers;
        space_.run(space_.scores, kernels, poll, [&](Run &run) {
            for (const auto &choice : best(run)) answers.push_back(decoded(run, choice, poll));
        });
        return answers;
    }

  private:
    bool folds() const { return !chain_.fold.empty(); }

    const std::int32_t *labels_at(Index position) const {
        return kinds_.labels.data() + chain_.kinds[position] * states_;
    }
    const std::int64_t *given_at(Index statistic, Index position) const {
        return kinds_.given.data() + (statistic * kinds_.kinds + chain_.kinds[position]) * states_;
    }
    Index table_at(Index position) const {  // of a position and the one before it
        return kinds_.pair(chain_.kinds[position - 1], chain_.kinds[position]);
    }
    const std::int64_t *moved_at(Index statistic, Index position) const {
        return kinds_.moved.data() + (statistic * kinds_.links + table_at(position)) * states_ * states_;
    }

    void make_scores() {
        const Index size = chain_.size();
        space_.unary.resize(size * states_);
        double *to = space_.unary.data();
        for (Index m = 0; m < size; m++)
            for (Index s = 0; s < states_; s++) *to++ = state_score(m, s);
        space_.scores = {{space_.unary.data(), size, states_}};
        if (size < 2) return;
        if (kinds_.links) make_links();
        space_.scores.push_back(kinds_.links ? TableBlock<double>{space_.links.data(), size - 1, states_ * states_}
                                             : TableBlock<double>{task_.links.data(), 1, states_ * states_});
    }

    double state_score(Index position, Index state) const {
        const Index label = labels_at(position)[state];
        if (label < 0) return kNegativeInfinity;
        double score = chain_.emissions[position * task_.labels + label];
        for (std::size_t p = 0; p < chain_.fold.size(); p++)
            score += chain_.fold[p] * static_cast<double>(given_at(static_cast<Index>(p), position)[state]);
        return score;
    }

    void make_links() {
        space_.links.resize((chain_.size() - 1) * states_ * states_);
        double *to = space_.links.data();
        for (Index m = 1; m < chain_.size(); m++) {
            const auto *before = labels_at(m - 1), *after = labels_at(m);
            const auto *fits = kinds_.fits.data() + table_at(m) * states_ * states_;
            for (Index s = 0; s < states_; s++) {
                const double *row = task_.links.data() + std::max(before[s], 0) * task_.labels;
                for (Index t = 0; t < states_; t++) *to++ = *fits++ ? row[std::max(after[t], 0)] : kNegativeInfinity;
            }
        }
    }

    void make_shifts() {
        auto &request = space_.request;
        const Index size = chain_.size(), count = folds() ? 0 : kinds_.statistics, square = states_ * states_;
        request.caps.assign(count, kUncapped);
        request.window.low.assign(count, -kNoLimit);
        request.window.high.assign(count, kNoLimit);
        request.memory_limit = task_.memory_limit;
        request.shifts.clear();
        space_.given.resize(count * size * states_);
        space_.moved.resize(kinds_.links ? count * (size - 1) * square : 0);
        auto *given = space_.given.data(), *moved = space_.moved.data();
        for (Index p = 0; p < count; p++) {
            request.shifts.push_back({given, size, states_});
            for (Index m = 0; m < size; m++) given = std::copy_n(given_at(p, m), states_, given);
            if (!kinds_.links || size < 2) continue;
            request.shifts.push_back({moved, size - 1, square});
            for (Index m = 1; m < size; m++) moved = std::copy_n(moved_at(p, m), square, moved);
        }
    }

    std::vector<LossTable::Choice> best(const Run &run) const {
        if (!folds()) return chain_.losses->best(run, scored(chain_.truth).score, task_.count);
        std::vector<LossTable::Choice> only;  // of the one tally there is
        for (const double score : run.root().values) only.push_back({score, score, 0, 0, 0});
        return only;
    }

    ChainAnswer decoded(Run &run, const LossTable::Choice &choice, const Poll &poll) {
        std::vector<std::int64_t> states(chain_.size());
        run.decode(choice.cell, states.data(), poll);
        ChainAnswer answer;
        for (Index m = 0; m < chain_.size(); m++) answer.labels.push_back(labels_at(m)[states[m]]);
        const auto tally = counted(states);
        answer.loss = chain_.losses->at(tally.data());
        answer.score = certified(answer.labels, tally, choice);
        return answer;
    }

    std::vector<Index> counted(std::span<const std::int64_t> states) const {
        std::vector<Index> tally(kinds_.statistics, 0);
        for (Index p = 0; p < kinds_.statistics; p++)
            for (Index m = 0; m < chain_.size(); m++) {
                tally[p] += given_at(p, m)[states[m]];
                if (kinds_.links && m) tally[p] += moved_at(p, m)[states[m - 1] * states_ + states[m]];
            }
        return tally;
    }

    struct Scored {
        double score = 0, magnitude = 0;
        void add(double term) {
            score += term;
            magnitude += std::abs(term);
        }
    };

    Scored scored(std::span<const std::int64_t> labels) const {
        Scored sum;
        for (Index m = 0; m < chain_.size(); m++) sum.add(chain_.emissions[m * task_.labels + labels[m]]);
        for (Index m = 1; m < chain_.size(); m++) sum.add(task_.links[labels[m - 1] * task_.labels + labels[m]]);
        return sum;
    }

    // The score of the labels themselves, if the messages promised as much and the right tally.
    double certified(std::span<const std::int64_t> labels, const std::vector<Index> &tally,
                     const LossTable::Choice &promised) const {
        Scored sum = scored(labels);
        const double score = sum.score;
        for (std::size_t p = 0; p < chain_.fold.size(); p++) sum.add(chain_.fold[p] * static_cast<double>(tally[p]));
        const double terms = static_cast<double>(4 + 2 * chain_.size() + kinds_.statistics * chain_.size());
        const double allowed = std::numeric_limits<double>::epsilon() * terms * sum.magnitude;
        if (!(std::abs(sum.score - promised.score) <= allowed) ||
            (!folds() && tally != chain_.losses->tally(promised.place)))
            throw CertificateFailed("a chain's labelling is not what its messages promise");
        return score;
    }

    const ChainTask &task_;
    const ChainKinds &kinds_;
    const LabelChain &chain_;
    Workspace &space_;
    const Index states_;
};

}  // namespace

std::vector<std::vector<ChainAnswer>> augmented_chains(const ChainTask &task, std::span<const LabelChain> chains,
                                                       Index threads, const MaxPlusKernels *kernels, const Poll &poll) {
    std::vector<std::vector<ChainAnswer>> answers(chains.size());
    std::vector<Workspace> spaces(std::max<Index>(threads, 1));
    const Work work = [&](Worker &worker, Index i) {
        answers[i] = Solver(task, chains[i], spaces[worker.number]).run(kernels, worker.poll);
    };
    std::vector<Index> longest_first(chains.size());
    std::iota(longest_first.begin(), longest_first.end(), 0);
    std::stable_sort(longest_first.begin(), longest_first.end(),
                     [&](Index i, Index j) { return chains[i].size() > chains[j].size(); });
    share_out(longest_first, threads, work, poll, [](const std::function<void()> &body) { body(); });
    return answers;
}

}  // namespace tallytree
