#include "batch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>

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

// What a thread uses for one item after the other; no two of them in one line of the cache.
struct alignas(64) Workspace {
    std::shared_ptr<Layout> layout = std::make_shared<Layout>();
    Arena arena;
    LayoutRequest request;
    std::vector<std::int64_t> tables;

    void lay_out(const BatchItem &item, const Poll &poll) {
        request = item.request;
        if (!item.counts_right.empty()) make_tables(item);
        *layout = build_layout(item.skeleton, request, poll, std::move(*layout));
    }

    void make_tables(const BatchItem &item) {
        const Index variables = static_cast<Index>(item.truth.size()), states = item.skeleton->cardinalities[0];
        tables.resize(item.counts_right.size() * variables * states);
        std::int64_t *to = tables.data();
        request.shifts.clear();
        for (const bool right : item.counts_right) {
            request.shifts.push_back({to, variables, states});
            for (const auto truth : item.truth) {
                std::fill(to, to + states, right ? 0 : 1);
                to[truth] = right ? 1 : 0;
                if (item.background >= 0) to[item.background] = 0;
                to += states;
            }
        }
    }
};

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

// A truth that is forbidden cannot be compared with: then there is no best row.
Index best_row(const BatchItem &item, const Run::Root &root, BatchAnswer &answer) {
    if (!item.losses) return std::max_element(root.values.begin(), root.values.end()) - root.values.begin();
    const Skeleton &skeleton = *item.skeleton;
    Evaluation truth;
    evaluate_scores(skeleton.cardinalities, item.truth.data(), {skeleton.score_scopes.blocks, item.scores}, truth);
    if (truth.score == kNegativeInfinity) return -1;
    const Index row = item.losses->best_row(root, truth.score);
    answer.truth_score = truth.score;
    if (row >= 0) answer.loss = item.losses->at(root.tallies.data() + row * skeleton.statistics);
    return row;
}

void decode(Run &run, const Run::Root &root, Index row, const BatchItem &item,
            std::span<const TableBlock<std::int64_t>> shifts, BatchAnswer &answer, const Poll &poll) {
    const Index statistics = item.skeleton->statistics;
    answer.decoded = true;
    answer.score = root.values.at(row);
    answer.tally.assign(root.tallies.begin() + row * statistics, root.tallies.begin() + (row + 1) * statistics);
    answer.assignment.assign(item.skeleton->cardinalities.size(), 0);
    run.decode(root.cells[row], answer.assignment.data(), poll);
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
        try {
            space.lay_out(item, worker.poll);
        } catch (const BudgetExceeded &) {
            answer.refused = true;
            return;
        }
        const Pass pass(gate, bytes_of(*space.layout), item.request.memory_limit, worker.poll);
        Run run(space.layout, item.scores, AlgebraKind::MaxPlus, 0, kernels, std::move(space.arena));
        run.upward(worker.poll);
        Run::Root root = run.root();
        if (!choose) {
            answer.root = std::move(root);
        } else if (!root.cells.empty()) {
            const Index row = item.asks ? choose(i, root) : best_row(item, root, answer);
            if (row >= 0) decode(run, root, row, item, space.request.shifts, answer, worker.poll);
        }
        space.arena = run.release();
    };
    spread(costliest_first(items_), threads, work, poll, inside);
    return answers;
}

}  // namespace tallytree
