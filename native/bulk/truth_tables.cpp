#include "bulk/truth_tables.h"

#include <algorithm>
#include <map>

#include "bounds/chain_rows.h"

namespace tallytree {

void TruthTables::prepare() {
    const auto ranges = [](const std::vector<std::int64_t> &of, Index size, std::vector<Range> &to) {
        for (auto from = of.begin(); from != of.end(); from += size) {
            const auto [least, most] = std::minmax_element(from, from + size);
            to.emplace_back(*least, *most);
        }
    };
    const Index square = states * states;
    ranges(given, states, given_range);
    ranges(moved, square, moved_range);
    if (statistics > bounds::kMostStatistics) return;
    prepare_kinds();
    for (Index l = 0; l < links; l++) prepare_links(l);
}

void TruthTables::prepare_kinds() {
    const Index width = round_up(states);
    kind_counts.assign(kinds * statistics * width, 0);
    kind_keys.assign(kinds * width, 0);
    for (Index k = 0; k < kinds; k++) {
        std::int32_t *to = kind_counts.data() + k * statistics * width;
        for (Index p = 0; p < statistics; p++) {
            const auto *from = given.data() + (p * kinds + k) * states;
            std::transform(from, from + states, to + p * width,
                           [](std::int64_t count) { return static_cast<std::int32_t>(count); });
        }
        bounds::ChainRows::pack(to, statistics, width, kind_keys.data() + k * width);
    }
}

// Whatever most states count before a state is what that state counts by itself: few tables of neighbours are left.
void TruthTables::prepare_links(Index table) {
    const Index width = round_up(states);
    const auto count = [&](Index p, Index first, Index second) {
        return moved[((p * links + table) * states + first) * states + second];
    };
    const auto fit = [&](Index first, Index second) { return fits[(table * states + first) * states + second] != 0; };
    std::vector<std::int32_t> usual(statistics * width, 0);
    std::map<bounds::Few<Index>, Index> times;
    for (Index second = 0; second < states; second++) {
        times.clear();
        for (Index first = 0; first < states; first++) {
            bounds::Few<Index> counts{};
            for (Index p = 0; p < statistics; p++) counts[p] = count(p, first, second);
            if (fit(first, second)) times[counts]++;
        }
        const auto most = std::ranges::max_element(times, {}, [](const auto &one) { return one.second; });
        for (Index p = 0; p < statistics && most != times.end(); p++)
            usual[p * width + second] = static_cast<std::int32_t>(most->first[p]);
    }
    link_counts.emplace_back(statistics, states, width, [&](Index p, Index first, Index second) {
        return fit(first, second) ? count(p, first, second) - usual[p * width + second] : 0;
    });
    link_usual.insert(link_usual.end(), usual.begin(), usual.end());
}

const LayoutRequest &Truth::request(Mode mode, double memory_limit, Workspace &space) const {
    const Index states = tables_->states, square = states * states, count = fold.empty() ? tables_->statistics : 0;
    const bool linked = tables_->links && size() > 1;
    auto &request = space.request;
    request.caps.assign(count, kUncapped);
    request.window.low.assign(count, -kNoLimit);
    request.window.high.assign(count, kNoLimit);
    request.mode = mode;
    request.memory_limit = memory_limit;
    request.shifts.clear();
    space.given.resize(count * size() * states);
    space.moved.resize(linked ? count * (size() - 1) * square : 0);
    auto *given = space.given.data(), *moved = space.moved.data();
    for (Index p = 0; p < count; p++) {
        request.shifts.push_back({given, size(), states});
        for (Index m = 0; m < size(); m++) given = std::copy_n(given_at(p, m), states, given);
        if (!linked) continue;
        request.shifts.push_back({moved, size() - 1, square});
        for (Index m = 1; m < size(); m++) moved = std::copy_n(moved_at(p, m), square, moved);
    }
    return request;
}

const StepRanges &Truth::step_ranges(const Skeleton &skeleton, Workspace &space) const {
    const Index count = tables_->statistics, blocks = tables_->links && size() > 1 ? 2 : 1;
    StepRanges &ranges = space.ranges;
    ranges.independent = count;
    for (auto *ends : {&ranges.low, &ranges.high}) ends->assign(skeleton.steps.size() * count, 0);
    for (Index t = 0; t < std::ssize(skeleton.steps); t++)
        for (const FactorRef ref : skeleton.shift_refs[t]) {
            const Index p = skeleton.statistic_of[ref.block];
            const auto [low, high] = ref.block % blocks == 0
                                         ? tables_->given_range[p * tables_->kinds + kinds_[ref.row]]
                                         : tables_->moved_range[p * tables_->links + table_at(ref.row + 1)];
            ranges.low[t * count + p] += low;
            ranges.high[t * count + p] += high;
        }
    return ranges;
}

const std::vector<TableBlock<double>> &Truth::scores(const std::vector<TableBlock<double>> &of_labels,
                                                     Workspace &space) const {
    if (!tables_->links && fold.empty()) return of_labels;
    const Index states = tables_->states;
    space.unary.resize(size() * states);
    double *to = space.unary.data();
    for (Index m = 0; m < size(); m++, to += states) put_scores(of_labels[unary], m, to);
    space.scores = of_labels;
    space.scores[unary] = {space.unary.data(), size(), states};
    if (tables_->links && size() > 1) {
        space.links.resize((size() - 1) * states * states);
        double *link = space.links.data();
        for (Index m = 1; m < size(); m++, link += states * states)
            put_links(of_labels[1], of_labels[0].size, m, link, states);
        space.scores[1] = {space.links.data(), size() - 1, states * states};
    }
    return space.scores;
}

double Truth::state_score(const TableBlock<double> &emissions, Index m, Index state) const {
    const Index label = labels_at(m)[state];
    if (label < 0) return kNegativeInfinity;
    double score = emissions.row(m)[label];
    for (std::size_t p = 0; p < fold.size(); p++)
        score += fold[p] * static_cast<double>(given_at(static_cast<Index>(p), m)[state]);
    return score;
}

void Truth::put_scores(const TableBlock<double> &emissions, Index m, double *to) const {
    if (!tables_->links && fold.empty()) std::copy_n(emissions.row(m), tables_->states, to);
    else
        for (Index s = 0; s < tables_->states; s++) to[s] = state_score(emissions, m, s);
}

void Truth::put_links(const TableBlock<double> &of_labels, Index labels, Index m, double *to, Index width) const {
    const Index states = tables_->states;
    const auto *before = labels_at(m - 1), *after = labels_at(m);
    const auto *fits = tables_->fits.data() + table_at(m) * states * states;
    for (Index s = 0; s < states; s++, to += width) {
        const double *row = of_labels.row(m - 1) + std::max(before[s], 0) * labels;
        for (Index t = 0; t < states; t++) to[t] = *fits++ ? row[std::max(after[t], 0)] : kNegativeInfinity;
    }
}

void Truth::add_entries(std::span<const double> unary, std::span<const double> links,
                        const std::vector<TableBlock<double>> &of_labels, std::span<double *const> to) const {
    const Index states = tables_->states, labels = of_labels[0].size;
    const double *from = unary.data();
    for (Index m = 0; m < size(); m++)
        for (Index s = 0; s < states; s++, from++)
            if (const Index label = labels_at(m)[s]; label >= 0) to[0][m * labels + label] += *from;
    from = links.data();
    for (Index m = 1; m < size(); m++) {
        double *table = to[1] + (of_labels[1].row(m - 1) - of_labels[1].data);
        for (Index s = 0; s < states; s++)
            for (Index t = 0; t < states; t++, from++)
                if (*from != 0) table[labels_at(m - 1)[s] * labels + labels_at(m)[t]] += *from;
    }
}

std::vector<std::int64_t> Truth::tally(std::span<const std::int64_t> states) const {
    std::vector<std::int64_t> tally(tables_->statistics, 0);
    for (Index p = 0; p < tables_->statistics; p++)
        for (Index m = 0; m < size(); m++) {
            tally[p] += given_at(p, m)[states[m]];
            if (tables_->links && m) tally[p] += moved_at(p, m)[states[m - 1] * tables_->states + states[m]];
        }
    return tally;
}

void Truth::relabel(std::span<std::int64_t> states) const {
    for (Index m = 0; tables_->links && m < size(); m++) states[m] = labels_at(m)[states[m]];
}

}  // namespace tallytree
