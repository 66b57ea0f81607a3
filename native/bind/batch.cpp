// Batches at the border to Python: many problems go in one by one, and come out as a few long arrays.
#include "bind/gradients.h"

namespace tallytree {
namespace {

void add_item(PyBatch &self, const PySkeleton &skeleton, std::vector<IntTables> shifts, const Numbers &caps,
              const Numbers &low, const Numbers &high, std::vector<Tables> tables, std::vector<Scopes> shown_scopes,
              std::vector<IntTables> shown, bool asks, Strategy strategy, const std::optional<PyTallySet> &allowed) {
    BatchItem item;
    item.chooser = asks ? Chooser::Ask : Chooser::Score;
    item.strategy = strategy;
    if (allowed) item.allowed = allowed->set;
    require(!allowed || static_cast<Index>(allowed->set->low.size()) == skeleton.skeleton->statistics,
            "a set of tallies has one axis per statistic");
    item.skeleton = skeleton.skeleton;
    item.request = layout_request(*item.skeleton, shifts, caps, low, high, self.batch.mode, self.batch.memory_limit());
    item.scores = score_blocks(*item.skeleton, tables);
    item.shown_scopes = scope_blocks(shown_scopes);
    check_scopes(item.shown_scopes, item.skeleton->cardinalities.size());
    item.shown = table_blocks<std::int64_t>(shown);
    check_tables(*item.skeleton, item.shown_scopes, item.shown);
    self.kept.push_back(
        {std::move(shifts), std::move(shown), std::move(tables), std::move(shown_scopes), {}, {}, {}, 1});
    self.batch.add(std::move(item));
}

// Items that share what they are, with truths or without.
void add_items(PyBatch &self, std::vector<BatchItem> items, Kept kept) {
    for (auto &item : items) {
        item.request.mode = self.batch.mode;
        item.request.memory_limit = self.batch.memory_limit();
    }
    if (kept.truths) kept.truths->attach(items);
    else
        for (auto &item : items) require(item.skeleton->statistics == 0, "statistics need tables or a truth");
    kept.items = static_cast<Index>(items.size());
    self.kept.push_back(std::move(kept));
    for (auto &item : items) self.batch.add(std::move(item));
}

// Tables of labels, where a truth has states of its own and the tables of the skeleton are made from these: those of
// the positions of a chain, then those of neighbours, one for all or one for each.
std::vector<TableBlock<double>> label_blocks(const Skeleton &skeleton, std::span<const Tables> tables,
                                             const TruthTables &truths) {
    auto blocks = table_blocks<double>(tables);
    Index size = 1;
    for (std::size_t i = 0; i < blocks.size(); i++) {
        const Index count = skeleton.score_scopes.blocks[i].count;
        require(blocks[i].count == 1 || blocks[i].count == count, "a block has neither one table nor one per scope");
        size *= blocks[0].size;
        require(blocks[i].size == size, "a table's size does not fit its labels");
    }
    for (auto label : truths.labels) require(!blocks.empty() && label < blocks[0].size, "a label is out of range");
    return blocks;
}

// Models, with a truth each or with none; their tables lie one after the other.
void add_models(PyBatch &self, const std::vector<PySkeleton> &skeletons, std::vector<Tables> tables,
                std::optional<PyTruths> truths) {
    std::vector<BatchItem> items(skeletons.size());
    std::size_t table = 0;
    for (std::size_t i = 0; i < items.size(); i++) {
        items[i].skeleton = skeletons[i].skeleton;
        const std::size_t blocks = items[i].skeleton->score_scopes.blocks.size();
        require(blocks <= tables.size() - table, "one array of tables per block of scopes is needed");
        const auto some = std::span(tables).subspan(table, blocks);
        const bool own_states = truths && truths->tables->links;
        items[i].scores = own_states ? label_blocks(*items[i].skeleton, some, *truths->tables)
                                     : score_blocks(*items[i].skeleton, some);
        table += blocks;
    }
    require(table == tables.size(), "one array of tables per block of scopes is needed");
    add_items(self, std::move(items), {{}, {}, std::move(tables), {}, {}, {}, std::move(truths), 0});
}

// Chains over one set of labels, one after the other in a long array of scores of labels; links are one table, or one
// for each two neighbours. Where a truth has states of
// its own, the tables of the skeleton are made from these, and checked with the truth.
void add_chains(PyBatch &self, const std::vector<PySkeleton> &skeletons, Doubles2 emissions, Tables links,
                std::optional<PyTruths> truths) {
    const auto labels = static_cast<Index>(emissions.shape(1)), positions = static_cast<Index>(emissions.shape(0));
    const bool own_links = links.ndim() == 3;
    require((own_links || links.ndim() == 2) && links.size() == (own_links ? links.shape(0) : 1) * labels * labels,
            "links go from label to label");
    const bool own_states = truths && truths->tables->links;
    for (auto label : own_states ? std::span(truths->tables->labels) : std::span<const std::int32_t>())
        require(label < labels, "a label is out of range");
    std::vector<BatchItem> items(skeletons.size());
    Index first = 0;
    for (std::size_t i = 0; i < items.size(); i++) {
        const Skeleton &skeleton = *(items[i].skeleton = skeletons[i].skeleton);
        const auto size = static_cast<Index>(skeleton.cardinalities.size());
        require(size > 0 && size <= positions - first, "one row of scores per position is needed");
        items[i].scores = {{emissions.data() + first * labels, size, labels}};
        const Index link = own_links ? first - static_cast<Index>(i) : 0;
        require(!own_links || link + size - 1 <= static_cast<Index>(links.shape(0)), "one table per two neighbours");
        if (size > 1)
            items[i].scores.push_back(
                {links.data() + link * labels * labels, own_links ? size - 1 : 1, labels * labels});
        if (!own_states) check_tables(skeleton, skeleton.score_scopes.blocks, items[i].scores);
        first += size;
    }
    require(first == positions, "one row of scores per position is needed");
    add_items(self, std::move(items), {{}, {}, {}, {}, Tables(emissions), links, std::move(truths), 0});
}

// The Python thread state of a thread that calls back, made once.
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
            return nb::cast<Numbers>(choose(item, tallies, to_numpy(std::vector<double>(root.values))));
        };
    for (Index i = 0; !chosen && i < self.batch.size(); i++)
        require(self.batch.item(i).chooser != Chooser::Ask, "an item asks, and there is nobody to answer");
    nb::gil_scoped_release release;
    self.answers = self.batch.run(threads, chosen_kernels, {true, chosen}, kPoll, inside_python);
}

// Keeps the last tables, and decodes nothing.
void profile_batch(PyBatch &self, std::int64_t threads) {
    nb::gil_scoped_release release;
    self.answers = self.batch.run(threads, chosen_kernels, {}, kPoll, inside_python);
}

std::vector<Expectation> all_expected(const PyBatch &self, const Expecting &what, std::int64_t threads) {
    nb::gil_scoped_release release;
    return expectations(self.batch, what, threads, chosen_kernels, kPoll, inside_python);
}

// Takes down which items were refused; returns the values of all.
nb::object note(PyBatch &self, const std::vector<Expectation> &found) {
    self.answers.assign(found.size(), {});
    self.plain.assign(found.size(), false);
    std::vector<double> values;
    for (std::size_t i = 0; i < found.size(); i++) {
        self.answers[i].refused = found[i].refused;
        self.answers[i].bytes = found[i].bytes;
        self.plain[i] = found[i].plain;
        values.push_back(found[i].value);
    }
    return to_numpy(std::move(values));
}

// The values of all items, and the derivatives of their sum, weighted by importance, by all scores.
nb::tuple expected(PyBatch &self, Expecting what, std::int64_t threads) {
    double shared = 0;
    for (const Kept &kept : self.kept)
        if (kept.links.is_valid() && kept.links.ndim() == 2) shared += 8 * static_cast<double>(kept.links.size());
    what.groups = group_count(self.batch.size(), shared);
    Gradients gradients(self, what.groups);
    what.places = [&](Index item, Index group, std::vector<double *> &entries) {
        gradients.places(item, group, entries);
    };
    const nb::object values = note(self, all_expected(self, what, threads));
    return nb::make_tuple(values, gradients.arrays());
}

auto expect(PyBatch &self, Objective objective, Doubles importance, std::int64_t threads) {
    const Index size = self.batch.size();
    require(static_cast<Index>(importance.size()) == size, "one number per item is needed");
    require(objective != Objective::Given && objective != Objective::Sums, "of each tally, these are functions");
    for (Index i = 0; i < size; i++)
        require(objective == Objective::Likelihood || self.batch.item(i).losses, "an item has no losses");
    const auto question = [&](Index) { return TallyQuestion{objective, nullptr, {}, {}}; };
    return expected(self, {question, as_span(importance), 1, {}}, threads);
}

// A box of tallies of all items.
TallyGrid tally_grid(const PyBatch &self, const Numbers &low, const Numbers &extent) {
    require(low.size() == extent.size(), "one low end and one extent per statistic is needed");
    for (Index i = 0; i < self.batch.size(); i++)
        require(self.batch.item(i).skeleton->statistics == static_cast<Index>(low.size()), "an item counts others");
    for (auto size : extent) require(size > 0, "an extent is not positive");
    return {low, extent};
}

// The log of the sum of each tally of a box, which holds those of all items; one row for each of these.
nb::object tally_sums(PyBatch &self, const Numbers &low, const Numbers &extent, std::int64_t threads) {
    const TallyGrid grid = tally_grid(self, low, extent);
    std::vector<std::size_t> shape(extent.begin(), extent.end());
    std::size_t cells = 1;
    for (auto size : shape) cells *= size;
    shape.insert(shape.begin(), static_cast<std::size_t>(self.batch.size()));
    std::vector<double> sums(shape[0] * cells, kNegativeInfinity);
    const auto question = [&](Index i) {
        return TallyQuestion{Objective::Sums, &grid, {}, std::span(sums).subspan(i * cells, cells)};
    };
    const std::vector<double> nothing(shape[0], 0.0);
    note(self, all_expected(self, {question, nothing, group_count(self.batch.size(), 0), {}}, threads));
    return to_numpy(std::move(sums), shape);
}

// The derivatives of a function of all these sums, given what it gains with each of them.
nb::object differentiate(PyBatch &self, Tables gains, const Numbers &low, std::int64_t threads) {
    require(gains.ndim() == low.size() + 1 && static_cast<Index>(gains.shape(0)) == self.batch.size(),
            "one row of gains per item is needed");
    Numbers extent;
    for (std::size_t i = 1; i < gains.ndim(); i++) extent.push_back(static_cast<std::int64_t>(gains.shape(i)));
    const TallyGrid grid = tally_grid(self, low, extent);
    const std::size_t cells = self.batch.size() ? gains.size() / gains.shape(0) : 0;
    const auto question = [&](Index i) {
        return TallyQuestion{Objective::Given, &grid, {gains.data() + i * cells, cells}, {}};
    };
    const std::vector<double> ones(self.batch.size(), 1.0);
    return expected(self, {question, ones, 1, {}}, threads)[1];
}

template <class T>
void append(std::vector<T> &to, const std::vector<T> &from) {
    to.insert(to.end(), from.begin(), from.end());
}

// Cells, tallies and values of a root, which the batch no longer has then.
auto take_root(PyBatch &self, std::int64_t item) {
    require(item >= 0 && item < static_cast<std::int64_t>(self.answers.size()), "there is no such item");
    return root_arrays(std::exchange(self.answers[item].root, {}), self.batch.item(item).skeleton->statistics);
}

// What is known of a labelling; its labels, its tally as the messages have it, and the sums of its integer tables are
// stretches of three long arrays.
struct Found {
    std::int64_t item;
    std::int64_t labels_begin, labels_end, tally_begin, tally_end, sums_begin, sums_end;
    double promised, score;  // by the messages, and by the definition
    double magnitude;        // of the local scores, added up
    std::int64_t terms;      // their number
    double value, loss, truth_score;
    bool certified, bounded;
};

nb::object to_found(std::vector<Found> found) {
    return to_records(std::move(found), {{"item", "i8", offsetof(Found, item)},
                                         {"labels_begin", "i8", offsetof(Found, labels_begin)},
                                         {"labels_end", "i8", offsetof(Found, labels_end)},
                                         {"tally_begin", "i8", offsetof(Found, tally_begin)},
                                         {"tally_end", "i8", offsetof(Found, tally_end)},
                                         {"sums_begin", "i8", offsetof(Found, sums_begin)},
                                         {"sums_end", "i8", offsetof(Found, sums_end)},
                                         {"promised", "f8", offsetof(Found, promised)},
                                         {"score", "f8", offsetof(Found, score)},
                                         {"magnitude", "f8", offsetof(Found, magnitude)},
                                         {"terms", "i8", offsetof(Found, terms)},
                                         {"value", "f8", offsetof(Found, value)},
                                         {"loss", "f8", offsetof(Found, loss)},
                                         {"truth_score", "f8", offsetof(Found, truth_score)},
                                         {"certified", "?", offsetof(Found, certified)},
                                         {"bounded", "?", offsetof(Found, bounded)}});
}

// Labels, tallies and sums of all labellings, those of an item from the best on, and what is known of each.
auto labellings(const PyBatch &self) {
    Numbers labels, tallies, sums;
    std::vector<Found> found;
    const auto add = [](Numbers &to, const Numbers &from, std::int64_t &begin, std::int64_t &end) {
        begin = static_cast<std::int64_t>(to.size());
        append(to, from);
        end = static_cast<std::int64_t>(to.size());
    };
    for (std::size_t i = 0; i < self.answers.size(); i++)
        for (const Labelling &one : self.answers[i].labellings) {
            Found &to = found.emplace_back();
            to.item = static_cast<std::int64_t>(i);
            add(labels, one.labels, to.labels_begin, to.labels_end);
            add(tallies, one.tally, to.tally_begin, to.tally_end);
            add(sums, one.evaluation.sums, to.sums_begin, to.sums_end);
            to.promised = one.promised;
            to.score = one.evaluation.score;
            to.magnitude = one.evaluation.magnitude;
            to.terms = one.evaluation.terms;
            to.value = one.value;
            to.loss = one.loss;
            to.truth_score = one.truth_score;
            to.certified = one.certified;
            to.bounded = self.answers[i].bounded;
        }
    return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(tallies)), to_numpy(std::move(sums)),
                          to_found(std::move(found)));
}

// An item that does not fit the limit, and what it needs at least.
struct Refusal {
    std::int64_t item;
    double bytes;
};

auto refused(const PyBatch &self) {
    std::vector<Refusal> refusals;
    for (std::size_t i = 0; i < self.answers.size(); i++)
        if (self.answers[i].refused) refusals.push_back({static_cast<std::int64_t>(i), self.answers[i].bytes});
    return to_records(std::move(refusals),
                      {{"item", "i8", offsetof(Refusal, item)}, {"bytes", "f8", offsetof(Refusal, bytes)}});
}

}  // namespace

void bind_batch(nb::module_ &m) {
    nb::class_<PyBatch>(m, "Batch")
        .def(
            "__init__",
            [](PyBatch *self, Mode mode, double memory_limit) { new (self) PyBatch{{}, {mode, memory_limit}, {}, {}}; },
            "mode"_a, "memory_limit"_a)
        .def(
            "hold", [](PyBatch &self, double bytes) { self.batch.hold(bytes); }, "bytes"_a)
        .def("add", &add_item, "skeleton"_a, "shifts"_a.noconvert(), "caps"_a, "low"_a, "high"_a,
             "tables"_a.noconvert(), "shown_scopes"_a.noconvert(), "shown"_a.noconvert(), "asks"_a,
             "strategy"_a = Strategy::Full, "allowed"_a.none() = nb::none())
        .def("add_models", &add_models, "skeletons"_a, "tables"_a.noconvert(), "truths"_a.none())
        .def("add_chains", &add_chains, "skeletons"_a, "emissions"_a.noconvert(), "links"_a.noconvert(),
             "truths"_a.none())
        .def("run", &run_batch, "threads"_a, "choose"_a.none() = nb::none())
        .def("profile", &profile_batch, "threads"_a)
        .def("expect", &expect, "objective"_a, "importance"_a.noconvert(), "threads"_a)
        .def("tally_sums", &tally_sums, "low"_a, "extent"_a, "threads"_a)
        .def("differentiate", &differentiate, "gains"_a.noconvert(), "low"_a, "threads"_a)
        .def_prop_ro("refused", &refused)
        .def_prop_ro("plain", [](const PyBatch &self) { return self.plain; })
        .def("take_root", &take_root, "item"_a)
        .def("labellings", &labellings);
}

}  // namespace tallytree
