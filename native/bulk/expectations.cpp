#include "bulk/expectations.h"

#include <numeric>

#include "bulk/gate.h"
#include "bulk/tallied_chain.h"

namespace tallytree {
namespace {

// One item on one thread.
class ItemExpectation {
  public:
    ItemExpectation(const Batch &batch, Index number, Workspace &space, const Poll &poll)
        : item_(batch.item(number)),
          number_(number),
          space_(space),
          poll_(poll),
          mode_(batch.mode),
          limit_(batch.memory_limit()) {}

    // In plain products; false where that cannot be done.
    bool find_quickly(TalliedChain &chain, Gate &gate, const MaxPlusKernels *kernels, const Expecting &what,
                      std::span<double *const> entries, Expectation &found) {
        if (!chain.take(item_, what.objective, limit_)) return false;
        const Pass pass(gate, chain.bytes(), limit_, poll_);
        Meter meter(poll_);
        return chain.find(what.importance[number_], entries, kernels, meter, found.value);
    }

    Expectation find(Gate &gate, const MaxPlusKernels *kernels, const Expecting &what,
                     std::span<double *const> entries) {
        Expectation found;
        const LayoutRequest request =
            item_.truth ? item_.truth.request(mode_, limit_ / 2, space_) : halved(item_.request);
        try {
            space_.lay_out(item_.skeleton, request, poll_);
        } catch (const BudgetExceeded &refusal) {
            return {0, true, 2 * refusal.bytes};
        }
        const Pass pass(gate, bytes_of(*space_.layout) + 8 * static_cast<double>(space_.layout->arena), limit_, poll_);
        const auto &tables = item_.truth ? item_.truth.scores(item_.scores, space_) : item_.scores;
        const auto use = [&](Run &run) {
            std::vector<double> weights;
            if (what.objective == Objective::Given) weights = by_cells(run, what.gains(number_));
            else found.value = root_objective(what.objective, run, item_.losses.get(), weights);
            const double importance = what.importance[number_];
            for (auto &weight : weights) weight *= importance;
            if (importance != 0) differentiate(run, weights, entries);
        };
        space_.run(tables, kernels, poll_, use, AlgebraKind::LogSumExp);
        return found;
    }

  private:
    // Half of the memory is for the derivatives of the tables.
    static LayoutRequest halved(LayoutRequest request) {
        request.memory_limit /= 2;
        return request;
    }

    static std::vector<double> by_cells(const Run &run, std::span<const double> gains) {
        const Run::Root root = run.root();
        std::vector<double> weights(run.root_values().size(), 0.0);
        for (std::size_t row = 0; row < std::min(gains.size(), root.cells.size()); row++)
            weights[root.cells[row]] = gains[row];
        return weights;
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
    const Index number_;
    Workspace &space_;
    const Poll &poll_;
    const Mode mode_;
    const double limit_;
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
            what.places(i, group, entries);
            ItemExpectation item(batch, i, workspaces[worker.number], worker.poll);
            const bool quick = item.find_quickly(chains[worker.number], gate, kernels, what, entries, found[i]);
            chains[worker.number].trim(share);
            if (!quick) found[i] = item.find(gate, kernels, what, entries);
            workspaces[worker.number].trim(share);
        }
    };
    std::vector<Index> groups(what.groups);
    std::iota(groups.begin(), groups.end(), 0);
    share_out(groups, threads, work, poll, inside);
    return found;
}

}  // namespace tallytree
