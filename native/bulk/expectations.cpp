#include "bulk/expectations.h"

#include <algorithm>
#include <numeric>

#include "bulk/rounds.h"
#include "bulk/tallied_chain.h"

namespace tallytree {
namespace {

// What a thread has during a round, and keeps from one item to the next.
struct Desk {
    double share;         // of the memory
    double answered = 0;  // the answers have their places
    Workspace space = {};
    TalliedChain chain = {};

    double room() const { return share; }
    double kept() const { return space.kept(); }
    void clear() { space.clear(); }
};

// One item on one thread.
class ItemExpectation {
  public:
    ItemExpectation(const Batch &batch, const Expecting &what, Index number, Desk &desk, const Poll &poll)
        : item_(batch.item(number)),
          desk_(desk),
          space_(desk.space),
          poll_(poll),
          mode_(batch.mode),
          limit_(batch.memory_limit()),
          importance_(what.importance[number]),
          question_(what.question(number)) {}

    // In plain products; false where that cannot be done.
    bool find_quickly(const MaxPlusKernels *kernels, std::span<double *const> entries, Expectation &found) {
        if (question_.objective == Objective::Given && is_nothing(question_.gains)) return true;
        if (!desk_.chain.take(item_, question_, limit_)) return false;
        check_room(desk_.chain.bytes() + space_.kept());
        Meter meter(poll_);
        found.plain = desk_.chain.find(importance_, entries, kernels, meter, found.value);
        return found.plain;
    }

    Expectation find(const MaxPlusKernels *kernels, std::span<double *const> entries) {
        Expectation found;
        const double passes = importance_ != 0 ? 2 : 1;  // half of the memory is for the derivatives of the tables
        LayoutRequest request = item_.truth ? item_.truth.request(mode_, limit_, space_) : item_.request;
        request.memory_limit /= passes;
        try {
            space_.lay_out(item_.skeleton, request, poll_, desk_.room());
        } catch (const BudgetExceeded &refusal) {
            desk_.clear();
            return {0, true, passes * refusal.bytes};
        }
        check_room(bytes_of(*space_.layout) + (passes - 1) * 8 * static_cast<double>(space_.layout->arena));
        run(kernels, entries, found);
        return found;
    }

  private:
    void check_room(double needed) const {
        if (needed > desk_.room() && desk_.room() < limit_) throw OutOfRoom(needed);
    }

    void run(const MaxPlusKernels *kernels, std::span<double *const> entries, Expectation &found) {
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
    }

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
    Desk &desk_;
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
    Arena::trim(batch.memory_limit());
    std::vector<Index> groups(what.groups), next(what.groups);
    std::iota(groups.begin(), groups.end(), 0);
    const auto first = [&](Index group) { return group * batch.size() / what.groups; };
    std::transform(groups.begin(), groups.end(), next.begin(), first);
    // A group that is put off goes on with the item that needs more: sums are added in order.
    const auto work = [&](Desk &desk, Worker &worker, Index group) {
        std::vector<double *> entries;
        for (Index &i = next[group]; i < first(group + 1); i++) {
            if (what.importance[i] != 0) what.places(i, group, entries);
            ItemExpectation item(batch, what, i, desk, worker.poll);
            const bool quick = item.find_quickly(kernels, entries, found[i]);
            desk.chain.trim(desk.share);
            if (!quick) found[i] = item.find(kernels, entries);
            desk.space.trim(desk.share);
        }
    };
    const auto make_desk = [](double share) { return Desk{share}; };
    do_in_rounds(groups, batch.memory_limit(), threads, make_desk, work, poll, inside);
    return found;
}

}  // namespace tallytree
