// Batches at the border to Python: many problems go in one by one, and come out as a few long arrays.
#include "bulk/batch.h"
#include "bind/checks.h"

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
    Ints truths;
};

struct PyBatch {
    Mode mode;
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
    self.kept.push_back({std::move(shifts), std::move(shown), std::move(tables), std::move(shown_scopes), {}});
    self.batch.add(std::move(item));
}

// Statistics of single variables, all of them alike, in the order of the variables.
void check_alike(const Skeleton &skeleton, const NodeCounts &nodes) {
    const auto &blocks = skeleton.shift_scopes.blocks;
    const std::size_t statistics = nodes.right.size();
    const auto variables = static_cast<Index>(skeleton.cardinalities.size());
    if (blocks.size() != statistics || skeleton.statistics != static_cast<Index>(statistics) || variables == 0)
        throw nb::value_error("one block for each statistic, and a variable, are needed");
    for (auto n : skeleton.cardinalities)
        if (n != skeleton.cardinalities[0]) throw nb::value_error("the variables are not alike");
    for (const auto &block : blocks)
        for (Index k = 0; k < variables; k++)
            if (block.count != variables || block.arity != 1 || block.data[k] != k)
                throw nb::value_error("a statistic does not look at each variable by itself");
    if (nodes.background < -1 || nodes.background >= skeleton.cardinalities[0])
        throw nb::value_error("the background is no state");
}

std::shared_ptr<const NodeCounts> node_counts(const PyBatch &self, std::vector<bool> right, Index background) {
    NodeCounts nodes;
    nodes.request.caps.assign(right.size(), kUncapped);
    nodes.request.window.low.assign(right.size(), -kNoLimit);
    nodes.request.window.high.assign(right.size(), kNoLimit);
    nodes.request.mode = self.mode;
    nodes.request.memory_limit = self.memory_limit;
    nodes.right = std::move(right);
    nodes.background = background;
    return std::make_shared<const NodeCounts>(std::move(nodes));
}

// Items whose statistics compare each variable with the truth, and that maximise a loss of their tallies together with
// their score. Truths and tables lie one after the other.
void add_nodes(PyBatch &self, const std::vector<PySkeleton> &skeletons, std::vector<bool> right,
               std::int64_t background, Ints truths, const std::vector<PyLossTable> &losses,
               std::vector<Tables> tables) {
    if (losses.size() != skeletons.size()) throw nb::value_error("one table of losses per item is needed");
    const auto nodes = node_counts(self, std::move(right), background);
    std::vector<BatchItem> items(skeletons.size());
    const Skeleton *checked = nullptr;
    std::size_t variable = 0, table = 0;
    for (std::size_t i = 0; i < items.size(); i++) {
        BatchItem &item = items[i];
        item.skeleton = skeletons[i].skeleton;
        const Skeleton &skeleton = *item.skeleton;
        if (checked != &skeleton) check_alike(skeleton, *nodes);
        checked = &skeleton;
        if (losses[i].table->low.size() != nodes->right.size())
            throw nb::value_error("a table of losses has one axis per statistic");
        const std::size_t variables = skeleton.cardinalities.size(), blocks = skeleton.score_scopes.blocks.size();
        if (variables > truths.size() - variable) throw nb::value_error("one state per variable is needed");
        if (blocks > tables.size() - table) throw nb::value_error("one array of tables per block of scopes is needed");
        item.truth = as_span(truths).subspan(variable, variables);
        for (auto state : item.truth)
            if (state < 0 || state >= skeleton.cardinalities[0]) throw nb::value_error("a state is out of range");
        item.scores = score_blocks(skeleton, std::span(tables).subspan(table, blocks));
        item.losses = losses[i].table;
        item.nodes = nodes;
        variable += variables;
        table += blocks;
    }
    if (variable != truths.size()) throw nb::value_error("one state per variable is needed");
    if (table != tables.size()) throw nb::value_error("one array of tables per block of scopes is needed");
    self.kept.push_back({{}, {}, std::move(tables), {}, truths});
    for (auto &item : items) self.batch.add(std::move(item));
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

// What is known of the labelling of one item; all of it is zero where there is none.
struct Answer {
    bool found;
    double promised, score;  // by the messages, and by the model
    double magnitude;        // of the local scores, added up
    std::int64_t terms;      // their number
    double value, loss, truth_score;
};

nb::object to_answers(std::vector<Answer> answers) {
    return to_records(std::move(answers), {{"found", "?", offsetof(Answer, found)},
                                           {"promised", "f8", offsetof(Answer, promised)},
                                           {"score", "f8", offsetof(Answer, score)},
                                           {"magnitude", "f8", offsetof(Answer, magnitude)},
                                           {"terms", "i8", offsetof(Answer, terms)},
                                           {"value", "f8", offsetof(Answer, value)},
                                           {"loss", "f8", offsetof(Answer, loss)},
                                           {"truth_score", "f8", offsetof(Answer, truth_score)}});
}

// Labellings, their tallies as the messages have them, and the sums of their blocks of integer tables, one after the
// other, and where those of each item begin; then what is known of each item.
auto labellings(const PyBatch &self) {
    Numbers assignments, tallies, sums, begins{0, 0, 0};
    std::vector<Answer> known;
    const auto add = [&](Numbers &to, const Numbers &from, Index size) {
        to.insert(to.end(), from.begin(), from.end());
        to.resize(begins[begins.size() - 3] + size);
        begins.push_back(static_cast<std::int64_t>(to.size()));
    };
    for (Index i = 0; i < self.batch.size() && !self.answers.empty(); i++) {
        const Skeleton &skeleton = *self.batch.item(i).skeleton;
        const BatchAnswer &answer = self.answers[i];
        add(assignments, answer.assignment, static_cast<Index>(skeleton.cardinalities.size()));
        add(tallies, answer.tally, skeleton.statistics);
        add(sums, answer.evaluation.sums,
            static_cast<Index>(skeleton.shift_scopes.blocks.size() + self.batch.item(i).shown.size()));
        const auto &[score, magnitude, terms, _] = answer.evaluation;
        known.push_back(
            {answer.decoded, answer.score, score, magnitude, terms, answer.value, answer.loss, answer.truth_score});
    }
    const std::size_t items = self.answers.size();
    return nb::make_tuple(to_numpy(std::move(assignments)), to_numpy(std::move(tallies)), to_numpy(std::move(sums)),
                          to_numpy(std::move(begins), {items + 1, 3}), to_answers(std::move(known)));
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
            [](PyBatch *self, Mode mode, double memory_limit) { new (self) PyBatch{mode, memory_limit, {}, {}, {}}; },
            "mode"_a, "memory_limit"_a)
        .def("add", &add_item, "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a,
             "tables"_a.noconvert(), "shown_scopes"_a.noconvert(), "shown"_a.noconvert(), "asks"_a)
        .def("add_nodes", &add_nodes, "skeletons"_a, "counts_right"_a, "background"_a, "truths"_a.noconvert(),
             "losses"_a, "tables"_a.noconvert())
        .def("run", &run_batch, "threads"_a, "choose"_a.none())
        .def_prop_ro("refused", &refused)
        .def("roots", &roots)
        .def("labellings", &labellings);
}

}  // namespace tallytree
