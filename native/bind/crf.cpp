// Sums over chains, and products of features with weights, at the border to Python.
#include "bind/truths.h"
#include "crf/best.h"
#include "crf/risks.h"
#include "crf/sparse.h"
#include "crf/spans.h"

namespace tallytree {
namespace {

using Flags = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_increasing(std::span<const std::int64_t> starts, std::size_t end) {
    require(!starts.empty() && starts.front() == 0 && starts.back() == static_cast<std::int64_t>(end),
            "the parts do not make up the whole");
    for (std::size_t i = 1; i < starts.size(); i++) require(starts[i - 1] <= starts[i], "a part has a negative size");
}

std::span<const std::uint8_t> as_bytes(const Flags &flags) {
    return {reinterpret_cast<const std::uint8_t *>(flags.data()), flags.size()};
}

ChunkScheme checked_scheme(const Ints32 &types, const Flags &boundaries) {
    std::int32_t most = -1;
    for (auto type : as_span(types)) {
        require(type >= -1 && static_cast<std::size_t>(type + 1) <= types.size(), "there are more types than labels");
        most = std::max(most, type);
    }
    return {as_span(types), as_bytes(boundaries), most + 1};
}

// Chains anywhere in an array of positions, one behind the other.
ChainBatch checked_chains(const Doubles2 &emissions, const Tables &links, const Ints &starts, const Ints &lengths) {
    const std::size_t labels = emissions.shape(1), last = links.ndim() - 1;
    const bool own = links.ndim() == 3;
    require(labels > 0 && (own || links.ndim() == 2) && links.shape(last - 1) == labels && links.shape(last) == labels,
            "links go from label to label");
    require(starts.size() == lengths.size(), "a chain has a start and a length");
    Index end = 0, tables = 0;
    for (std::size_t i = 0; i < starts.size(); i++) {
        require(starts.data()[i] >= end && lengths.data()[i] >= 0, "chains lie one behind the other");
        end = starts.data()[i] + lengths.data()[i];
        tables = end - static_cast<Index>(i) - 1;
        require(!own || lengths.data()[i] > 0, "an empty chain has no links");
    }
    require(end <= static_cast<Index>(emissions.shape(0)), "a chain goes beyond the scores");
    require(!own || tables <= static_cast<Index>(links.shape(0)), "one table of links per two neighbours is needed");
    return {emissions.data(), links.data(), as_span(starts), as_span(lengths), static_cast<Index>(labels), own};
}

// Log sums, marginals and expected pairs, and which chains are left out because their scores lie too far apart for
// plain products. With truths, all of it less what is theirs.
auto chain_sums(Doubles2 emissions, Tables links, Ints starts, Ints lengths, Doubles importance,
                std::optional<Ints> truths, std::int64_t threads) {
    const ChainBatch chains = checked_chains(emissions, links, starts, lengths);
    require(importance.size() == starts.size(), "one number per chain is needed");
    require(!truths || truths->size() == emissions.shape(0), "one label per position is needed");
    for (auto label : truths ? as_span(*truths) : std::span<const std::int64_t>())
        require(label >= 0 && label < chains.labels, "a label is out of range");
    std::vector<double> log_sums(importance.size()), marginals(emissions.size()), pairs(links.size());
    std::vector<std::uint8_t> left_out(importance.size());
    {
        nb::gil_scoped_release release;
        const auto given = truths ? as_span(*truths) : std::span<const std::int64_t>();
        sum_chains(chains, {log_sums, marginals, pairs, as_span(importance), left_out, given}, threads, chosen_kernels,
                   kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(log_sums)),
                          to_numpy(std::move(marginals), {emissions.shape(0), emissions.shape(1)}),
                          to_numpy(std::move(pairs), shape_of(links)), to_numpy(std::move(left_out)));
}

// How log sums, marginals and pairs move with scores, and which chains are left out.
auto chain_bends(Doubles2 emissions, Tables links, Ints starts, Ints lengths, Doubles2 by_emissions, Tables by_links,
                 Doubles importance, std::int64_t threads) {
    const ChainBatch chains = checked_chains(emissions, links, starts, lengths);
    require(importance.size() == starts.size(), "one number per chain is needed");
    require(by_emissions.shape(0) == emissions.shape(0) && by_emissions.shape(1) == emissions.shape(1) &&
                shape_of(by_links) == shape_of(links),
            "a direction has the shapes of the scores");
    std::vector<double> means(importance.size()), marginals(emissions.size()), pairs(links.size());
    std::vector<std::uint8_t> left_out(importance.size());
    {
        nb::gil_scoped_release release;
        bend_chains(chains,
                    {by_emissions.data(), by_links.data(), as_span(importance), means, marginals, pairs, left_out},
                    threads, chosen_kernels, kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(means)),
                          to_numpy(std::move(marginals), {emissions.shape(0), emissions.shape(1)}),
                          to_numpy(std::move(pairs), shape_of(links)), to_numpy(std::move(left_out)));
}

void check_rules(const Doubles2 &rules, const Ints &which, std::size_t chains) {
    require(which.size() == chains, "one rule per chain is needed");
    for (auto row : as_span(which))
        require(row >= 0 && static_cast<std::size_t>(row) < rules.shape(0), "a rule is out of range");
    for (std::size_t i = 0; i < rules.shape(0); i++) {
        const double count = rules.data()[i * rules.shape(1)];
        require(count >= 1 && 1 + 2 * count <= static_cast<double>(rules.shape(1)), "a rule has one x or more");
    }
}

// What a loss counts: positions by `errors` and `counted`, or chunks by `types` and `boundaries` if there are types.
struct PyQuotient {
    Doubles2 errors;
    Flags counted, boundaries;
    Ints32 types;
    QuotientCounts counts;

    PyQuotient(Doubles2 errors_, Flags counted_, Ints32 types_, Flags boundaries_, double missed)
        : errors(errors_), counted(counted_), boundaries(boundaries_), types(types_) {
        const std::size_t labels = types.size() ? types.size() : errors.shape(0), square = labels * labels;
        require(types.size() ? boundaries.size() == square : errors.size() == square && counted.size() == square,
                "counts are those of pairs of labels");
        const ChunkScheme scheme = checked_scheme(types, boundaries);
        counts = {{errors.data(), errors.size()}, as_bytes(counted), scheme, missed, static_cast<Index>(labels)};
    }
};

// Expected losses, their derivatives, and which chains are left out.
auto chain_risks(Doubles2 emissions, Tables links, Ints starts, Ints lengths, Ints truths, const PyQuotient &quotient,
                 Doubles2 rules, Ints which, Doubles importance, double memory_limit, std::int64_t threads) {
    const ChainBatch chains = checked_chains(emissions, links, starts, lengths);
    require(importance.size() == starts.size(), "one number per chain is needed");
    require(truths.size() == emissions.shape(0), "one label per position is needed");
    for (Index i = 0; i < chains.size(); i++)
        for (Index m = 0; m < chains.lengths[i]; m++) {
            const std::int64_t label = truths.data()[chains.starts[i] + m];
            require(label >= 0 && label < chains.labels, "a label is out of range");
        }
    require(quotient.counts.labels == chains.labels, "counts are those of the labels");
    check_rules(rules, which, starts.size());
    std::vector<double> values(importance.size()), marginals(emissions.size()), pairs(links.size());
    std::vector<std::uint8_t> left_out(importance.size());
    {
        nb::gil_scoped_release release;
        sum_risks(chains, quotient.counts,
                  {{rules.data(), rules.size()}, static_cast<Index>(rules.shape(1)), as_span(which)},
                  {values, marginals, pairs, as_span(importance), left_out, as_span(truths)}, memory_limit, threads,
                  chosen_kernels, kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(values)),
                          to_numpy(std::move(marginals), {emissions.shape(0), emissions.shape(1)}),
                          to_numpy(std::move(pairs), shape_of(links)), to_numpy(std::move(left_out)));
}

// The best labels of all chains, and which chains are left out because something is wrong with these.
auto chain_labels(Doubles2 emissions, Doubles2 links, Ints starts, Ints lengths, std::int64_t threads) {
    const ChainBatch chains = checked_chains(emissions, Tables(links), starts, lengths);
    std::vector<std::int64_t> labels(emissions.shape(0));
    std::vector<std::uint8_t> left_out(starts.size());
    {
        nb::gil_scoped_release release;
        label_chains(chains, {labels, left_out}, threads, chosen_kernels, kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(left_out)));
}

// Labellings of all chains, drawn by uniform numbers, and which chains are left out.
auto chain_draws(Doubles2 emissions, Tables links, Ints starts, Ints lengths, Doubles2 uniforms, std::int64_t threads) {
    const ChainBatch chains = checked_chains(emissions, links, starts, lengths);
    require(uniforms.shape(1) == emissions.shape(0), "one number per draw and position is needed");
    std::vector<std::int64_t> labels(uniforms.size());
    std::vector<std::uint8_t> left_out(starts.size());
    {
        nb::gil_scoped_release release;
        const auto draws = static_cast<Index>(uniforms.shape(0)), positions = static_cast<Index>(uniforms.shape(1));
        draw_chains(chains, {{uniforms.data(), uniforms.size()}, labels, draws, positions, left_out}, threads,
                    chosen_kernels, kPoll, kPlainly);
    }
    return nb::make_tuple(to_numpy(std::move(labels), {uniforms.shape(0), uniforms.shape(1)}),
                          to_numpy(std::move(left_out)));
}

auto times(Ints starts, Ints32 columns, Doubles values, Doubles2 table, std::int64_t threads) {
    require(columns.size() == values.size(), "one value per entry is needed");
    check_increasing(as_span(starts), columns.size());
    for (auto column : as_span(columns))
        require(column >= 0 && static_cast<std::size_t>(column) < table.shape(0), "a column is out of range");
    const std::size_t rows = starts.size() - 1, labels = table.shape(1);
    std::vector<double> out(rows * labels);
    {
        nb::gil_scoped_release release;
        sparse_times({as_span(starts), as_span(columns), as_span(values)}, table.data(), static_cast<Index>(labels),
                     out.data(), threads, chosen_kernels, kPoll, kPlainly);
    }
    return to_numpy(std::move(out), {rows, labels});
}

// Chains, and what their labels say of chunks; checked.
struct PyChunks {
    std::vector<std::int64_t> lengths;
    ChainBatch chains;
    ChunkScheme scheme;

    PyChunks(const Doubles2 &emissions, const Doubles2 &links, const Ints &starts, const Ints32 &types,
             const Flags &boundaries) {
        const std::size_t labels = emissions.shape(1);
        require(labels > 0 && links.shape(0) == labels && links.shape(1) == labels, "links go from label to label");
        check_increasing(as_span(starts), emissions.shape(0));
        require(types.size() == labels && boundaries.shape(0) == labels && boundaries.shape(1) == labels,
                "types and boundaries are those of labels");
        for (std::size_t i = 1; i < starts.size(); i++) lengths.push_back(starts.data()[i] - starts.data()[i - 1]);
        chains = {emissions.data(), links.data(), as_span(starts).first(lengths.size()), lengths,
                  static_cast<Index>(labels)};
        scheme = checked_scheme(types, boundaries);
    }
};

nb::object to_chunks(std::vector<ChosenChunk> chunks) {
    return to_records(std::move(chunks), {{"chain", "i8", offsetof(ChosenChunk, chain)},
                                          {"first", "i8", offsetof(ChosenChunk, first)},
                                          {"last", "i8", offsetof(ChosenChunk, last)},
                                          {"type", "i8", offsetof(ChosenChunk, type)},
                                          {"probability", "f8", offsetof(ChosenChunk, probability)}});
}

// For each chain the least expected loss, and the chunks of the labelling that has it; nothing where scores lie too far
// apart for plain products.
nb::object chunks_of_least_loss(Doubles2 emissions, Doubles2 links, Ints starts, Ints32 types, Flags boundaries,
                                Doubles2 base, Doubles2 gain, std::int64_t threads) {
    const PyChunks given(emissions, links, starts, types, boundaries);
    std::int64_t longest = 0;
    for (std::size_t i = 1; i < starts.size(); i++)
        longest = std::max(longest, starts.data()[i] - starts.data()[i - 1]);
    require(base.shape(0) == base.shape(1) && gain.shape(0) == gain.shape(1) && base.shape(0) == gain.shape(0) &&
                static_cast<std::int64_t>(base.shape(0)) > longest,
            "losses are those of numbers of chunks up to the longest chain");
    ChosenChunks found;
    bool level = false;
    {
        nb::gil_scoped_release release;
        level = are_level(given.chains);
        if (level)
            found =
                choose_chunks(given.chains, given.scheme, {base.data(), gain.data(), static_cast<Index>(base.shape(1))},
                              threads, chosen_kernels, kPoll, kPlainly);
    }
    if (!level) return nb::none();
    return nb::make_tuple(to_numpy(std::move(found.losses)), to_chunks(std::move(found.chunks)));
}

// All chunks that are more likely than `least`; nothing where scores lie too far apart.
nb::object chunks_above(Doubles2 emissions, Doubles2 links, Ints starts, Ints32 types, Flags boundaries, double least,
                        std::int64_t threads) {
    const PyChunks given(emissions, links, starts, types, boundaries);
    std::vector<ChosenChunk> found;
    bool level = false;
    {
        nb::gil_scoped_release release;
        level = are_level(given.chains);
        if (level) found = likely_chunks(given.chains, given.scheme, least, threads, chosen_kernels, kPoll, kPlainly);
    }
    if (!level) return nb::none();
    return to_chunks(std::move(found));
}

// The mean and the variance of the number of chunks of each chain; nothing where scores lie too far apart.
nb::object numbers_of_chunks(Doubles2 emissions, Doubles2 links, Ints starts, Ints32 types, Flags boundaries,
                             std::int64_t threads) {
    const PyChunks given(emissions, links, starts, types, boundaries);
    ChunkNumbers found;
    bool level = false;
    {
        nb::gil_scoped_release release;
        level = are_level(given.chains);
        if (level) found = chunk_numbers(given.chains, given.scheme, threads, chosen_kernels, kPoll, kPlainly);
    }
    if (!level) return nb::none();
    return nb::make_tuple(to_numpy(std::move(found.means)), to_numpy(std::move(found.variances)));
}

}  // namespace

void bind_crf(nb::module_ &m) {
    m.def("chain_sums", &chain_sums, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "lengths"_a.noconvert(), "importance"_a.noconvert(), "truths"_a.none(), "threads"_a);
    m.def("chain_bends", &chain_bends, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "lengths"_a.noconvert(), "by_emissions"_a.noconvert(), "by_links"_a.noconvert(), "importance"_a.noconvert(),
          "threads"_a);
    nb::class_<PyQuotient>(m, "QuotientCounts")
        .def(nb::init<Doubles2, Flags, Ints32, Flags, double>(), "errors"_a.noconvert(), "counted"_a.noconvert(),
             "types"_a.noconvert(), "boundaries"_a.noconvert(), "missed"_a);
    m.def("chain_risks", &chain_risks, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "lengths"_a.noconvert(), "truths"_a.noconvert(), "counts"_a, "rules"_a.noconvert(), "which"_a.noconvert(),
          "importance"_a.noconvert(), "memory_limit"_a, "threads"_a);
    m.def("chain_labels", &chain_labels, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "lengths"_a.noconvert(), "threads"_a);
    m.def("chain_draws", &chain_draws, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "lengths"_a.noconvert(), "uniforms"_a.noconvert(), "threads"_a);
    m.def("chunks_of_least_loss", &chunks_of_least_loss, "emissions"_a.noconvert(), "links"_a.noconvert(),
          "starts"_a.noconvert(), "types"_a.noconvert(), "boundaries"_a.noconvert(), "base"_a.noconvert(),
          "gain"_a.noconvert(), "threads"_a);
    m.def("chunks_above", &chunks_above, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "types"_a.noconvert(), "boundaries"_a.noconvert(), "least"_a, "threads"_a);
    m.def("chunk_numbers", &numbers_of_chunks, "emissions"_a.noconvert(), "links"_a.noconvert(), "starts"_a.noconvert(),
          "types"_a.noconvert(), "boundaries"_a.noconvert(), "threads"_a);
    m.def("sparse_times", &times, "starts"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
          "table"_a.noconvert(), "threads"_a);
}

}  // namespace tallytree
