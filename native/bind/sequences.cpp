// The search for sentences at the border to Python.
#include <cmath>

#include "bind/checks.h"
#include "sequences/search.h"

namespace tallytree {
namespace {

using namespace sequences;

// How many words the labels stand for.
Index words_of(const std::vector<Ints32> &alphabets) {
    std::int32_t last = -1;
    for (const Ints32 &one : alphabets)
        for (std::int32_t word : as_span(one)) {
            if (word < 0) throw nb::value_error("a word is out of range");
            last = std::max(last, word);
        }
    std::vector<std::size_t> seen(last + 1, alphabets.size());
    for (std::size_t i = 0; i < alphabets.size(); i++)
        for (std::int32_t word : as_span(alphabets[i])) {
            if (seen[word] == i) throw nb::value_error("two labels of one position stand for the same word");
            seen[word] = i;
        }
    return last + 1;
}

void check_sizes(const Chain &chain) {
    for (Index t = 0; t < chain.size(); t++) {
        const auto labels = static_cast<std::size_t>(chain.labels[t]);
        const std::size_t pairs = t ? labels * static_cast<std::size_t>(chain.labels[t - 1]) : 0;
        if (chain.unary[t].size() != labels || chain.word[t].size() != labels || chain.pair[t].size() != pairs)
            throw nb::value_error("a table's size does not fit its position");
        if (chain.end[t] >= chain.labels[t]) throw nb::value_error("an end label is out of range");
    }
}

struct PySequenceProblem {
    Chain chain;
    Problem problem;             // without what is maximised
    std::vector<Doubles> unary;  // kept alive
    std::vector<Doubles2> pair;
    std::vector<Ints32> alphabets;
};

void fill_chain(PySequenceProblem &made, const Ints32 &kinds, const Ints32 &ends) {
    const std::size_t size = made.unary.size();
    if (size == 0 || made.pair.size() + 1 != size || kinds.size() != size || ends.size() != size)
        throw nb::value_error("a chain needs scores and words for each position, and scores for each two neighbours");
    Chain &chain = made.chain;
    chain.words = words_of(made.alphabets);
    for (std::size_t t = 0; t < size; t++) {
        const std::int32_t kind = kinds.data()[t];
        if (kind < 0 || kind >= static_cast<std::int32_t>(made.alphabets.size()))
            throw nb::value_error("an alphabet is out of range");
        chain.labels.push_back(static_cast<Index>(made.unary[t].size()));
        chain.unary.push_back(as_span(made.unary[t]));
        chain.pair.push_back(t ? as_span(made.pair[t - 1]) : std::span<const double>{});
        chain.word.push_back(as_span(made.alphabets[kind]));
        chain.end.push_back(ends.data()[t]);
    }
    check_sizes(chain);
}

PySequenceProblem *make_problem(std::vector<Doubles> unary, std::vector<Doubles2> pair, std::vector<Ints32> alphabets,
                                const Ints32 &kinds, const Ints32 &ends, const std::vector<Ints32> &references,
                                Kind kind, std::int64_t order, bool clip, double beta) {
    auto made = std::make_unique<PySequenceProblem>();
    made->unary = std::move(unary);
    made->pair = std::move(pair);
    made->alphabets = std::move(alphabets);
    fill_chain(*made, kinds, ends);
    if (references.empty() || order < 1) throw nb::value_error("at least one reference and an order are needed");
    for (const Ints32 &one : references) {
        for (std::int32_t word : as_span(one))
            if (word >= made->chain.words) throw nb::value_error("a word of a reference is out of range");
        made->problem.references.emplace_back(one.data(), one.data() + one.size());
    }
    made->problem.chain = &made->chain;
    made->problem.kind = kind;
    made->problem.order = order;
    made->problem.clip = clip;
    made->problem.beta = beta;
    return made.release();
}

void check_start(const Chain &chain, const Ints &start) {
    if (static_cast<Index>(start.size()) != chain.size())
        throw nb::value_error("a labelling has one label for each position");
    for (Index t = 0; t < chain.size(); t++)
        if (start.data()[t] < 0 || start.data()[t] >= chain.labels[t]) throw nb::value_error("a label is out of range");
}

Outcome run(const PySequenceProblem &asked, bounds::Scaling scaling, double margin, double truth,
            const std::vector<Ints> &starts, double most_cells, double memory_limit, std::int64_t few_cells) {
    Problem problem = asked.problem;
    problem.objective = {scaling, margin, truth};
    problem.kernels = &chosen_kernels->chains;
    for (const Ints &start : starts) {
        check_start(asked.chain, start);
        problem.starts.emplace_back(start.data(), start.data() + start.size());
    }
    if (scaling == bounds::Scaling::None) throw nb::value_error("a loss is put to the score by margin or by slack");
    if (few_cells < 1) throw nb::value_error("a box needs a cell");
    const Limits limits{most_cells, memory_limit, few_cells};
    nb::gil_scoped_release release;
    return sequences::search(problem, limits, kPoll);
}

template <class Array>
auto first_of(const Array &values, Index size) {
    return std::vector<typename Array::value_type>(values.begin(), values.begin() + size);
}

nb::object parts(const std::vector<sequences::Part> &list, Index tallies) {
    nb::list all;
    for (const sequences::Part &one : list)
        all.append(nb::make_tuple(one.length, one.split, first_of(one.prices, tallies), one.most,
                                  first_of(one.box.low, tallies), first_of(one.box.high, tallies), one.budget,
                                  one.cells));
    return all;
}

nb::object splits(const Outcome &outcome) {
    nb::list all;
    for (const Split &split : outcome.splits) {
        const auto length = static_cast<std::size_t>(split.positions), units = outcome.units.size();
        all.append(to_numpy(std::vector<double>(split.share), {length, units}));
    }
    return all;
}

nb::object units(const Outcome &outcome) {
    nb::list all;
    for (const Unit &unit : outcome.units)
        all.append(nb::make_tuple(unit.words, unit.tally, unit.cap == kUncapped ? -1 : unit.cap));
    return all;
}

}  // namespace

void bind_sequences(nb::module_ &m) {
    nb::enum_<Kind>(m, "SequenceMeasure")
        .value("BLEU", Kind::Bleu)
        .value("ROUGE_N", Kind::RougeN)
        .value("ROUGE_L", Kind::RougeL);
    nb::class_<Outcome>(m, "SequenceOutcome")
        .def_ro("finished", &Outcome::finished)
        .def_ro("value", &Outcome::value)
        .def_ro("score", &Outcome::score)
        .def_ro("bound", &Outcome::bound)
        .def_ro("cells", &Outcome::cells)
        .def_ro("bytes", &Outcome::bytes)
        .def_prop_ro("labelling", [](const Outcome &o) { return to_numpy(std::vector<std::int64_t>(o.labelling)); })
        .def_prop_ro("reached", [](const Outcome &o) { return first_of(o.reached, o.tallies); })
        .def_prop_ro("parts", [](const Outcome &o) { return parts(o.parts, o.tallies); })
        .def_prop_ro("passes", [](const Outcome &o) { return parts(o.passes, o.tallies); })
        .def_prop_ro("splits", &splits)
        .def_prop_ro("units", &units);
    nb::class_<PySequenceProblem>(m, "SequenceProblem")
        .def(nb::new_(&make_problem), "unary"_a.noconvert(), "pair"_a.noconvert(), "alphabets"_a.noconvert(),
             "kinds"_a.noconvert(), "ends"_a.noconvert(), "references"_a.noconvert(), "measure"_a, "order"_a, "clip"_a,
             "beta"_a)
        .def("search", &run, "scaling"_a, "margin"_a, "truth"_a, "starts"_a.noconvert(), "most_cells"_a,
             "memory_limit"_a, "few_cells"_a);
}

}  // namespace tallytree
