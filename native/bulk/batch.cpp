#include "bulk/batch.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "bulk/gate.h"

namespace tallytree {
namespace {

std::vector<Index> costliest_first(const std::vector<BatchItem> &items) {
    std::vector<Index> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index i, Index j) { return items[i].skeleton->cost > items[j].skeleton->cost; });
    return order;
}

constexpr double kWorthTrying = 2e4;  // operations of a whole table: some microseconds
constexpr double kHeld = 0.1;         // of the memory, which tables that wait for the next sentence may take
constexpr double kShare = 0.75;       // of the price of a whole table, which a search may take before one is made

constexpr double kMostTables = 2;  // prices of a whole table, which it may take where it is asked for
constexpr double kBandBytes = 80;  // of one operation of a band, at most

// One item on one thread.
class ItemSolver {
  public:
    ItemSolver(const Batch &batch, Index number, Workspace &space, const Poll &poll)
        : item_(batch.item(number)),
          skeleton_(*item_.skeleton),
          number_(number),
          space_(space),
          poll_(poll),
          mode_(batch.mode),
          memory_limit_(batch.memory_limit()) {}

    // By bounds; false where that cannot be done, or is not worth it.
    bool solve_by_bounds(ItemSearch &search, Gate &gate, BatchAnswer &answer) {
        if (item_.strategy == Strategy::Full || item_.chooser != Chooser::Losses || item_.count != 1) return false;
        const bool open = item_.strategy == Strategy::Bounds;
        if (!open && skeleton_.cost < kWorthTrying) return false;
        const LossItem asked{skeleton_, item_.scores, item_.truth, *item_.losses};
        if (!search.take(asked, kHeld * memory_limit_)) return false;
        const double bytes = search.bytes();
        if (bytes > memory_limit_) return false;
        const double truth_score = scored(item_.truth.labels.data(), item_.scores).score;
        if (truth_score == kNegativeInfinity) return false;
        const Pass pass(gate, bytes, memory_limit_, poll_);
        Meter meter(poll_);
        const double work = (open ? kMostTables : kShare) * skeleton_.cost;
        const double band = (memory_limit_ - bytes) / kBandBytes;
        if (!search.run(asked, truth_score, item_.prices, {work, band, open}, meter)) return false;
        if (!open && !search.found().unique()) return false;  // the table tells equals apart
        answer.bounded = choose_labelling(search, truth_score, answer.labellings);
        return answer.bounded;
    }

    void solve(Gate &gate, const MaxPlusKernels *kernels, const Batch::Decoding &decoding, BatchAnswer &answer) {
        request_ = item_.truth ? &item_.truth.request(mode_, memory_limit_, space_) : &item_.request;
        try {
            space_.lay_out(item_.skeleton, *request_, poll_);
        } catch (const BudgetExceeded &refusal) {
            answer.refused = true;
            answer.bytes = refusal.bytes;
            return;
        }
        const Pass pass(gate, bytes_of(*space_.layout), request_->memory_limit, poll_);
        tables_ = item_.truth ? item_.truth.scores(item_.scores, space_) : item_.scores;
        const auto use = [&](Run &run) {
            if (decoding.wanted) decode_all(run, decoding.choose, answer.labellings);
            else answer.root = run.root();
        };
        space_.run(tables_, kernels, poll_, use);
        gate.keep(8 * static_cast<double>(answer.root.cells.size() * (2 + skeleton_.statistics)));
    }

  private:
    // A cell of the last table, to be decoded.
    struct Chosen {
        Index cell;
        double score;
        std::vector<std::int64_t> tally;
    };

    // Of labellings that are as good as each other up to rounding the best, and among equals the one of the first
    // tally.
    bool choose_labelling(const ItemSearch &search, double truth_score, std::vector<Labelling> &to) {
        Index first = 0;
        for (const auto &one : search.found().candidates()) {
            Labelling found;
            found.tally.assign(one.tally.begin(), one.tally.begin() + skeleton_.statistics);
            found.labels.assign(skeleton_.cardinalities.size(), 0);
            search.decode(one.number, found.labels.data());
            evaluate(found);
            found.promised = found.evaluation.score;
            const double apart = std::abs(found.evaluation.score - one.score);
            found.certified = found.evaluation.sums == found.tally &&
                              apart <= rounding_bound(found.evaluation) + search.found().tolerance();
            if (!found.certified) {
                to.assign(1, std::move(found));
                return true;
            }
            add_loss(found, truth_score);
            const Index place = item_.losses->place(found.tally.data());
            if (!to.empty() && (found.value < to[0].value || (found.value == to[0].value && place > first))) continue;
            to.assign(1, std::move(found));
            first = place;
        }
        return !to.empty();
    }

    void add_loss(Labelling &answer, double truth_score) const {
        answer.truth_score = truth_score;
        answer.loss = item_.losses->at(answer.evaluation.sums.data());
        answer.value = item_.losses->value(answer.loss, answer.evaluation.score - truth_score);
    }

    void decode_all(Run &run, const Batch::Choose &choose, std::vector<Labelling> &labellings) {
        double truth_score = 0;
        if (item_.truth) truth_score = scored(item_.truth.labels.data(), item_.scores).score;
        if (truth_score == kNegativeInfinity) return;  // there is nothing to compare with
        for (auto &what : chosen(run, choose, truth_score))
            labellings.push_back(decoded(run, std::move(what), truth_score));
    }

    std::vector<Chosen> chosen(const Run &run, const Batch::Choose &choose, double truth_score) const {
        std::vector<Chosen> best;
        if (item_.chooser == Chooser::Losses) {
            for (const auto &one : item_.losses->best(run, truth_score, item_.count))
                best.push_back({one.cell, one.score, item_.losses->tally(one.place)});
            return best;
        }
        const Run::Root root = run.root();
        if (root.cells.empty()) return best;
        const auto add = [&](Index row) {
            const auto *tally = root.tallies.data() + row * skeleton_.statistics;
            best.push_back({root.cells.at(row), root.values[row], {tally, tally + skeleton_.statistics}});
        };
        if (item_.chooser == Chooser::Score)
            add(std::max_element(root.values.begin(), root.values.end()) - root.values.begin());
        else
            for (const Index row : choose(number_, root)) add(row);
        return best;
    }

    Labelling decoded(Run &run, Chosen what, double truth_score) {
        Labelling answer;
        answer.promised = what.score;
        answer.tally = std::move(what.tally);
        answer.labels.assign(skeleton_.cardinalities.size(), 0);
        run.decode(what.cell, answer.labels.data(), poll_);
        const Evaluation folded = item_.truth.fold.empty() ? Evaluation() : scored(answer.labels.data(), tables_);
        evaluate(answer);
        answer.certified = is_certified(answer, folded);
        if (!item_.losses || !answer.certified) return answer;
        add_loss(answer, truth_score);
        if (folded.terms) answer.promised = answer.evaluation.score + (answer.promised - folded.score);
        return answer;
    }

    // Takes states and leaves labels, evaluated straight from the definitions of scores and statistics.
    void evaluate(Labelling &answer) {
        const std::span<const std::int32_t> cardinalities = skeleton_.cardinalities;
        std::vector<std::int64_t> tally;
        if (item_.truth) {
            tally = item_.truth.tally(answer.labels);
            item_.truth.relabel(answer.labels);
        }
        Evaluation &to = answer.evaluation = scored(answer.labels.data(), item_.scores);
        to.sums = std::move(tally);
        if (!item_.truth)
            evaluate_shifts(cardinalities, answer.labels.data(), {skeleton_.shift_scopes.blocks, request_->shifts}, to);
        evaluate_shifts(cardinalities, answer.labels.data(), {item_.shown_scopes, item_.shown}, to);
    }

    Evaluation scored(const std::int64_t *labels, std::span<const TableBlock<double>> tables) {
        std::span<const std::int32_t> cardinalities = skeleton_.cardinalities;
        if (item_.truth && item_.truth.tables().links) {
            space_.cardinalities.assign(cardinalities.size(), static_cast<std::int32_t>(item_.scores[0].size));
            cardinalities = space_.cardinalities;
        }
        Evaluation to;
        evaluate_scores(cardinalities, labels, {skeleton_.score_scopes.blocks, tables}, to);
        return to;
    }

    // Whether the labels have the score that the messages promise, with what was folded into it, and the tally.
    bool is_certified(const Labelling &answer, const Evaluation &folded) const {
        const Evaluation &attained = folded.terms ? folded : answer.evaluation;
        return std::abs(attained.score - answer.promised) <= rounding_bound(attained) &&
               (folded.terms || totals(answer.evaluation.sums) == answer.tally);
    }

    // The tallies of the statistics that are carried, from the sums of their blocks.
    std::vector<std::int64_t> totals(const std::vector<std::int64_t> &sums) const {
        if (item_.truth) return sums;
        std::vector<std::int64_t> totals(skeleton_.statistics, 0);
        for (std::size_t i = 0; i < skeleton_.statistic_of.size(); i++) totals[skeleton_.statistic_of[i]] += sums[i];
        for (std::size_t i = 0; i < totals.size(); i++) totals[i] = std::min(totals[i], request_->caps[i]);
        return totals;
    }

    const BatchItem &item_;
    const Skeleton &skeleton_;
    const Index number_;
    Workspace &space_;
    const Poll &poll_;
    const Mode mode_;
    const double memory_limit_;
    const LayoutRequest *request_ = nullptr;
    std::span<const TableBlock<double>> tables_;  // of scores, as the messages have them
};

}  // namespace

std::vector<BatchAnswer> Batch::run(Index threads, const MaxPlusKernels *kernels, const Decoding &decoding,
                                    const Poll &poll, const Inside &inside) const {
    std::vector<BatchAnswer> answers(items_.size());
    Gate gate;
    Arena::trim(memory_limit_);
    threads = threads_within(memory_limit_, threads);
    std::vector<Workspace> workspaces(threads);
    std::vector<std::unique_ptr<ItemSearch>> searches(threads);
    const Work work = [&](Worker &worker, Index i) {
        Workspace &space = workspaces[worker.number];
        auto &search = searches[worker.number];
        if (!search) search = std::make_unique<ItemSearch>(*kernels);
        ItemSolver solver(*this, i, space, worker.poll);
        const double share = memory_limit_ / static_cast<double>(threads);
        const bool found = decoding.wanted && solver.solve_by_bounds(*search, gate, answers[i]);
        if (search->kept() > share) search.reset();
        if (!found) solver.solve(gate, kernels, decoding, answers[i]);
        space.trim(share);
    };
    share_out(costliest_first(items_), threads, work, poll, inside);
    return answers;
}

}  // namespace tallytree
