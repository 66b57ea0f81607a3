#include "bulk/batch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>

#include "bulk/workspace.h"

namespace tallytree {
namespace {

// Lets runs in while their tables fit the limit together; one that is alone always comes in.
class Gate {
  public:
    void enter(double bytes, double limit, const Poll &poll) {
        std::unique_lock guard(lock_);
        while (inside_ > 0 && inside_ + bytes > limit) {
            left_.wait_for(guard, std::chrono::milliseconds(20));
            guard.unlock();
            poll();
            guard.lock();
        }
        inside_ += bytes;
    }
    void leave(double bytes) {
        const std::lock_guard guard(lock_);
        inside_ -= bytes;
        left_.notify_all();
    }

  private:
    std::mutex lock_;
    std::condition_variable left_;
    double inside_ = 0;
};

class Pass {  // through the gate
  public:
    Pass(Gate &gate, double bytes, double limit, const Poll &poll) : gate_(gate), bytes_(bytes) {
        gate_.enter(bytes, limit, poll);
    }
    ~Pass() { gate_.leave(bytes_); }
    Pass(const Pass &) = delete;
    Pass &operator=(const Pass &) = delete;

  private:
    Gate &gate_;
    double bytes_;
};

// The tables of statistics that compare each variable with the truth of an item.
void make_tables(const BatchItem &item, Workspace &space) {
    const NodeCounts &nodes = *item.nodes;
    if (space.request_of != &nodes) space.request = nodes.request;
    space.request_of = &nodes;
    const Index variables = static_cast<Index>(item.truth.size()), states = item.skeleton->cardinalities[0];
    space.given.resize(nodes.right.size() * variables * states);
    std::int64_t *to = space.given.data();
    space.request.shifts.clear();
    for (const bool right : nodes.right) {
        space.request.shifts.push_back({to, variables, states});
        std::fill(to, to + variables * states, right ? 0 : 1);
        for (const auto truth : item.truth) {
            to[truth] = right ? 1 : 0;
            if (nodes.background >= 0) to[nodes.background] = 0;
            to += states;
        }
    }
}

const LayoutRequest &request_of(const BatchItem &item, Workspace &space) {
    if (!item.nodes) return item.request;
    make_tables(item, space);
    return space.request;
}

std::vector<Index> costliest_first(const std::vector<BatchItem> &items) {
    std::vector<Index> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index i, Index j) { return items[i].skeleton->cost > items[j].skeleton->cost; });
    return order;
}

double bytes_of(const Layout &layout) {
    return 8 * static_cast<double>(layout.arena + layout.scratch) + static_cast<double>(layout.plan_bytes);
}

Evaluation evaluated(const BatchItem &item, std::span<const TableBlock<std::int64_t>> shifts,
                     const std::int64_t *assignment) {
    const Skeleton &skeleton = *item.skeleton;
    Evaluation found;
    evaluate_scores(skeleton.cardinalities, assignment, {skeleton.score_scopes.blocks, item.scores}, found);
    evaluate_shifts(skeleton.cardinalities, assignment, {skeleton.shift_scopes.blocks, shifts}, found);
    evaluate_shifts(skeleton.cardinalities, assignment, {item.shown_scopes, item.shown}, found);
    return found;
}

// A cell of the last table, to be decoded.
struct Chosen {
    Index cell = -1;  // none
    double score = 0;
    std::vector<std::int64_t> tally;
};

Chosen row_of(const Run::Root &root, Index row, Index statistics) {
    const auto *tally = root.tallies.data() + row * statistics;
    return {root.cells.at(row), root.values[row], {tally, tally + statistics}};
}

// A truth that is forbidden cannot be compared with: then there is nothing to choose.
Chosen best_with_loss(const BatchItem &item, const Run &run, BatchAnswer &answer) {
    const Skeleton &skeleton = *item.skeleton;
    Evaluation truth;
    evaluate_scores(skeleton.cardinalities, item.truth.data(), {skeleton.score_scopes.blocks, item.scores}, truth);
    if (truth.score == kNegativeInfinity) return {};
    const auto best = item.losses->best(run, truth.score);
    if (best.empty()) return {};
    answer.truth_score = truth.score;
    answer.loss = best[0].loss;
    return {best[0].cell, best[0].score, item.losses->tally(best[0].place)};
}

Chosen chosen(Index number, const BatchItem &item, const Run &run, const Batch::Choose &choose, BatchAnswer &answer) {
    if (item.losses) return best_with_loss(item, run, answer);
    const Run::Root root = run.root();
    if (root.cells.empty()) return {};
    const Index row = item.asks ? choose(number, root)
                                : std::max_element(root.values.begin(), root.values.end()) - root.values.begin();
    return row < 0 ? Chosen{} : row_of(root, row, item.skeleton->statistics);
}

void decode(Run &run, Chosen what, const BatchItem &item, std::span<const TableBlock<std::int64_t>> shifts,
            BatchAnswer &answer, const Poll &poll) {
    answer.decoded = true;
    answer.score = what.score;
    answer.tally = std::move(what.tally);
    answer.assignment.assign(item.skeleton->cardinalities.size(), 0);
    run.decode(what.cell, answer.assignment.data(), poll);
    answer.evaluation = evaluated(item, shifts, answer.assignment.data());
    if (item.losses) answer.value = item.losses->value(answer.loss, answer.evaluation.score - answer.truth_score);
}

}  // namespace

std::vector<BatchAnswer> Batch::run(Index threads, const MaxPlusKernels *kernels, const Choose &choose,
                                    const Poll &poll, const Inside &inside) const {
    std::vector<BatchAnswer> answers(items_.size());
    Gate gate;
    std::vector<Workspace> workspaces(std::max<Index>(threads, 1));
    const Work work = [&](Worker &worker, Index i) {
        const BatchItem &item = items_[i];
        BatchAnswer &answer = answers[i];
        Workspace &space = workspaces[worker.number];
        const LayoutRequest &request = request_of(item, space);
        try {
            space.lay_out(item.skeleton, request, worker.poll);
        } catch (const BudgetExceeded &) {
            answer.refused = true;
            return;
        }
        const Pass pass(gate, bytes_of(*space.layout), request.memory_limit, worker.poll);
        space.run(item.scores, kernels, worker.poll, [&](Run &run) {
            if (!choose) {
                answer.root = run.root();
                return;
            }
            Chosen what = chosen(i, item, run, choose, answer);
            if (what.cell >= 0) decode(run, std::move(what), item, request.shifts, answer, worker.poll);
        });
    };
    share_out(costliest_first(items_), threads, work, poll, inside);
    return answers;
}

}  // namespace tallytree
