// The band over any graph: from the last table down, the states that are within reach of the budget; from the first
// table up, the tallies of the part below each of them.
#include "bounds/graph_messages.h"

namespace tallytree::bounds {

namespace {

// Units of work: a step; a state that is within reach, and one of a join; a choice there, and one that reads a join; a
// way that is kept; a cell that is moved along the only way, merged with others, or paired with another one.
constexpr double kStep = 20, kState = 38, kJoinState = 105, kLooked = 3.2, kLookedJoin = 25;
constexpr double kWay = 28, kMoved = 3, kMerged = 9, kPair = 7.5;
// For each state within reach if messages do not stay in the cache, and for each cell beyond those that do.
constexpr double kFarState = 50, kNearStates = 1 << 17, kFar = 5, kNear = 1 << 15;
constexpr double kVisited = 15, kFound = 1.5;  // to follow a labelling: a table, and a cell that is looked at

}  // namespace

void GraphMessages::forget_band() {
    for (const std::int32_t t : reached_) {
        for (const Live &live : live(t)) where_[begin_[t] + live.state] = 0;
        live_begin_[t] = live_count_[t] = 0;
    }
    reached_.clear();
    live_.clear();
    ways_.clear();
}

bool GraphMessages::band(double budget, double most_work, Meter &meter) {
    constexpr double kOften = 4096;
    forget_band();
    cells_.assign(1, {0, 0.0, false});  // that of tables which know nothing
    begin_band(most_work);
    double spent = 0;
    const auto lists = [&] { return static_cast<double>(live_.size() * sizeof(Live) + ways_.size() * sizeof(Way)); };
    const auto within = [&](double bytes) {
        if (work() - spent > kOften) meter.spend(work() - std::exchange(spent, work()));
        return has_room(bytes);
    };
    for (const Move &move : std::views::reverse(moves_))
        if (!find_live(move, budget) || !within(lists())) return false;
    const auto bytes = [&] { return lists() + merger_.bytes() + static_cast<double>(cells_.size() * sizeof(Reached)); };
    for (const Move &move : moves_) {
        const bool joins = move.other >= 0;
        if (live_count_[move.t] == 0) {
            const Range first = cells_of(move.from, 0);
            best_cells_[move.t] = first;
            if (joins && !join_cells(first, cells_of(move.other, 0), budget, best_cells_[move.t])) return false;
        }
        for (Live &live : live(move.t)) {
            const double room = budget - live.context;
            const bool filled = joins ? join_cells(cells_of(move.from, live.input), cells_of(move.other, live.input_b),
                                                   room, live.cells)
                                      : fill(move.from, live, room);
            if (!filled) return false;
        }
        if (!within(bytes())) return false;
    }
    const Range root = cells_of(static_cast<Index>(begin_.size()) - 2, 0);
    root_ = root.first;
    tallies_.clear();
    for (Index i = root.first; i < root.last; i++) tallies_.push_back({cells_[i].key, cells_[i].regret});
    return true;
}

// Notes that a state of a table is within reach; returns its number among those that are. Those of one table are noted
// one after the other, with none of another table between them. Tables that know nothing are the same in all states.
std::int32_t GraphMessages::reach(Index table, Index state, double context) {
    if (skeleton_->steps[table].verb == Verb::Unit) return 0;
    std::int32_t &number = where_[begin_[table] + state];
    if (number == 0) {
        if (live_count_[table] == 0) {
            live_begin_[table] = static_cast<Index>(live_.size());
            reached_.push_back(static_cast<std::int32_t>(table));
        }
        number = static_cast<std::int32_t>(++live_count_[table]);
        live_.push_back({state, context});
    } else if (double &least = live_[live_begin_[table] + number - 1].context; context < least) {
        least = context;
    }
    return number - 1;
}

// A table of which nothing but the best state is within reach, without a loss, has no list.
void GraphMessages::unlist_best(Index table) {
    if (live_count_[table] != 1) return;
    const Live &only = live(table, 0);
    if (only.state != best_state_[table] || only.context > 0) return;
    where_[begin_[table] + only.state] = 0;
    live_count_[table] = live_begin_[table] = 0;
    live_.pop_back();
    reached_.pop_back();
}

// Whether no choice but the best one is within the budget, in the best state.
bool GraphMessages::is_settled(const Move &move, double budget) {
    const double best = weigh(move, best_operands(move));
    Index near = 0;
    for (Index v = 0; v < move.choices; v++) near += best - weighed_[v] <= budget;
    return near <= 1;
}

// Each table has one step that takes it, so all its live states are noted here, and none elsewhere. False where that
// takes more work than it may.
bool GraphMessages::find_live(const Move &move, double budget) {
    const Index t = move.t;
    const bool joins = move.manner == Manner::JoinedRows;
    const double far = static_cast<double>(begin_.back()) > kNearStates ? kFarState : 0;
    const double look = kStep + (joins ? kLookedJoin : kLooked) * static_cast<double>(move.choices);
    if (move.other >= 0) return find_live_join(move);
    if (live_count_[t] == 0) {
        if (!may(look)) return false;
        if (is_settled(move, budget)) return true;
        reach(t, best_state_[t], 0.0);
    }
    const Index best_key = key_of(t, best_operands(move).shift + labelling_[move.variable] * move.shift);
    const Index first = live_begin_[t], last = first + live_count_[t];
    for (Index i = first; i < last; i++) {  // the list grows meanwhile
        if (!may(kState + far + look)) return false;
        const Operands at = operands(t, live_[i].state);
        live_[i].ways_begin = live_[i].ways_end = static_cast<Index>(ways_.size());
        const double context = live_[i].context, best = weigh(move, at), room = budget - context;
        if (best == kNegativeInfinity) continue;
        for (Index v = 0; v < move.choices; v++) {
            const double regret = best - weighed_[v];
            if (!(regret <= room)) continue;
            const auto input = reach(move.from, at.a + v * move.input, context + regret);
            const Index key = Packing::difference(key_of(t, at.shift + v * move.shift), best_key);
            ways_.push_back({static_cast<std::int32_t>(v), input, regret, key});
        }
        live_[i].ways_end = static_cast<Index>(ways_.size());
    }
    unlist_best(move.from);
    return true;
}

// First the states of one table, then those of the other.
bool GraphMessages::find_live_join(const Move &move) {
    const Index t = move.t, first = live_begin_[t], count = live_count_[t];
    if (!may(kStep + kJoinState * static_cast<double>(count))) return false;
    for (Index i = first; i < first + count; i++)
        live_[i].input = reach(move.from, operands(t, live_[i].state).a, live_[i].context);
    unlist_best(move.from);
    for (Index i = first; i < first + count; i++)
        live_[i].input_b = reach(move.other, operands(t, live_[i].state).b, live_[i].context);
    unlist_best(move.other);
    return true;
}

// The cells of a state: those of the states that it can be made from, moved and with what the choice loses. False where
// that takes more work than it may.
bool GraphMessages::fill(Index from, Live &live, double room) {
    const std::span ways(ways_.data() + live.ways_begin, static_cast<std::size_t>(live.ways_end - live.ways_begin));
    if (ways.size() == 1 && ways[0].regret == 0 && ways[0].key == 0) {
        live.cells = cells_of(from, ways[0].input);
        return may(kWay);
    }
    Index most = 0;
    for (const Way &way : ways) most += size_of(cells_of(from, way.input));
    const double each = (ways.size() > 1 ? kMerged : kMoved) + (static_cast<double>(cells_.size()) > kNear ? kFar : 0);
    if (!may(kWay * static_cast<double>(ways.size()) + each * static_cast<double>(most))) return false;
    live.cells.first = static_cast<Index>(cells_.size());
    if (ways.size() > 1) merger_.begin(most);
    for (const Way &way : ways) {
        const Range input = cells_of(from, way.input);
        for (Index i = input.first; i < input.last; i++) {
            const double regret = cells_[i].regret + way.regret;
            if (!(regret <= room)) continue;
            const Reached cell{cells_[i].key + way.key, regret, cells_[i].tied};
            if (ways.size() > 1) merger_.add(cell);
            else cells_.push_back(cell);
        }
    }
    live.cells.last = static_cast<Index>(cells_.size());
    return true;
}

// The cells of a join; false where that takes more work than it may.
bool GraphMessages::join_cells(Range a, Range b, double room, Range &to) {
    const auto plain = [&](Range one) {
        return size_of(one) == 1 && cells_[one.first].key == 0 && cells_[one.first].regret == 0 &&
               !cells_[one.first].tied;
    };
    const bool alone = plain(a) || plain(b);
    const Index pairs = alone ? 1 : size_of(a) * size_of(b), first = static_cast<Index>(cells_.size());
    if (!may(kPair * static_cast<double>(pairs))) return false;
    to = plain(a) ? b : a;
    if (alone) return true;
    merger_.begin(pairs);
    for (Index i = a.first; i < a.last; i++)
        for (Index k = b.first; k < b.last; k++) {
            const double regret = cells_[i].regret + cells_[k].regret;
            if (regret > room) continue;
            merger_.add({cells_[i].key + cells_[k].key, regret, cells_[i].tied || cells_[k].tied});
        }
    to = {first, static_cast<Index>(cells_.size())};
    return true;
}

// Every choice is looked for again: no cell remembers where it comes from. Where nothing but the best labelling is
// within reach, it stays.
double GraphMessages::decode(Index number, std::int64_t *labelling) const {
    struct Visit {
        Index table;
        std::int32_t live;
        Reached cell;
    };
    Index looked = 0;
    const auto find = [&](Range cells, Index key, auto fits) {
        Index i = cells.first;
        while (i < cells.last && !(cells_[i].key == key && fits(cells_[i].regret))) i++;
        looked += i - cells.first;
        return i < cells.last ? i : Index{-1};
    };
    const auto lost = [] { return std::logic_error("a cell of the band has no origin"); };
    std::copy(labelling_.begin(), labelling_.end(), labelling);
    std::vector<Visit> left{{static_cast<Index>(live_begin_.size()) - 1, 0, cells_[root_ + number]}};
    double work = 0;
    while (!left.empty()) {
        work += kVisited;
        const auto [t, number_live, cell] = left.back();
        left.pop_back();
        const Step &step = skeleton_->steps[t];
        const bool best = live_count_[t] == 0;
        if (step.verb == Verb::Unit || (best && best_cells_[t].first == 0)) continue;
        const Live *live = best ? nullptr : &this->live(t, number_live);
        if (step.verb == Verb::Join) {
            const std::int32_t input = best ? 0 : live->input, input_b = best ? 0 : live->input_b;
            const Range a = cells_of(step.a, input), b = cells_of(step.b, input_b);
            Index i = a.first, k = -1;
            for (; i < a.last; i++) {
                k = find(b, cell.key - cells_[i].key, [&](double r) { return cells_[i].regret + r == cell.regret; });
                if (k >= 0) break;
            }
            if (k < 0) throw lost();
            left.push_back({step.a, input, cells_[i]});
            left.push_back({step.b, input_b, cells_[k]});
            continue;
        }
        if (best) {
            left.push_back({step.a, 0, cell});
            continue;
        }
        Index at = -1;
        for (Index w = live->ways_begin; w < live->ways_end && at < 0; w++) {
            const Way &way = ways_[w];
            at = find(cells_of(step.a, way.input), cell.key - way.key,
                      [&](double r) { return r + way.regret == cell.regret; });
            if (at < 0) continue;
            labelling[step.variable] = way.choice;
            left.push_back({step.a, way.input, cells_[at]});
        }
        if (at < 0) throw lost();
    }
    return work + kFound * static_cast<double>(looked);
}

}  // namespace tallytree::bounds
