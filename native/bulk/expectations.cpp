#include "bulk/expectations.h"

#include <algorithm>
#include <numeric>

#include "bulk/gate.h"
#include "bulk/tallied_chain.h"

namespace tallytree {
namespace {

// One item on one thread.
class ItemExpectation {
  public:
    ItemExpectation(const Batch &batch, const Expecting &what, Index number, Workspace &space, const Poll &poll)
        : item_(batch.item(number)),
          space_(space),
          poll_(poll),
          mode_(batch.mode),
          limit_(batch.memory_limit()),
          importance_(what.importance[number]),
          question_(what.question(number)) {}

    // In plain products; false where that cannot be done.
    bool find_quickly(TalliedChain &chain, Gate &gate, const MaxPlusKernels *kernels, std::span<double *const> entries,
                      Expectation &found) {
        if (question_.objective == Objective::Given && is_nothing(question_.gains)) return true;
        if (!chain.take(item_, question_, limit_)) return false;
        const Pass pass(gate, chain.bytes(), limit_, poll_);
        Meter meter(poll_);
        found.plain = chain.find(importance_, entries, kernels, meter, found.value);
        return found.plain;
    }

    Expectation find(Gate &gate, const MaxPlusKernels *kernels, std::span<double *const> entries) {
        Expectation found;
        const double passes = importance_ != 0 ? 2 : 1;  // half of the memory is for the derivatives of the tables
        LayoutRequest request = item_.truth ? item_.truth.request(mode_, limit_, space_) : item_.request;
        request.memory_limit /= passes;
        try {
            space_.lay_out(item_.skeleton, request, poll_);
        } catch (const BudgetExceeded &refusal) {
            return {0, true, passes * refusal.bytes};
        }
        const double arena = 8 * static_cast<double>(space_.layout->arena);
        const Pass pass(gate, bytes_of(*space_.layout) + (passes - 1) * arena, limit_, poll_);
        const auto &tables = item_.truth ? item_.truth.scores(item_.scores, space_) : item_.scores;
        const auto use = [&](Run &run) {
            std::vector<double> weights;
            if (question_.objective == Objective::Sums) return put_sums(run);
            if (question_.objective == Objective::Given) weights = by_cells(run);
            else found.value = root_objective(question_.objective, run, item_.losses.get(), weights);
            for (auto &weight : weights) weight *= importance_;
            if (importance_ != 0) differentiate(run, weights, entries);
        };
        space_.run(tables, kernels, poll_, use, AlgebraKind::LogSumExp);
        return found;
    }

  private:
    static bool is_nothing(std::span<const double> gains) {
        return std::all_of(gains.begin(), gains.end(), [](double gain) { return gain == 0; });
    }

    Index place(const Run::Root &root, std::size_t row) const {
        return question_.grid->place(root.tallies.data() + row * question_.grid->low.size());
    }

    std::vector<double> by_cells(const Run &run) const {
        const Run::Root root = run.root();
        std::vector<double> weights(run.root_values().size(), 0.0);
        for (std::size_t row = 0; row < root.cells.size(); row++)
            weights[root.cells[row]] = question_.gains[place(root, row)];
        return weights;
    }

    void put_sums(const Run &run) const {
        const Run::Root root = run.root();
        for (std::size_t row = 0; row < root.cells.size(); row++) question_.sums[place(root, row)] = root.values[row];
    }

    void differentiate(Run &run, std::span<const double> weights, std::span<double *const> entries) {
        if (!item_.truth || !item_.truth.has_states()) return run.differentiate(weights, entries, space_.shares, poll_);
        space_.of_unary.assign(space_.unary.size(), 0.0);
        space_.of_links.assign(item_.scores.size() > 1 ? space_.links.size() : 0, 0.0);
        double *const own[] = {space_.of_unary.data(), space_.of_links.data()};
        run.differentiate(weights, std::span(own).first(item_.scores.size()), space_.shares, poll_);
        item_.truth.add_entries(space_.of_unary, space_.of_links, item_.scores, entries);
    }

    const BatchItem &item_;
    Workspace &space_;
    const Poll &poll_;
    const Mode mode_;
    const double limit_, importance_;
    const TallyQuestion question_;
};

}  // namespace

std::vector<Expectation> expectations(const Batch &batch, const Expecting &what, Index threads,
                                      const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside) {
    std::vector<Expectation> found(batch.size());
    Gate gate;
    Arena::trim(batch.memory_limit());
    threads = threads_within(batch.memory_limit(), threads);
    const double share = batch.memory_limit() / static_cast<double>(threads);
    std::vector<Workspace> workspaces(threads);
    std::vector<TalliedChain> chains(threads);
    const Work work = [&](Worker &worker, Index group) {
        std::vector<double *> entries;
        const Index first = group * batch.size() / what.groups, last = (group + 1) * batch.size() / what.groups;
        for (Index i = first; i < last; i++) {
            if (what.importance[i] != 0) what.places(i, group, entries);
            ItemExpectation item(batch, what, i, workspaces[worker.number], worker.poll);
            const bool quick = item.find_quickly(chains[worker.number], gate, kernels, entries, found[i]);
            chains[worker.number].trim(share);
            if (!quick) found[i] = item.find(gate, kernels, entries);
            workspaces[worker.number].trim(share);
        }
    };
    std::vector<Index> groups(what.groups);
    std::iota(groups.begin(), groups.end(), 0);
    share_out(groups, threads, work, poll, inside);
    return found;
}

}  // namespace tallytree
