// The search by bounds at the border to Python.
#include <nanobind/stl/optional.h>

#include "bind/bounds.h"
#include "bounds/chain_messages.h"
#include "bounds/graph_messages.h"

namespace tallytree {
namespace {

using namespace bounds;

bounds::Box box_of(std::span<const std::int64_t> low, std::span<const std::int64_t> high, Index statistics) {
    if (static_cast<Index>(low.size()) != statistics || high.size() != low.size())
        throw nb::value_error("a box needs both ends for each statistic");
    bounds::Box box{Tally(statistics), Tally(statistics)};
    for (Index p = 0; p < statistics; p++) {
        if (std::max(std::abs(low[p]), std::abs(high[p])) > kNoLimit) throw nb::value_error("a box without ends");
        box.low[p] = low[p];
        box.high[p] = high[p];
    }
    return box;
}

Linear linear_of(std::span<const double> numbers, Index statistics) {
    if (static_cast<Index>(numbers.size()) != statistics + 1)
        throw nb::value_error("a constant and one coefficient for each statistic are needed");
    Linear line{numbers[0], {}};
    for (Index p = 0; p < std::min(statistics, kMostStatistics); p++) line.slope[p] = numbers[p + 1];
    return line;
}

std::vector<std::int64_t> labelling_of(const Ints &start, const Skeleton &skeleton) {
    std::vector<std::int64_t> labelling(start.data(), start.data() + start.size());
    if (!labelling.empty() && labelling.size() != skeleton.cardinalities.size())
        throw nb::value_error("a labelling has one state for each variable");
    for (std::size_t i = 0; i < labelling.size(); i++)
        if (labelling[i] < 0 || labelling[i] >= skeleton.cardinalities[i])
            throw nb::value_error("a state is out of range");
    return labelling;
}

PyNeed make_need(Scaling scaling, double margin, double truth, Doubles numerator, Doubles denominator, Doubles losses,
                 Ints low, Ints high, double top) {
    const auto statistics = static_cast<Index>(low.size());
    PyNeed made{{}, statistics};
    made.need.scaling = scaling;
    made.need.margin = margin;
    made.need.truth = truth;
    made.need.top = top;
    made.need.box = box_of(as_span(low), as_span(high), statistics);
    made.need.losses.assign(losses.data(), losses.data() + losses.size());
    if (losses.size() == 0 && scaling != Scaling::None) {
        made.need.numerator = linear_of(as_span(numerator), statistics);
        made.need.denominator = linear_of(as_span(denominator), statistics);
    }
    return made;
}

// Of a plain pass over a program: operations, units of work, and bytes with what all passes share.
auto pass_price(const PySkeleton &skeleton) {
    const Skeleton &program = *skeleton.skeleton;
    const double operations = LocalTables::operations(program);
    return nb::make_tuple(operations, LocalTables::pass_work(program, operations),
                          LocalTables::bytes(program) + GraphMessages::bytes(program, 1));
}

// The lists of a thread's last chain, or graph, wait for its next one, unless they are large, or would take much of the
// memory that the next one may take.
template <class Lists>
class Place {
  public:
    explicit Place(double memory_limit) {
        constexpr double kMuch = 0.1;
        lists_ = std::move(waiting_);
        if (!lists_ || &lists_->kernels() != &chosen_kernels->chains || waiting_bytes_ > kMuch * memory_limit)
            lists_ = std::make_unique<Lists>(chosen_kernels->chains);
    }
    ~Place() {
        constexpr double kMost = 16 << 20;
        if (std::uncaught_exceptions() != 0) return;
        waiting_bytes_ = lists_->rest();
        if (waiting_bytes_ <= kMost) waiting_ = std::move(lists_);
    }
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;
    Lists &operator*() const { return *lists_; }
    Lists *operator->() const { return lists_.get(); }

  private:
    std::unique_ptr<Lists> lists_;
    static inline thread_local std::unique_ptr<Lists> waiting_;
    static inline thread_local double waiting_bytes_ = 0;
};

// What a program alone decides is found out once, for as long as its questions come one after the other.
class GraphLists {
  public:
    explicit GraphLists(const ChainKernels &kernels) : kernels_(kernels), tables_(kernels), messages_(kernels, 1) {}
    const ChainKernels &kernels() const { return kernels_; }
    double rest() { return tables_.kept() + messages_.rest(); }
    const LocalTables &load(const std::shared_ptr<const Skeleton> &program, std::span<const TableBlock<double>> scores,
                            std::span<const TableBlock<std::int64_t>> counts) {
        if (program_.lock() != program) {  // another one may stand where the last one was
            tables_.forget_program();
            messages_.forget_program();
        }
        program_ = program;
        tables_.load(*program, scores, counts);
        return tables_;
    }
    GraphMessages &messages() {
        messages_.begin(tables_);
        return messages_;
    }

  private:
    const ChainKernels &kernels_;
    LocalTables tables_;
    GraphMessages messages_;
    std::weak_ptr<const Skeleton> program_;
};

struct AskedOfModel : Asked {
    std::shared_ptr<const Skeleton> skeleton;
    std::vector<TableBlock<double>> scores;
    std::vector<TableBlock<std::int64_t>> counts;
    const Skeleton &program = *skeleton;
};

// Units of work of a search: to be called, to load an entry of scores of a program, and to make rows of a position.
constexpr double kCall = 2e4, kEntry = 3, kMadeRows = 500;

double entries_of(std::span<const TableBlock<double>> scores) {
    double entries = 0;
    for (const auto &block : scores) entries += static_cast<double>(block.count * block.size);
    return entries;
}

// A chain whose tables can be read where they lie.
std::optional<PyOutcome> search_plain(const AskedOfModel &asked, double memory_limit) {
    const auto chain = PlainChain::of(asked.program, asked.scores, asked.counts);
    if (!chain) return {};
    const double most_kinds = ChainMessages::most_kinds(*chain, memory_limit);
    if (most_kinds < 1) return {};
    const Place<ChainMessages> place(memory_limit);
    const auto facts = place->rows().load(*chain, chosen_kernels->chains, most_kinds);
    if (!facts) return {};
    place->begin();
    const double used = ChainMessages::bytes(*chain, static_cast<double>(place->rows().kinds()));
    const LocalTables tables(asked.program, asked.scores, asked.counts, *facts);
    return asked.over(*place, tables, memory_limit - used, kCall + place->load_work());
}

// Any program.
std::optional<PyOutcome> search_steps(const AskedOfModel &asked, double memory_limit) {
    if (memory_limit < 0) return {};
    const Place<GraphLists> graph(memory_limit);
    const LocalTables &tables = graph->load(asked.skeleton, asked.scores, asked.counts);
    if (!tables.fits() || !(asked.report || tables.keyed())) return {};
    const auto chain = tables.keyed() ? ChainTables::of(tables) : std::nullopt;
    const double needed = chain ? ChainMessages::bytes(tables, *chain) : 0;
    if (chain && needed <= memory_limit) {
        const Place<ChainMessages> place(memory_limit - needed);
        place->rows().load(tables, *chain);
        place->begin();
        const auto positions = static_cast<double>(asked.program.cardinalities.size());
        return asked.over(*place, tables, memory_limit - needed,
                          kCall + kEntry * entries_of(asked.scores) + kMadeRows * positions + place->load_work());
    }
    const double used = GraphMessages::bytes(asked.program, 1);
    if (used > memory_limit) return {};
    GraphMessages &messages = graph->messages();
    return asked.over(messages, tables, memory_limit - used,
                      kCall + kEntry * entries_of(asked.scores) + messages.load_work());
}

std::optional<PyOutcome> search_model(const AskedOfModel &asked, double memory_limit) {
    if (auto found = search_plain(asked, memory_limit - static_cast<double>(asked.program.bytes))) return found;
    if (asked.program.steps.empty()) return {};  // a draft is enough for chains alone
    double used = LocalTables::most_bytes(asked.program);
    if (used > 0.5 * memory_limit) used = LocalTables::bytes(asked.program, asked.counts);  // takes longer
    return search_steps(asked, memory_limit - used);
}

template <class T>
std::vector<T> as_vector(const Numbers<T> &values, Index size) {
    std::vector<T> all;
    for (Index p = 0; p < size; p++) all.push_back(values[p]);
    return all;
}

std::optional<PyOutcome> search(const PySkeleton &skeleton, const std::vector<Tables> &scores,
                                const std::vector<IntTables> &counts, const PyNeed &asked,
                                const std::vector<Ints> &starts, std::optional<Doubles> prices, double most_work,
                                double memory_limit) {
    const Skeleton &program = *skeleton.skeleton;
    auto score_tables = score_blocks(program, scores);
    auto count_tables = table_blocks<std::int64_t>(counts);
    check_tables(program, program.shift_scopes.blocks, count_tables);
    if (program.statistics != asked.statistics) throw nb::value_error("the box is of other statistics");
    std::vector<std::vector<std::int64_t>> labellings;
    for (const Ints &start : starts) labellings.push_back(labelling_of(start, program));
    std::optional<Prices> first;
    if (prices) first = prices_of(as_span(*prices), program.statistics);
    Need need = asked.need;
    nb::gil_scoped_release release;
    if (!program.feasible || program.statistics == 0 || !need.prepare()) return {};
    const AskedOfModel all{{need, std::move(labellings), std::move(first), {.work = most_work}, {}},
                           skeleton.skeleton,
                           std::move(score_tables),
                           std::move(count_tables)};
    return search_model(all, memory_limit);
}

// Calls a function of Python, if there is one, with what is known after a pass.
Report reporting_to(const nb::object &progress, Index statistics) {
    if (progress.is_none()) return [](const Known &) {};
    return [&progress, statistics](const Known &known) {
        const nb::gil_scoped_acquire acquire;
        nb::object found = nb::none();
        if (known.found) found = nb::cast(to_numpy(std::vector<std::int64_t>(known.found->labelling)));
        progress(known.passes, known.bound, known.slack, as_vector(known.prices, statistics), found);
    };
}

std::optional<PyOutcome> relax(const PySkeleton &skeleton, const std::vector<Tables> &scores,
                               const std::vector<IntTables> &counts, Ints low, Ints high, std::int64_t most_passes,
                               double gap, bool bands, nb::object progress, double memory_limit) {
    const Skeleton &program = *skeleton.skeleton;
    auto score_tables = score_blocks(program, scores);
    auto count_tables = table_blocks<std::int64_t>(counts);
    check_tables(program, program.shift_scopes.blocks, count_tables);
    Need need;
    need.box = box_of(as_span(low), as_span(high), program.statistics);
    const Report report = reporting_to(progress, program.statistics);
    nb::gil_scoped_release release;
    if (!program.feasible || program.statistics == 0 || !need.prepare()) return {};
    const Stops stops{.passes = static_cast<std::size_t>(most_passes), .gap = gap, .bands = bands};
    const AskedOfModel all{
        {need, {}, {}, stops, report}, skeleton.skeleton, std::move(score_tables), std::move(count_tables)};
    return search_model(all, memory_limit);
}

// ---- what was found ------------------------------------------------------------------------------------------------

auto found_tallies(const PyOutcome &self) {
    std::vector<std::int64_t> rows;
    for (const auto &[tally, one] : self.outcome.candidates)
        for (Index p = 0; p < self.statistics; p++) rows.push_back(tally[p]);
    return to_numpy(std::move(rows), {self.outcome.candidates.size(), static_cast<std::size_t>(self.statistics)});
}

auto found_scores(const PyOutcome &self) {
    std::vector<double> scores;
    for (const auto &[tally, one] : self.outcome.candidates) scores.push_back(one.score);
    return to_numpy(std::move(scores));
}

auto found_labelling(const PyOutcome &self, std::int64_t row) {
    if (row < 0 || row >= static_cast<std::int64_t>(self.outcome.candidates.size()))
        throw nb::index_error("there is no such candidate");
    return to_numpy(std::vector<std::int64_t>(std::next(self.outcome.candidates.begin(), row)->second.labelling));
}

auto proven(const PyOutcome &self) {
    nb::list parts;
    for (const Proven &one : self.outcome.proven)
        parts.append(nb::make_tuple(as_vector(one.pass.prices, self.statistics), one.pass.most,
                                    as_vector(one.box.low, self.statistics), as_vector(one.box.high, self.statistics),
                                    one.budget, one.cells));
    return parts;
}

// The least and the largest tally of each statistic that passes have met.
auto met(const PyOutcome &self) {
    nb::list ends;
    for (Index p = 0; p < self.statistics; p++) {
        Index low = kNoLimit, high = -kNoLimit;
        for (const Pass &one : self.outcome.passes) {
            if (one.most == kNegativeInfinity) continue;
            low = std::min(low, one.tally[p]);
            high = std::max(high, one.tally[p]);
        }
        ends.append(nb::make_tuple(low, high));
    }
    return ends;
}

auto passes(const PyOutcome &self) {
    nb::list all;
    for (const Pass &one : self.outcome.passes)
        all.append(nb::make_tuple(as_vector(one.prices, self.statistics), one.most));
    return all;
}

}  // namespace

void bind_bounds(nb::module_ &m) {
    nb::enum_<Scaling>(m, "LossScaling")
        .value("NONE", Scaling::None)
        .value("MARGIN", Scaling::Margin)
        .value("SLACK", Scaling::Slack);
    nb::class_<PyNeed>(m, "Need").def(
        "__init__",
        [](PyNeed *self, Scaling scaling, double margin, double truth, Doubles numerator, Doubles denominator,
           Doubles losses, Ints low, Ints high, double top) {
            new (self) PyNeed(make_need(scaling, margin, truth, numerator, denominator, losses, low, high, top));
        },
        "scaling"_a, "margin"_a, "truth"_a, "numerator"_a.noconvert(), "denominator"_a.noconvert(),
        "losses"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "top"_a = kInfinity);
    nb::class_<PyOutcome>(m, "BoundsOutcome")
        .def_prop_ro("finished", [](const PyOutcome &o) { return o.outcome.finished; })
        .def_prop_ro("ended", [](const PyOutcome &o) { return o.outcome.ended; })
        .def_prop_ro("impossible", [](const PyOutcome &o) { return o.outcome.impossible; })
        .def_prop_ro("value", [](const PyOutcome &o) { return o.outcome.value; })
        .def_prop_ro("bound", [](const PyOutcome &o) { return o.outcome.bound; })
        .def_prop_ro("slack", [](const PyOutcome &o) { return o.outcome.slack; })
        .def_prop_ro("prices", [](const PyOutcome &o) { return as_vector(o.outcome.prices, o.statistics); })
        .def_prop_ro("bands", [](const PyOutcome &o) { return o.outcome.bands; })
        .def_prop_ro("cells", [](const PyOutcome &o) { return o.outcome.cells; })
        .def_prop_ro("work", [](const PyOutcome &o) { return o.outcome.work; })
        .def_prop_ro("tallies", &found_tallies)
        .def_prop_ro("scores", &found_scores)
        .def_prop_ro("proven", &proven)
        .def_prop_ro("passes", &passes)
        .def_prop_ro("met", &met)
        .def("labelling", &found_labelling, "row"_a);
    m.def("pass_price", &pass_price, "skeleton"_a);
    m.def("search_by_bounds", &search, "skeleton"_a, "scores"_a.noconvert(), "counts"_a.noconvert(), "need"_a,
          "starts"_a.noconvert(), "prices"_a.none(), "most_work"_a, "memory_limit"_a);
    m.def("relax_by_bounds", &relax, "skeleton"_a, "scores"_a.noconvert(), "counts"_a.noconvert(), "low"_a.noconvert(),
          "high"_a.noconvert(), "most_passes"_a, "gap"_a, "bands"_a, "progress"_a.none(), "memory_limit"_a);
}

}  // namespace tallytree
