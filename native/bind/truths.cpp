#include "bind/truths.h"

#include <nanobind/stl/optional.h>

namespace tallytree {
namespace {

using Labels = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Given = nb::ndarray<const std::int64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Moved = nb::ndarray<const std::int64_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Fits = nb::ndarray<const bool, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

using AllowedTallies = nb::ndarray<const bool, nb::c_contig, nb::device::cpu>;

struct PyTruthTables {
    std::shared_ptr<const TruthTables> tables;
};

template <class T, class Array>
void assign(std::vector<T> &to, const Array &from) {
    to.assign(from.data(), from.data() + from.size());
}

PyTruthTables make_tables(Labels labels, Given given, Labels pairs, Fits fits, Moved moved) {
    TruthTables tables;
    const std::size_t n = labels.shape(0), w = labels.shape(1), p = given.shape(0), l = fits.shape(0);
    tables.kinds = static_cast<Index>(n);
    tables.states = static_cast<Index>(w);
    tables.statistics = static_cast<Index>(p);
    tables.links = static_cast<Index>(l);
    require(given.shape(1) == n && given.shape(2) == w, "given has one entry per statistic, kind and state");
    require(pairs.shape(0) == n && pairs.shape(1) == n, "pairs has one entry for each two kinds");
    require(fits.shape(1) == w && fits.shape(2) == w, "fits has one entry per table and two states");
    require(moved.shape(0) == p && moved.shape(1) == l && moved.shape(2) == w && moved.shape(3) == w,
            "moved has one entry per statistic, table and two states");
    for (auto pair : as_span(pairs)) require(pair < tables.links, "a table of neighbours is not there");
    for (auto label : as_span(labels)) require(l > 0 || label < tables.states, "a label is out of range");
    assign(tables.labels, labels);
    assign(tables.given, given);
    assign(tables.pairs, pairs);
    assign(tables.fits, fits);
    assign(tables.moved, moved);
    tables.prepare();
    return {std::make_shared<const TruthTables>(std::move(tables))};
}

PyLossTable make_losses(Tables losses, const std::vector<std::int64_t> &low, bool slack, double margin) {
    LossTable table;
    assign(table.losses, losses);
    table.low = low;
    for (std::size_t i = 0; i < losses.ndim(); i++) table.extent.push_back(static_cast<Index>(losses.shape(i)));
    require(table.low.size() == table.extent.size(), "a table of losses has one axis per statistic");
    table.slack = slack;
    table.margin = margin;
    table.measure();
    return {std::make_shared<const LossTable>(std::move(table))};
}

PyTallySet make_set(AllowedTallies allowed, const std::vector<std::int64_t> &low) {
    TallySet set;
    assign(set.allowed, allowed);
    set.low = low;
    for (std::size_t i = 0; i < allowed.ndim(); i++) set.extent.push_back(static_cast<Index>(allowed.shape(i)));
    require(set.low.size() == set.extent.size(), "a set of tallies has one axis per statistic");
    return {std::make_shared<const TallySet>(std::move(set))};
}

bool are_chains(const std::vector<ScopeBlock> &blocks, Index variables, std::size_t each) {
    for (std::size_t i = 0; i < blocks.size(); i++)
        if (!is_chain_block(blocks[i], variables, static_cast<Index>(i % each) + 1)) return false;
    return true;
}

// What a skeleton has to be like for the tables that are made for it.
void check_skeleton(const BatchItem &item) {
    const TruthTables &tables = item.truth.tables();
    const Skeleton &skeleton = *item.skeleton;
    const auto &scores = skeleton.score_scopes.blocks, &shifts = skeleton.shift_scopes.blocks;
    const auto size = static_cast<Index>(skeleton.cardinalities.size());
    const Index statistics = item.truth.fold.empty() ? tables.statistics : 0;
    const std::size_t each = tables.links && size > 1 ? 2 : 1;
    for (auto n : skeleton.cardinalities) require(n == tables.states, "a variable has other states than the tables");
    require(skeleton.statistics == statistics && shifts.size() == each * static_cast<std::size_t>(statistics) &&
                are_chains(shifts, size, each),
            "the statistics of the skeleton do not look at variables as the tables do");
    require(!tables.links || (scores.size() == (size > 1 ? 2u : 1u) && are_chains(scores, size, 2)),
            "the scores are not those of a chain");
}

// The block of scores that a loss is folded into.
std::size_t unary_block(const Skeleton &skeleton) {
    const auto &scores = skeleton.score_scopes.blocks;
    for (std::size_t i = 0; i < scores.size(); i++)
        if (is_chain_block(scores[i], static_cast<Index>(skeleton.cardinalities.size()), 1)) return i;
    throw nb::value_error("there are no scores of single variables to fold a loss into");
}

// All that is used as an index. The labels of an item are as many as the first of its tables has entries where states
// are others.
void check_truth(const BatchItem &item) {
    const TruthTables &tables = item.truth.tables();
    const auto kinds = item.truth.kinds();
    const Index labels = tables.links ? item.scores[0].size : tables.states;
    for (auto kind : kinds) require(kind >= 0 && kind < tables.kinds, "a kind is out of range");
    for (auto label : item.truth.labels) require(label >= 0 && label < labels, "a label of the truth is out of range");
    for (std::size_t m = 1; tables.links && m < kinds.size(); m++)
        require(tables.pair(kinds[m - 1], kinds[m]) >= 0, "two kinds are no neighbours");
}

}  // namespace

void PyTruths::attach(std::span<BatchItem> items) const {
    const bool fold = folds.shape(0) > 0;
    const auto statistics = static_cast<std::size_t>(tables->statistics);
    require(losses.empty() || losses.size() == items.size(), "one table of losses per item is needed, or none");
    require(!fold || (folds.shape(0) == items.size() && folds.shape(1) == statistics && statistics > 0),
            "folds has one number per item and statistic");
    require(!fold || tables->links == 0, "only what positions count by themselves folds");
    require(!prices || (prices->shape(0) == items.size() && prices->shape(1) == statistics),
            "prices has one number per item and statistic");
    require(kinds.size() == labels.size(), "one kind per label is needed");
    std::size_t first = 0;
    for (std::size_t i = 0; i < items.size(); i++) {
        BatchItem &item = items[i];
        const std::size_t size = item.skeleton->cardinalities.size();
        require(size <= kinds.size() - first, "one kind per variable is needed");
        item.truth = Truth(tables, as_span(kinds).subspan(first, size), as_span(labels).subspan(first, size),
                           fold ? as_span(folds).subspan(i * statistics, statistics) : std::span<const double>());
        if (!losses.empty()) item.losses = losses[i].table;
        item.chooser = fold || losses.empty() ? Chooser::Score : Chooser::Losses;
        item.count = count;
        item.strategy = strategy;
        if (prices) item.prices = prices->data() + i * statistics;
        require(!item.losses || item.losses->low.size() == statistics, "a table of losses has one axis per statistic");
        check_skeleton(item);
        check_truth(item);
        if (fold) item.truth.unary = unary_block(*item.skeleton);
        first += size;
    }
    require(first == kinds.size(), "one kind per variable is needed");
}

void bind_truths(nb::module_ &m) {
    nb::enum_<Strategy>(m, "Strategy")
        .value("AUTO", Strategy::Auto)
        .value("FULL", Strategy::Full)
        .value("BOUNDS", Strategy::Bounds);
    nb::class_<PyLossTable>(m, "LossTable")
        .def(
            "__init__",
            [](PyLossTable *self, Tables losses, const std::vector<std::int64_t> &low, bool slack, double margin) {
                new (self) PyLossTable(make_losses(losses, low, slack, margin));
            },
            "losses"_a.noconvert(), "low"_a, "slack"_a, "margin"_a);

    nb::class_<PyTallySet>(m, "TallySet")
        .def(
            "__init__",
            [](PyTallySet *self, AllowedTallies allowed, const std::vector<std::int64_t> &low) {
                new (self) PyTallySet(make_set(allowed, low));
            },
            "allowed"_a.noconvert(), "low"_a);

    nb::class_<PyTruthTables>(m, "TruthTables")
        .def(
            "__init__",
            [](PyTruthTables *self, Labels labels, Given given, Labels pairs, Fits fits, Moved moved) {
                new (self) PyTruthTables(make_tables(labels, given, pairs, fits, moved));
            },
            "labels"_a.noconvert(), "given"_a.noconvert(), "pairs"_a.noconvert(), "fits"_a.noconvert(),
            "moved"_a.noconvert());

    nb::class_<PyTruths>(m, "Truths")
        .def(
            "__init__",
            [](PyTruths *self, const PyTruthTables &tables, Ints kinds, Ints labels, std::vector<PyLossTable> losses,
               Doubles2 folds, std::int64_t count, Strategy strategy, std::optional<Prices> prices) {
                require(count > 0, "the number of tallies is not positive");
                new (self) PyTruths{tables.tables, kinds, labels, std::move(losses), folds, count, strategy, prices};
            },
            "tables"_a, "kinds"_a.noconvert(), "labels"_a.noconvert(), "losses"_a, "folds"_a.noconvert(), "count"_a,
            "strategy"_a = Strategy::Full, "prices"_a.noconvert().none() = nb::none());
}

}  // namespace tallytree
