// The band over any graph: from the last table down, the states that are within reach of the budget; from the first
// table up, the tallies of the part below each of them.
#include "bounds/graph_messages.h"

namespace tallytree::bounds {

bool GraphMessages::band(double budget, double most_work, Meter &meter) {
    const auto size = static_cast<Index>(skeleton_->steps.size());
    for (Index t = 0; t < size; t++) {
        for (const Live &live : live(t)) where_[begin_[t] + live.state] = 0;
        live_begin_[t] = live_count_[t] = 0;
    }
    live_.clear();
    ways_.clear();
    cells_.assign(1, {0, 0.0, false});  // that of tables which know nothing
    work_ = 0;
    const auto lists = [&] { return static_cast<double>(live_.size() * sizeof(Live) + ways_.size() * sizeof(Way)); };
    reach(size - 1, 0, 0.0);
    for (Index t = size; t-- > 0;) {
        const double before = work_;
        find_live(t, budget);
        meter.spend(work_ - before);
        if (work_ > most_work || !has_room(lists())) return false;
    }
    const auto bytes = [&] { return lists() + merger_.bytes() + static_cast<double>(cells_.size() * sizeof(Reached)); };
    for (Index t = 0; t < size; t++)
        for (Live &live : live(t)) {
            const double before = work_, room = budget - live.context;
            const Verb verb = skeleton_->steps[t].verb;
            if (verb == Verb::Unit) live.cells_end = 1;
            if (verb == Verb::Join) fill_join(t, live, room);
            if (verb == Verb::Eliminate) fill(t, live, room);
            meter.spend(work_ - before);
            if (work_ > most_work || !has_room(bytes())) return false;
        }
    const Live &root = live_.front();  // of the last table
    root_ = root.cells_begin;
    tallies_.clear();
    for (Index i = root.cells_begin; i < root.cells_end; i++) tallies_.push_back({cells_[i].key, cells_[i].regret});
    return true;
}

// Notes that a state of a table is within reach; returns its number among those that are. Those of one table are noted
// one after the other, with none of another table between them.
std::int32_t GraphMessages::reach(Index table, Index state, double context) {
    std::int32_t &number = where_[begin_[table] + state];
    if (number == 0) {
        if (live_count_[table] == 0) live_begin_[table] = static_cast<Index>(live_.size());
        number = static_cast<std::int32_t>(++live_count_[table]);
        live_.push_back({state, context});
    } else if (double &least = live_[live_begin_[table] + number - 1].context; context < least) {
        least = context;
    }
    return number - 1;
}

// Each table has one step that takes it, so all its live states are noted here, and none elsewhere.
void GraphMessages::find_live(Index t, double budget) {
    const Step &step = skeleton_->steps[t];
    if (step.verb == Verb::Unit) return;
    if (step.verb == Verb::Join) return find_live_join(t);
    const Index best_key = key_of(t, best_place_[t]);
    const Index first = live_begin_[t], last = first + live_count_[t];
    for (Index i = first; i < last; i++) {  // the list grows meanwhile
        const Operands at = operands(t, live_[i].state);
        live_[i].ways_begin = live_[i].ways_end = static_cast<Index>(ways_.size());
        const double context = live_[i].context, best = weigh(t, at), room = budget - context;
        work_ += static_cast<double>(step.gone.count);
        if (best == kNegativeInfinity) continue;
        for (Index v = 0; v < step.gone.count; v++) {
            const double regret = best - weighed_[v];
            if (!(regret <= room)) continue;
            const auto input = reach(step.a, at.a + v * step.gone.a, context + regret);
            const Index key = Packing::difference(key_of(t, at.shift + v * step.gone.shift), best_key);
            ways_.push_back({static_cast<std::int32_t>(v), input, regret, key});
        }
        live_[i].ways_end = static_cast<Index>(ways_.size());
    }
}

// First the states of one table, then those of the other.
void GraphMessages::find_live_join(Index t) {
    const Step &step = skeleton_->steps[t];
    const Index first = live_begin_[t], last = first + live_count_[t];
    for (Index i = first; i < last; i++) {
        const Index state = operands(t, live_[i].state).a;
        live_[i].ways_begin = static_cast<Index>(ways_.size());
        ways_.push_back({0, reach(step.a, state, live_[i].context), 0.0, 0});
        live_[i].ways_end = static_cast<Index>(ways_.size());
        work_ += 1;
    }
    for (Index i = first; i < last; i++) {
        const auto input = reach(step.b, operands(t, live_[i].state).b, live_[i].context);
        live_[i].input_b = input;
    }
}

// The cells of a state: those of the states that it can be made from, moved and with what the choice loses.
void GraphMessages::fill(Index t, Live &live, double room) {
    const auto inputs = this->live(skeleton_->steps[t].a);
    const std::span ways(ways_.data() + live.ways_begin, static_cast<std::size_t>(live.ways_end - live.ways_begin));
    Index most = 0;
    for (const Way &way : ways) most += inputs[way.input].cells_end - inputs[way.input].cells_begin;
    if (ways.size() == 1 && ways[0].regret == 0 && ways[0].key == 0) {
        live.cells_begin = inputs[ways[0].input].cells_begin;
        live.cells_end = inputs[ways[0].input].cells_end;
        return;
    }
    live.cells_begin = static_cast<Index>(cells_.size());
    work_ += static_cast<double>(most);
    if (ways.size() > 1) merger_.begin(most);
    for (const Way &way : ways) {
        const Live &input = inputs[way.input];
        for (Index i = input.cells_begin; i < input.cells_end; i++) {
            const double regret = cells_[i].regret + way.regret;
            if (!(regret <= room)) continue;
            const Reached cell{cells_[i].key + way.key, regret, cells_[i].tied};
            if (ways.size() > 1) merger_.add(cell);
            else cells_.push_back(cell);
        }
    }
    live.cells_end = static_cast<Index>(cells_.size());
}

void GraphMessages::fill_join(Index t, Live &live, double room) {
    const Step &step = skeleton_->steps[t];
    const Live &a = this->live(step.a, ways_[live.ways_begin].input), &b = this->live(step.b, live.input_b);
    const auto plain = [&](const Live &one) {
        return one.cells_end - one.cells_begin == 1 && cells_[one.cells_begin].key == 0 &&
               cells_[one.cells_begin].regret == 0 && !cells_[one.cells_begin].tied;
    };
    if (plain(a) || plain(b)) {
        const Live &other = plain(a) ? b : a;
        live.cells_begin = other.cells_begin;
        live.cells_end = other.cells_end;
        return;
    }
    const Index pairs = (a.cells_end - a.cells_begin) * (b.cells_end - b.cells_begin);
    work_ += static_cast<double>(pairs);
    live.cells_begin = static_cast<Index>(cells_.size());
    merger_.begin(pairs);
    for (Index i = a.cells_begin; i < a.cells_end; i++)
        for (Index k = b.cells_begin; k < b.cells_end; k++) {
            const double regret = cells_[i].regret + cells_[k].regret;
            if (regret > room) continue;
            merger_.add({cells_[i].key + cells_[k].key, regret, cells_[i].tied || cells_[k].tied});
        }
    live.cells_end = static_cast<Index>(cells_.size());
}

// Every choice is looked for again: no cell remembers where it comes from.
void GraphMessages::decode(Index number, std::int64_t *labelling) const {
    struct Visit {
        Index table;
        std::int32_t live;
        Reached cell;
    };
    const auto find = [&](const Live &live, Index key, auto fits) {
        for (Index i = live.cells_begin; i < live.cells_end; i++)
            if (cells_[i].key == key && fits(cells_[i].regret)) return i;
        return Index{-1};
    };
    std::vector<Visit> left{{static_cast<Index>(live_begin_.size()) - 1, 0, cells_[root_ + number]}};
    while (!left.empty()) {
        const auto [t, number_live, cell] = left.back();
        left.pop_back();
        const Step &step = skeleton_->steps[t];
        const Live &live = this->live(t, number_live);
        if (step.verb == Verb::Unit) continue;
        if (step.verb == Verb::Join) {
            const auto input = ways_[live.ways_begin].input;
            const Live &a = this->live(step.a, input), &b = this->live(step.b, live.input_b);
            Index i = a.cells_begin, k = -1;
            for (; i < a.cells_end; i++) {
                k = find(b, cell.key - cells_[i].key, [&](double r) { return cells_[i].regret + r == cell.regret; });
                if (k >= 0) break;
            }
            if (k < 0) throw std::logic_error("a cell of the band has no origin");
            left.push_back({step.a, input, cells_[i]});
            left.push_back({step.b, live.input_b, cells_[k]});
            continue;
        }
        Index at = -1;
        for (Index w = live.ways_begin; w < live.ways_end && at < 0; w++) {
            const Way &way = ways_[w];
            at = find(this->live(step.a, way.input), cell.key - way.key,
                      [&](double r) { return r + way.regret == cell.regret; });
            if (at < 0) continue;
            labelling[step.variable] = way.choice;
            left.push_back({step.a, way.input, cells_[at]});
        }
        if (at < 0) throw std::logic_error("a cell of the band has no origin");
    }
}

}  // namespace tallytree::bounds
