#include "bulk/loss_table.h"

#include <algorithm>
#include <cmath>

#include "tables/root.h"

namespace tallytree {

[[noreturn]] static void throw_outside() { throw std::invalid_argument("a tally lies outside the table"); }

bool TallyGrid::has(const Index *tally) const {
    for (std::size_t i = 0; i < low.size(); i++)
        if (tally[i] < low[i] || tally[i] - low[i] >= extent[i]) return false;
    return true;
}

Index TallyGrid::place(const Index *tally) const {
    if (!has(tally)) throw_outside();
    Index place = 0;
    for (std::size_t i = 0; i < low.size(); i++) place = place * extent[i] + tally[i] - low[i];
    return place;
}

std::vector<Index> TallyGrid::tally(Index place) const {
    std::vector<Index> tally(low);
    for (std::size_t i = low.size(); i-- > 0; place /= extent[i]) tally[i] += place % extent[i];
    return tally;
}

void LossTable::measure() {
    regular = true;
    largest = 0;
    inverses.clear();
    if (slack) inverses.reserve(losses.size());
    for (const double loss : losses) {
        regular &= std::isfinite(loss);
        largest = std::max(largest, std::abs(loss));
        if (!slack) continue;
        inverses.push_back(loss > 0 ? 1 / loss : 0.0);
        regular &= loss >= 0 && std::isfinite(inverses.back());
    }
}

namespace {

// Where the cells of a stretch lie in a table of losses; those before `from`, and from `to` on, lie outside.
struct LossCells {
    Index first = 0, stride = 0, from = 0, to = 1;

    LossCells(const LossTable &table, const RootStretch &root) {
        bool inside = true;
        for (Index i = 0; i < static_cast<Index>(table.low.size()); i++) {
            const Index x = root.tally[i] - table.low[i], n = table.extent[i];
            first = first * n + x;
            stride *= n;
            if (i == root.along) {
                stride = 1;
                from = -x;
                to = n - x;
            } else {
                inside &= x >= 0 && x < n;
            }
        }
        if (!inside) to = from;
    }
};

void check_empty(std::span<const double> cells) {
    for (const double value : cells)
        if (value != kNegativeInfinity) throw_outside();
}

// Calls `use(number in the stretch, place)` for the cells of a stretch that lie in the table; nothing may lead to
// others.
template <class Use>
void each_loss(const LossTable &table, const RootStretch &root, Use use) {
    const LossCells cells(table, root);
    const auto size = static_cast<Index>(root.values.size());
    const Index from = std::clamp<Index>(cells.from, 0, size), to = std::clamp<Index>(cells.to, from, size);
    check_empty(root.values.first(from));
    check_empty(root.values.subspan(to));
    for (Index i = from; i < to; i++) use(i, cells.first + i * cells.stride);
}

}  // namespace

std::vector<double> LossTable::of_root(const Run &run) const {
    std::vector<double> found(run.layout().tables.back().cells, 0.0);
    each_root_stretch(run, [&](const RootStretch &root) {
        each_loss(*this, root, [&](Index i, Index place) { found[root.cell + i] = losses[place]; });
    });
    return found;
}

std::vector<LossTable::Choice> LossTable::best(const Run &run, double truth_score, Index count) const {
    std::vector<Choice> found;
    found.reserve(count + 1);
    const double constant = run.constant();
    double least = kNegativeInfinity;  // what it takes to be among the best
    each_root_stretch(run, [&](const RootStretch &root) {
        each_loss(*this, root, [&](Index i, Index place) {
            const double score = root.values[i] + constant, loss = losses[place];
            const double worth = value(loss, score - truth_score);
            if (!(worth >= least) || worth == kNegativeInfinity) return;
            const Choice one{worth, score, loss, place, root.cell + i};
            found.insert(std::upper_bound(found.begin(), found.end(), one), one);
            if (static_cast<Index>(found.size()) > count) found.pop_back();
            if (static_cast<Index>(found.size()) == count) least = found.back().value;
        });
    });
    return found;
}

}  // namespace tallytree
