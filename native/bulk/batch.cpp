#include "bulk/batch.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "bulk/rounds.h"
#include "plan/rolling.h"

namespace tallytree {
namespace {

std::vector<Index> costliest_first(const std::vector<BatchItem> &items) {
    std::vector<Index> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index i, Index j) { return items[i].skeleton->cost > items[j].skeleton->cost; });
    return order;
}

// Units of work, about a nanosecond each: of tables below which no search is tried; of an answer from tables, with its
// objects in Python, and for each of its variables.
constexpr double kWorthTrying = 1e4, kAnswer = 1e4, kAnswered = 150;
constexpr double kPriced = 4e3, kPricedStep = 35;  // to find out what tables take
constexpr double kMostTables = 2;  // times what tables take, which a search may take where it is asked for
constexpr double kHeld = 0.1;      // of the memory, which tables that wait for the next sentence may take
constexpr double kBandBytes = 16;  // for each unit of work of a band, at most: a cell takes five units or more

// What a thread has during a round, and keeps from one item to the next.
struct Desk {
    const MaxPlusKernels *kernels;
    double share;         // of the memory
    double answered = 0;  // bytes of the answers found here
    Workspace space = {};
    std::unique_ptr<ItemSearch> searching = {};

    ItemSearch &search() {
        if (!searching) searching = std::make_unique<ItemSearch>(*kernels);
        return *searching;
    }
    double room() const { return share - answered; }
    double kept() const { return space.kept() + (searching ? searching->kept() : 0); }
    // Keeps a search only where it takes too little to count.
    void trim_search() {
        constexpr double kPart = 16;
        if (!searching || kPart * searching->kept() <= share) return;
        searching.reset();
        give_memory_back();
    }
    void trim() {
        trim_search();
        space.trim(share);
    }
    void clear() {
        searching.reset();
        space.clear();
    }
};

// One item on one thread.
class ItemSolver {
  public:
    ItemSolver(const Batch &batch, Index number, Desk &desk, const Poll &poll)
        : item_(batch.item(number)),
          skeleton_(*item_.skeleton),
          number_(number),
          desk_(desk),
          space_(desk.space),
          poll_(poll),
          mode_(batch.mode),
          memory_limit_(batch.memory_limit()) {}

    // By bounds; false where that cannot be done, or is not worth it: several tallies are where tables take long, as
    // those of chunks do.
    bool solve_by_bounds(BatchAnswer &answer) {
        if (item_.strategy == Strategy::Full || item_.chooser == Chooser::Ask) return false;
        if (!open() && item_.count > 1 && !item_.truth.has_states()) return false;
        answer.bounded = item_.chooser == Chooser::Losses ? search_losses(answer) : search_scores(answer);
        return answer.bounded;
    }

    void solve(const Batch::Decoding &decoding, BatchAnswer &answer) {
        request_ = item_.truth ? &item_.truth.request(mode_, memory_limit_, space_) : &item_.request;
        try {
            space_.lay_out(item_.skeleton, *request_, poll_, desk_.room());
        } catch (const BudgetExceeded &refusal) {
            answer.refused = true;
            answer.bytes = refusal.bytes;
            return desk_.clear();
        }
        constexpr bool kAllLater = false;
        roll(*space_.layout, desk_.room(), kAllLater);
        const double needed = bytes_of(*space_.layout) + root_bytes(decoding);
        if (needed > desk_.room() && desk_.room() < memory_limit_) throw OutOfRoom(needed);
        tables_ = item_.truth ? item_.truth.scores(item_.scores, space_) : item_.scores;
        const auto use = [&](Run &run) {
            if (decoding.wanted) decode_all(run, decoding.choose, answer.labellings);
            else answer.root = run.root();
        };
        space_.run(tables_, desk_.kernels, poll_, use);
        desk_.answered += 8 * static_cast<double>(answer.root.cells.capacity() * (2 + skeleton_.statistics));
    }

  private:
    bool open() const { return item_.strategy == Strategy::Bounds; }

    bool search_losses(BatchAnswer &answer) {
        const LossItem asked{skeleton_, item_.scores, item_.truth, *item_.losses};
        if (!takes(asked)) return false;
        const double work = most_work(price_of_tables(skeleton_, item_.truth.step_ranges(skeleton_, space_)));
        if (!(work > 0)) return false;
        const double truth_score = scored(item_.truth.labels.data(), item_.scores).score;
        if (truth_score == kNegativeInfinity) return false;
        Meter meter(poll_);
        return desk_.search().run(asked, item_.count, truth_score, item_.prices, limits(work), meter) &&
               choose_labelling(truth_score, answer.labellings);
    }

    bool search_scores(BatchAnswer &answer) {
        if (!open() && has_ties(skeleton_, item_.scores)) return false;
        request_ = &item_.request;
        const ScoreItem asked{skeleton_, item_.scores, item_.request, item_.allowed.get()};
        if (!takes(asked)) return false;
        const double work = most_work(price_of_tables(skeleton_, item_.request));
        if (!(work > 0)) return false;
        Meter meter(poll_);
        return desk_.search().run(asked, limits(work), meter) && choose_labelling(0, answer.labellings);
    }

    // What a search may take; 0 where the tables take so little that none is tried.
    double most_work(const TablePrice &price) const {
        const double tables = price.work + price.layout;
        const double answer = kAnswer + kAnswered * static_cast<double>(skeleton_.cardinalities.size());
        if (open()) return kMostTables * (tables + answer);
        const double priced = kPriced + kPricedStep * static_cast<double>(skeleton_.steps.size());
        return tables < kWorthTrying ? 0 : kSearchShare * (tables + answer) - priced;
    }

    template <class Asked>
    bool takes(const Asked &asked) {
        return desk_.search().take(asked, kHeld * memory_limit_) && desk_.search().bytes() <= memory_limit_;
    }

    bounds::TallySearch::Limits limits(double work) {
        const double least = desk_.search().bytes(), band = (memory_limit_ - least) / kBandBytes;
        const double room = (desk_.room() - least - space_.kept()) / kBandBytes;
        if (room < std::min(band, 0.0)) throw OutOfRoom(least);
        return {work, band, room, open()};
    }

    // Of all tallies and their values, where these are listed: to be kept, or to choose from, in arrays of their own.
    double root_bytes(const Batch::Decoding &decoding) const {
        const auto cells = static_cast<double>(space_.layout->tables.back().cells);
        const auto statistics = static_cast<double>(skeleton_.statistics);
        if (!decoding.wanted) return 8 * cells * (2 + statistics);
        return item_.chooser == Chooser::Ask ? 8 * cells * (3 + 2 * statistics) : 0;
    }

    // A cell of the last table, to be decoded.
    struct Chosen {
        Index cell;
        double score;
        std::vector<std::int64_t> tally;
    };

    // Of labellings that are as good as each other up to rounding the best, and among equals the one of the first
    // tally, or all of the several that are wanted; false where the table is to tell them apart.
    bool choose_labelling(double truth_score, std::vector<Labelling> &to) {
        const bounds::TallySearch &search = desk_.search().found();
        if (!open() && !search.unique()) return false;
        for (std::size_t i = 0; i < search.candidates().size(); i++) {
            Labelling found = labelling(i, truth_score);
            if (!found.certified) {
                to.assign(1, std::move(found));
                return true;
            }
            if (item_.count > 1) to.push_back(std::move(found));
            else if (to.empty() || found.value > to[0].value ||
                     (found.value == to[0].value && found.tally < to[0].tally))
                to.assign(1, std::move(found));
        }
        return !to.empty();
    }

    // A candidate of the search.
    Labelling labelling(std::size_t number, double truth_score) {
        const bounds::TallySearch &search = desk_.search().found();
        const auto &one = search.candidates()[number];
        Labelling found;
        found.tally = capped({one.tally.begin(), one.tally.begin() + skeleton_.statistics});
        found.labels.assign(skeleton_.cardinalities.size(), 0);
        search.decode(number, found.labels.data());
        evaluate(found);
        found.promised = found.evaluation.score;
        found.certified =
            totals(found.evaluation.sums) == found.tally &&
            std::abs(found.evaluation.score - one.score) <= rounding_bound(found.evaluation) + search.tolerance();
        if (item_.losses && found.certified) add_loss(found, truth_score);
        else found.value = found.evaluation.score;
        return found;
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
        if (item_.chooser == Chooser::Score) {
            if (const Index row = best_row(root); row >= 0) add(row);
        } else
            for (const Index row : choose(number_, root)) add(row);
        return best;
    }

    // The first of those with the best score that are allowed; -1: none is.
    Index best_row(const Run::Root &root) const {
        const auto begin = root.values.begin();
        if (!item_.allowed) return std::max_element(begin, root.values.end()) - begin;
        Index best = -1;
        for (Index row = 0; row < static_cast<Index>(root.values.size()); row++)
            if (item_.allowed->allows(root.tallies.data() + row * skeleton_.statistics) &&
                (best < 0 ? root.values[row] > kNegativeInfinity : root.values[row] > root.values[best]))
                best = row;
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
        return capped(std::move(totals));
    }

    std::vector<std::int64_t> capped(std::vector<std::int64_t> totals) const {
        if (item_.truth) return totals;
        for (std::size_t i = 0; i < totals.size(); i++) totals[i] = std::min(totals[i], request_->caps[i]);
        return totals;
    }

    const BatchItem &item_;
    const Skeleton &skeleton_;
    const Index number_;
    Desk &desk_;
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
    Arena::trim(memory_limit_);
    const auto work = [&](Desk &desk, Worker &worker, Index i) {
        ItemSolver solver(*this, i, desk, worker.poll);
        if (!decoding.wanted || !solver.solve_by_bounds(answers[i])) {
            desk.trim_search();
            solver.solve(decoding, answers[i]);
        }
        desk.trim();
    };
    const auto make_desk = [&](double share) { return Desk{kernels, share}; };
    do_in_rounds(costliest_first(items_), memory_limit_, threads, make_desk, work, poll, inside);
    return answers;
}

}  // namespace tallytree
