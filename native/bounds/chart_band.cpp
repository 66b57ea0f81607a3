// The band over a chart: from the root down, the items that are within reach of the budget; from the words up, the
// tallies of the trees over each of them.
#include "bounds/chart_messages.h"

namespace tallytree::bounds {

namespace {

// What a rule takes that is looked at, and one that is kept, with its memory: in pairs of cells.
constexpr double kLooked = 0.125, kKept = 4;

}  // namespace

bool ChartMessages::band(double budget, double most_work, Meter &meter) {
    clear();
    begin_band(most_work);
    reach({Layer::Closed, grammar_.root, 0, spans_.words}, 0.0);
    if (!find_live(budget, meter)) return false;
    for (const auto &stage : order_)
        for (const auto number : stage) {
            const double before = work();
            Live &live = live_[number];
            if (!fill(live, budget - live.context)) return false;
            meter.spend(work() - before);
            if (!has_room(bytes())) return false;
        }
    const Index best = packing_.pack([&](Index p) { return best_tally_[p]; });
    for (Index i = live_.front().cells_begin; i < live_.front().cells_end; i++)
        root_.push_back({Packing::difference(cells_[i].key, best), cells_[i].regret});
    return true;
}

double ChartMessages::bytes() const {
    return static_cast<double>(live_.size() * sizeof(Live) + ways_.size() * sizeof(Way) +
                               cells_.size() * sizeof(TreeCell)) +
           merger_.bytes();
}

void ChartMessages::clear() {
    for (const Live &live : live_) where_[place(live.item)] = 0;
    for (auto &stage : order_) stage.clear();
    live_.clear();
    ways_.clear();
    cells_.clear();
    root_.clear();
}

// Notes that an item is within reach; returns its number among those that are. Narrow items are made first, and of one
// width the open ones, the closed ones, and those on top of them.
std::int32_t ChartMessages::reach(const Item &item, double context) {
    std::int32_t &number = where_[place(item)];
    if (number == 0) {
        const Index stage = item.layer == Layer::Open ? 0 : 1 + bare_[item.symbol];
        order_[3 * item.width + stage].push_back(static_cast<std::int32_t>(live_.size()));
        live_.push_back({item, context});
        number = static_cast<std::int32_t>(live_.size());
    } else if (double &least = live_[number - 1].context; context < least) {
        least = context;
    }
    return number - 1;
}

// Those that an item is made of come before it in the order, so that its context is final when they are reached.
bool ChartMessages::find_live(double budget, Meter &meter) {
    for (auto stage = order_.rbegin(); stage != order_.rend(); stage++)
        for (std::size_t i = 0; i < stage->size(); i++) {
            const double before = work();
            if (!find_ways((*stage)[i], budget)) return false;
            meter.spend(work() - before);
            if (!has_room(bytes())) return false;
        }
    return true;
}

// False where that takes more work than it may.
bool ChartMessages::find_ways(std::int32_t number, double budget) {
    const Item item = live_[number].item;
    const double context = live_[number].context, best = value(item), room = budget - context;
    const auto begin = static_cast<Index>(ways_.size());
    // what is as good as `least`, up to the rounding of this difference, is compared by its regret
    const double least = best - room - kUnit * (std::abs(best) + std::abs(room));
    const Index looked = each_way(item, least, [&](const ChartStep &step, double y) {
        const double regret = best - y;
        if (regret <= room) ways_.push_back({step, regret, key_of(step)});
    });
    const auto end = static_cast<Index>(ways_.size());
    if (!may_cells(kLooked * static_cast<double>(looked) + kKept * static_cast<double>(end - begin))) return false;
    for (Index w = begin; w < end; w++) {
        Way &way = ways_[w];
        if (way.step.kind == ChartStep::Word) continue;
        const auto [a, b] = parts(item, way.step);
        way.a = reach(a, context + way.regret);
        if (way.step.kind == ChartStep::Split) way.b = reach(b, context + way.regret);
    }
    live_[number].ways_begin = begin;
    live_[number].ways_end = end;
    return true;
}

// The cells of an item, by regret; false where that takes more work than it may.
bool ChartMessages::fill(Live &live, double room) {
    live.cells_begin = static_cast<Index>(cells_.size());
    merger_.begin(live.ways_end - live.ways_begin);
    for (Index w = live.ways_begin; w < live.ways_end; w++)
        if (!fill_way(static_cast<std::int32_t>(w), room)) return false;
    live.cells_end = static_cast<Index>(cells_.size());
    std::sort(cells_.begin() + live.cells_begin, cells_.end(), [](const TreeCell &x, const TreeCell &y) {
        return x.regret < y.regret || (x.regret == y.regret && x.key < y.key);
    });
    return true;
}

bool ChartMessages::fill_way(std::int32_t number, double room) {
    const Way &way = ways_[number];
    if (way.step.kind == ChartStep::Word) {
        merger_.add({0, way.regret, number, -1, -1});
        return may_cells(1);
    }
    const Live &a = live_[way.a];
    if (way.b < 0) {
        if (!may_cells(static_cast<double>(a.cells_end - a.cells_begin))) return false;
        for (Index i = a.cells_begin; i < a.cells_end; i++) {
            const TreeCell x = cells_[i];
            if (!(x.regret + way.regret <= room)) break;
            merger_.add({x.key + way.key, x.regret + way.regret, number, static_cast<std::int32_t>(i), -1});
        }
        return true;
    }
    const Live &b = live_[way.b];
    for (Index i = a.cells_begin; i < a.cells_end; i++) {
        const TreeCell x = cells_[i];
        Index k = b.cells_begin;
        for (; k < b.cells_end; k++) {
            const double regret = (x.regret + cells_[k].regret) + way.regret;
            if (!(regret <= room)) break;
            merger_.add(
                {x.key + cells_[k].key, regret, number, static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)});
        }
        if (!may_cells(static_cast<double>(k - b.cells_begin + 1))) return false;
        if (k == b.cells_begin) break;
    }
    return true;
}

double ChartMessages::decode(Index number, std::int64_t *labelling) const {
    std::vector<ChartStep> steps;
    std::vector<Index> left{live_.front().cells_begin + number};
    while (!left.empty()) {
        const TreeCell &cell = cells_[left.back()];
        left.pop_back();
        steps.push_back(ways_[cell.way].step);
        if (cell.b >= 0) left.push_back(cell.b);
        if (cell.a >= 0) left.push_back(cell.a);
    }
    write_steps(steps, labelling, sentence_.length());
    return sentence_.cell() * static_cast<double>(steps.size());
}

}  // namespace tallytree::bounds
