// Batches at the border to Python: many problems go in one by one, and come out as a few long arrays.
#include "batch.h"
#include "border.h"

namespace tallytree {
namespace {

using Numbers = std::vector<std::int64_t>;

PyLossTable make_loss_table(Tables losses, const Numbers &low, bool slack, double margin) {
    LossTable table;
    table.losses.assign(losses.data(), losses.data() + losses.size());
    table.low = low;
    for (std::size_t i = 0; i < losses.ndim(); i++) table.extent.push_back(static_cast<Index>(losses.shape(i)));
    if (table.low.size() != table.extent.size()) throw nb::value_error("a table of losses has one axis per statistic");
    table.slack = slack;
    table.margin = margin;
    return {std::make_shared<const LossTable>(std::move(table))};
}

struct Kept {  // what an item points into
    std::vector<IntTables> shifts, shown;
    std::vector<Tables> tables;
    std::vector<Scopes> shown_scopes;
};

struct PyBatch {
    int mode;
    double memory_limit;
    std::vector<Kept> kept;
    Batch batch;
    std::vector<BatchAnswer> answers;
};

void add_item(PyBatch &self, const PySkeleton &skeleton, std::vector<IntTables> shifts, const Numbers &caps,
              const Numbers &low, const Numbers &high, std::vector<Tables> tables, std::vector<Scopes> shown_scopes,
              std::vector<IntTables> shown, bool asks) {
    BatchItem item;
    item.asks = asks;
    item.skeleton = skeleton.skeleton;
    item.request = layout_request(*item.skeleton, shifts, caps, low, high, self.mode, self.memory_limit);
    item.scores = score_blocks(*item.skeleton, tables);
    item.shown_scopes = scope_blocks(shown_scopes);
    check_scopes(item.shown_scopes, item.skeleton->cardinalities.size());
    item.shown = table_blocks<std::int64_t>(shown);
    check_tables(*item.skeleton, item.shown_scopes, item.shown);
    self.kept.push_back({std::move(shifts), std::move(shown), std::move(tables), std::move(shown_scopes)});
    self.batch.add(std::move(item));
}

// Statistics of single variables, all of them alike, in the order of the variables.
void check_alike(const Skeleton &skeleton, std::size_t statistics) {
    const auto &blocks = skeleton.shift_scopes.blocks;
    const auto variables = static_cast<Index>(skeleton.cardinalities.size());
    if (blocks.size() != statistics || skeleton.statistics != static_cast<Index>(statistics) || variables == 0)
        throw nb::value_error("one block for each statistic, and a variable, are needed");
    for (auto n : skeleton.cardinalities)
        if (n != skeleton.cardinalities[0]) throw nb::value_error("the variables are not alike");
    for (const auto &block : blocks)
        for (Index k = 0; k < variables; k++)
            if (block.count != variables || block.arity != 1 || block.data[k] != k)
                throw nb::value_error("a statistic does not look at each variable by itself");
}

// An item whose statistics compare each variable with the truth, and that maximises a loss of their tallies together
// with its score.
void add_nodes(PyBatch &self, const PySkeleton &skeleton, std::vector<bool> counts_right, std::int64_t background,
               Ints truth, const PyLossTable &losses, std::vector<Tables> tables) {
    BatchItem item;
    item.skeleton = skeleton.skeleton;
    check_alike(*item.skeleton, counts_right.size());
    if (losses.table->low.size() != counts_right.size())
        throw nb::value_error("a table of losses has one axis per statistic");
    if (truth.size() != item.skeleton->cardinalities.size()) throw nb::value_error("one state per variable is needed");
    if (background < -1 || background >= item.skeleton->cardinalities[0])
        throw nb::value_error("the background is no state");
    for (auto state : as_span(truth))
        if (state < 0 || state >= item.skeleton->cardinalities[0]) throw nb::value_error("a state is out of range");
    item.scores = score_blocks(*item.skeleton, tables);
    item.request.caps.assign(counts_right.size(), kUncapped);
    item.request.window.low.assign(counts_right.size(), -kNoLimit);
    item.request.window.high.assign(counts_right.size(), kNoLimit);
    item.request.mode = static_cast<Mode>(self.mode);
    item.request.memory_limit = self.memory_limit;
    item.losses = losses.table;
    item.truth.assign(truth.data(), truth.data() + truth.size());
    item.counts_right = std::move(counts_right);
    item.background = background;
    self.kept.push_back({{}, {}, std::move(tables), {}});
    self.batch.add(std::move(item));
}

// A Python thread state of its own for a thread that calls back, made once.
void inside_python(const std::function<void()> &body) {
    nb::gil_scoped_acquire state;
    nb::gil_scoped_release release;
    body();
}

void run_batch(PyBatch &self, std::int64_t threads, nb::object choose) {
    Batch::Choose chosen;
    if (!choose.is_none())
        chosen = [&](Index item, const Run::Root &root) {
            nb::gil_scoped_acquire gil;
            const auto columns = static_cast<std::size_t>(self.batch.item(item).skeleton->statistics);
            nb::object tallies = to_numpy(Numbers(root.tallies), {root.cells.size(), columns});
            return nb::cast<Index>(choose(item, tallies, to_numpy(std::vector<double>(root.values))));
        };
    nb::gil_scoped_release release;
    self.answers = self.batch.run(threads, chosen_kernels, chosen, kPoll, inside_python);
}

template <class T>
void append(std::vector<T> &to, const std::vector<T> &from) {
    to.insert(to.end(), from.begin(), from.end());
}

// How many rows each root has, then cells, tallies and values of all of them, one after the other.
auto roots(const PyBatch &self) {
    Numbers rows, cells, tallies;
    std::vector<double> values;
    for (const auto &answer : self.answers) {
        rows.push_back(static_cast<std::int64_t>(answer.root.cells.size()));
        append(cells, answer.root.cells);
        append(tallies, answer.root.tallies);
        append(values, answer.root.values);
    }
    return nb::make_tuple(to_numpy(std::move(rows)), to_numpy(std::move(cells)), to_numpy(std::move(tallies)),
                          to_numpy(std::move(values)));
}

// The labellings that were decoded, their tallies as the messages have them, and the sums of their blocks of integer
// tables, one after the other; how long each item's are, with a negative number of tallies where nothing was decoded;
// and for each item the messages' score, the model's, the size of its local scores and their number, value, loss and
// the truth's score.
auto labellings(const PyBatch &self) {
    Numbers assignments, tallies, sums, sizes;
    std::vector<double> known;
    for (const auto &answer : self.answers) {
        append(assignments, answer.assignment);
        append(tallies, answer.tally);
        append(sums, answer.evaluation.sums);
        const auto size = [](const Numbers &numbers) { return static_cast<std::int64_t>(numbers.size()); };
        const std::int64_t row[] = {size(answer.assignment), answer.decoded ? size(answer.tally) : -1,
                                    size(answer.evaluation.sums)};
        sizes.insert(sizes.end(), row, row + 3);
        const auto &[score, magnitude, terms, _] = answer.evaluation;
        const double numbers[] = {answer.score, score,       magnitude,         static_cast<double>(terms),
                                  answer.value, answer.loss, answer.truth_score};
        known.insert(known.end(), numbers, numbers + 7);
    }
    const std::size_t items = self.answers.size();
    return nb::make_tuple(to_numpy(std::move(assignments)), to_numpy(std::move(tallies)), to_numpy(std::move(sums)),
                          to_numpy(std::move(sizes), {items, 3}), to_numpy(std::move(known), {items, 7}));
}

auto refused(const PyBatch &self) {
    Numbers items;
    for (std::size_t i = 0; i < self.answers.size(); i++)
        if (self.answers[i].refused) items.push_back(static_cast<std::int64_t>(i));
    return items;
}

}  // namespace

void bind_batch(nb::module_ &m) {
    nb::class_<PyLossTable>(m, "LossTable")
        .def(
            "__init__",
            [](PyLossTable *self, Tables losses, const Numbers &low, bool slack, double margin) {
                new (self) PyLossTable(make_loss_table(losses, low, slack, margin));
            },
            "losses"_a.noconvert(), "low"_a, "slack"_a, "margin"_a);

    nb::class_<PyBatch>(m, "Batch")
        .def(
            "__init__",
            [](PyBatch *self, int mode, double memory_limit) { new (self) PyBatch{mode, memory_limit, {}, {}, {}}; },
            "mode"_a, "memory_limit"_a)
        .def("add", &add_item, "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a,
             "tables"_a.noconvert(), "shown_scopes"_a.noconvert(), "shown"_a.noconvert(), "asks"_a)
        .def("add_nodes", &add_nodes, "skeleton"_a, "counts_right"_a, "background"_a, "truth"_a.noconvert(), "losses"_a,
             "tables"_a.noconvert())
        .def("run", &run_batch, "threads"_a, "choose"_a.none())
        .def_prop_ro("refused", &refused)
        .def("roots", &roots)
        .def("labellings", &labellings);
}

}  // namespace tallytree
