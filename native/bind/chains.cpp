// Chains at the border to Python: long arrays go in, long arrays come out.
#include "bind/checks.h"
#include "bulk/chains.h"

namespace tallytree {
namespace {

using Labels = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Given = nb::ndarray<const std::int64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Moved = nb::ndarray<const std::int64_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Fits = nb::ndarray<const bool, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char *what) {
    if (!holds) throw nb::value_error(what);
}

ChainKinds make_kinds(Labels labels, Given given, Labels pairs, Fits fits, Moved moved) {
    ChainKinds kinds;
    kinds.kinds = static_cast<Index>(labels.shape(0));
    kinds.states = static_cast<Index>(labels.shape(1));
    kinds.statistics = static_cast<Index>(given.shape(0));
    kinds.links = static_cast<Index>(fits.shape(0));
    const std::size_t n = labels.shape(0), w = labels.shape(1), p = given.shape(0), l = fits.shape(0);
    require(given.shape(1) == n && given.shape(2) == w, "given has one entry per statistic, kind and state");
    require(pairs.shape(0) == n && pairs.shape(1) == n, "pairs has one entry for each two kinds");
    require(fits.shape(1) == w && fits.shape(2) == w, "fits has one entry per table and two states");
    require(moved.shape(0) == p && moved.shape(1) == l && moved.shape(2) == w && moved.shape(3) == w,
            "moved has one entry per statistic, table and two states");
    for (auto pair : as_span(pairs)) require(pair < kinds.links, "a table of neighbours is not there");
    kinds.labels.assign(labels.data(), labels.data() + labels.size());
    kinds.given.assign(given.data(), given.data() + given.size());
    kinds.pairs.assign(pairs.data(), pairs.data() + pairs.size());
    kinds.fits.assign(fits.data(), fits.data() + fits.size());
    kinds.moved.assign(moved.data(), moved.data() + moved.size());
    return kinds;
}

// The chains, one after the other in the arrays; everything that is used as an index is checked here.
std::vector<LabelChain> make_chains(const ChainKinds &kinds, const std::vector<PySkeleton> &skeletons, Ints lengths,
                                    Doubles2 emissions, Ints positions, Ints truths,
                                    const std::vector<PyLossTable> &losses, Doubles2 folds) {
    const auto count = lengths.size(), labels = emissions.shape(1);
    const bool fold = folds.shape(0) > 0;
    require(skeletons.size() == count && losses.size() == count, "one skeleton and one table of losses per chain");
    require(!fold || (folds.shape(0) == count && folds.shape(1) == static_cast<std::size_t>(kinds.statistics)),
            "folds has one number per chain and statistic");
    require(!fold || kinds.links == 0, "only what positions count by themselves folds");
    require(positions.size() == emissions.shape(0) && truths.size() == emissions.shape(0), "one kind per position");
    for (auto label : kinds.labels) require(label < static_cast<std::int32_t>(labels), "a label is out of range");
    require(kinds.links > 0 || kinds.states == static_cast<Index>(labels), "one state per label is needed");
    for (auto kind : as_span(positions)) require(kind >= 0 && kind < kinds.kinds, "a kind is out of range");
    for (auto label : as_span(truths))
        require(label >= 0 && label < static_cast<Index>(labels), "a label of the truth is out of range");
    std::vector<LabelChain> chains;
    std::size_t first = 0;
    for (std::size_t i = 0; i < count; i++) {
        require(lengths.data()[i] > 0, "a chain has no positions");
        const auto size = static_cast<std::size_t>(lengths.data()[i]);
        require(first + size <= positions.size(), "the lengths are too large");
        LabelChain chain;
        chain.skeleton = skeletons[i].skeleton;
        chain.emissions = as_span(emissions).subspan(first * labels, size * labels);
        chain.kinds = as_span(positions).subspan(first, size);
        chain.truth = as_span(truths).subspan(first, size);
        chain.losses = losses[i].table;
        if (fold) chain.fold = as_span(folds).subspan(i * kinds.statistics, kinds.statistics);
        require(static_cast<Index>(chain.losses->low.size()) == kinds.statistics, "losses have one axis per statistic");
        for (std::size_t m = 1; kinds.links && m < size; m++)
            require(kinds.pair(chain.kinds[m - 1], chain.kinds[m]) >= 0, "two kinds are no neighbours");
        chains.push_back(std::move(chain));
        first += size;
    }
    require(first == positions.size(), "the lengths are too small");
    return chains;
}

// What a skeleton has to be like for the tables that are made for it.
void check_skeleton(const ChainKinds &kinds, const LabelChain &chain) {
    const Skeleton &skeleton = *chain.skeleton;
    const Index size = chain.size(), statistics = chain.fold.empty() ? kinds.statistics : 0;
    const auto matches = [&](const ScopeBlock &block, Index arity) {
        if (block.arity != arity || block.count != size - arity + 1) return false;
        for (Index k = 0; k < block.count; k++)
            for (Index i = 0; i < arity; i++)
                if (block.row(k)[i] != k + i) return false;
        return true;
    };
    const auto &scores = skeleton.score_scopes.blocks, &shifts = skeleton.shift_scopes.blocks;
    const Index each = kinds.links && size > 1 ? 2 : 1;
    bool fine = static_cast<Index>(skeleton.cardinalities.size()) == size && skeleton.statistics == statistics &&
                scores.size() == (size > 1 ? 2u : 1u) && static_cast<Index>(shifts.size()) == each * statistics;
    for (auto n : skeleton.cardinalities) fine = fine && n == kinds.states;
    for (std::size_t i = 0; fine && i < scores.size(); i++) fine = matches(scores[i], static_cast<Index>(i) + 1);
    for (std::size_t i = 0; fine && i < shifts.size(); i++) fine = matches(shifts[i], static_cast<Index>(i) % each + 1);
    require(fine, "the skeleton is not that of a chain with these statistics");
}

// One labelling of a chain; those of a chain come one after the other, the most violated one first.
struct Found {
    std::int64_t chain, begin, end;  // the labels from `begin` to `end` are its own
    double loss, score;
};

// The labels of all of them, and what is known of each.
nb::object to_found(const std::vector<std::vector<ChainAnswer>> &answers) {
    std::vector<std::int64_t> labels;
    std::vector<Found> found;
    for (std::size_t chain = 0; chain < answers.size(); chain++)
        for (const auto &answer : answers[chain]) {
            const auto begin = static_cast<std::int64_t>(labels.size());
            labels.insert(labels.end(), answer.labels.begin(), answer.labels.end());
            found.push_back({static_cast<std::int64_t>(chain), begin, static_cast<std::int64_t>(labels.size()),
                             answer.loss, answer.score});
        }
    return nb::make_tuple(to_numpy(std::move(labels)),
                          to_records(std::move(found), {{"chain", "i8", offsetof(Found, chain)},
                                                        {"begin", "i8", offsetof(Found, begin)},
                                                        {"end", "i8", offsetof(Found, end)},
                                                        {"loss", "f8", offsetof(Found, loss)},
                                                        {"score", "f8", offsetof(Found, score)}}));
}

auto solve_chains(const ChainKinds &kinds, const std::vector<PySkeleton> &skeletons, Ints lengths, Doubles2 emissions,
                  Doubles2 links, Ints positions, Ints truths, const std::vector<PyLossTable> &losses, Doubles2 folds,
                  std::int64_t count, double memory_limit, std::int64_t threads) {
    require(links.shape(0) == emissions.shape(1) && links.shape(1) == emissions.shape(1),
            "links go from label to label");
    require(count > 0, "the number of tallies is not positive");
    const auto chains = make_chains(kinds, skeletons, lengths, emissions, positions, truths, losses, folds);
    for (const auto &chain : chains) check_skeleton(kinds, chain);
    const ChainTask task{kinds, static_cast<Index>(emissions.shape(1)), as_span(links), count, memory_limit};
    std::vector<std::vector<ChainAnswer>> answers;
    {
        nb::gil_scoped_release release;
        answers = augmented_chains(task, chains, threads, chosen_kernels, kPoll);
    }
    return to_found(answers);
}

}  // namespace

void bind_chains(nb::module_ &m) {
    nb::class_<ChainKinds>(m, "ChainKinds")
        .def(
            "__init__",
            [](ChainKinds *self, Labels labels, Given given, Labels pairs, Fits fits, Moved moved) {
                new (self) ChainKinds(make_kinds(labels, given, pairs, fits, moved));
            },
            "labels"_a.noconvert(), "given"_a.noconvert(), "pairs"_a.noconvert(), "fits"_a.noconvert(),
            "moved"_a.noconvert());
    m.def("augmented_chains", &solve_chains, "kinds"_a, "skeletons"_a, "lengths"_a.noconvert(),
          "emissions"_a.noconvert(), "links"_a.noconvert(), "positions"_a.noconvert(), "truths"_a.noconvert(),
          "losses"_a, "folds"_a.noconvert(), "count"_a, "memory_limit"_a, "threads"_a);
}

}  // namespace tallytree
