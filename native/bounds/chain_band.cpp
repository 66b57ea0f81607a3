// The band along a chain. The messages of the pass say what the best of the positions before is worth, so from the last
// position down every cell can be completed without further regret: nothing is computed that is not in the band.
#include "bounds/chain_messages.h"

namespace tallytree::bounds {

namespace {

// Units of work: to skip positions, and each number of their rows; a node of another one, a state that is looked at
// from there, a way to one, and a cell that is moved along the only way, or merged with others.
constexpr double kSkip = 200, kSkipped = 1, kNode = 35, kLooked = 4.5, kWay = 5, kMoved = 5, kMerged = 9;
constexpr double kWayLinked = 12;             // where neighbours count
constexpr double kFar = 12, kNear = 1 << 15;  // for each cell beyond those that stay in the cache
constexpr double kEnd = 20;                   // a cell of the first position
constexpr double kFollowed = 4;               // a node that is passed when a labelling is followed

}  // namespace

bool ChainMessages::band(double budget, double most_work, Meter &meter) {
    cells_.assign(1, {0, 0.0, -1, false});
    nodes_.assign(1, {0, false, 0, 1, 0.0});
    levels_.clear();
    begin_band(most_work);
    Index first = 0;
    for (Index t = rows_.length; t-- > 0;) {
        const double before = work();
        Index passed = 0;
        bool within = skip(t, budget, first, passed);
        t -= passed;
        if (t >= 0 && within) {
            const auto here = static_cast<Index>(nodes_.size());
            levels_.push_back({t, here});
            within = step_down(t, budget, first);
            first = here;
        }
        meter.spend(work() - before);
        if (!within || !has_room(band_bytes()) || cells_.size() > std::size_t{1} << 30) return false;
        if (t < 0) break;
    }
    return end_band(first);
}

// How many positions from t down have nothing in the band but the best state. The last of them is given a node, with
// the cells of the node behind them. False where that took more work than it may.
bool ChainMessages::skip(Index t, double budget, Index &first, Index &passed) {
    if (static_cast<Index>(nodes_.size()) != first + 1) return true;
    const Node node = nodes_[first];
    if (node.state != next_best(t)) return true;
    passed = kernels_.settled({t + 1, rows_.width, row(0), rows_.back_links.data(), kept_[current_].states.data(),
                               node.state, budget - node.least});
    if (passed == 0) return true;
    if (!may(kSkip + kSkipped * static_cast<double>(passed * rows_.width))) return false;
    const Index last = t - passed + 1;
    first = static_cast<Index>(nodes_.size());
    levels_.push_back({last, first});
    nodes_.push_back({kept_[current_].states[last], true, node.begin, node.end, node.least});
    return true;
}

// The nodes of position t from those of the position behind it, which begin at `first`; false where that takes more
// work than it may.
bool ChainMessages::step_down(Index t, double budget, Index first) {
    const auto last = static_cast<Index>(nodes_.size());
    reached_.clear();
    if (!may(static_cast<double>(last - first) * (kNode + kLooked * static_cast<double>(rows_.states)))) return false;
    for (Index k = first; k < last; k++) {
        const double best = weigh(t, nodes_[k].state), floor = best - (budget - nodes_[k].least);
        for (Index s = 0; s < rows_.states; s++) {
            if (!(weighed_[s] >= floor)) continue;
            const double regret = best - weighed_[s];
            if (!(nodes_[k].least + regret <= budget)) continue;
            if (into_[s].empty()) reached_.push_back(s);
            into_[s].push_back({k, regret, key_of(t, s, nodes_[k].state)});
        }
    }
    if (reached_.size() == 1 && last - first == 1 && into_[reached_[0]][0].regret == 0) {
        const Node &before = nodes_[first];
        const Index s = reached_[0];
        if (into_[s][0].key == best_key(t)) {
            into_[s].clear();
            nodes_.push_back({static_cast<std::int32_t>(s), true, before.begin, before.end, before.least});
            return true;
        }
    }
    bool within = true;
    for (const Index s : reached_) {
        within = within && has_room(band_bytes()) && fill(t, s, budget);
        into_[s].clear();
    }
    return within;
}

double ChainMessages::band_bytes() const {
    return static_cast<double>(cells_.size() * sizeof(Joined) + nodes_.size() * (sizeof(Node) + sizeof(Level))) +
           merger_.bytes();
}

// The cells of a state; false where that takes more work than it may.
bool ChainMessages::fill(Index t, Index state, double budget) {
    auto &edges = into_[state];
    const Index key = best_key(t);
    const auto begin = static_cast<Index>(cells_.size());
    Index most = 0;
    for (const Edge &edge : edges) most += nodes_[edge.node].end - nodes_[edge.node].begin;
    const double each = (edges.size() > 1 ? kMerged : kMoved) + (static_cast<double>(cells_.size()) > kNear ? kFar : 0);
    const double way = rows_.neighbours_count() ? kWayLinked : kWay;
    if (!may(way * static_cast<double>(edges.size()) + each * static_cast<double>(most))) return false;
    if (edges.size() > 1) merger_.begin(most);
    for (const Edge &edge : edges) {
        const Node node = nodes_[edge.node];
        for (Index i = node.begin; i < node.end; i++) {
            const double regret = cells_[i].regret + edge.regret;
            if (!(regret <= budget)) continue;
            const Index moved = cells_[i].key + Packing::difference(edge.key, key);
            const Joined cell{moved, regret, static_cast<std::int32_t>(i), cells_[i].tied};
            if (edges.size() > 1) merger_.add(cell);
            else cells_.push_back(cell);
        }
    }
    const auto end = static_cast<Index>(cells_.size());
    double least = kInfinity;
    for (Index i = begin; i < end; i++) least = std::min(least, cells_[i].regret);
    if (end > begin) nodes_.push_back({static_cast<std::int32_t>(state), false, begin, end, least});
    return true;
}

// One cell for each tally, whatever the state of the first position.
bool ChainMessages::end_band(Index first) {
    ends_.clear();
    Index most = 0;
    for (Index k = first; k < static_cast<Index>(nodes_.size()); k++) most += nodes_[k].end - nodes_[k].begin;
    if (!may(kSkip + kEnd * static_cast<double>(most))) return false;
    end_merger_.near = merger_.near;
    end_merger_.begin(static_cast<Index>(nodes_.size()) - first);
    for (Index k = first; k < static_cast<Index>(nodes_.size()); k++)
        for (Index i = nodes_[k].begin; i < nodes_[k].end; i++)
            end_merger_.add({cells_[i].key, cells_[i].regret, static_cast<std::int32_t>(i), cells_[i].tied});
    tallies_.clear();
    origin_.clear();
    ties_.clear();
    for (const Joined &end : ends_) {
        tallies_.push_back({end.key, end.regret});
        origin_.push_back(end.from);
        ties_.push_back(end.tied);
    }
    return true;
}

double ChainMessages::decode(Index number, std::int64_t *labelling) const {
    Index cell = origin_[number], passed = rows_.length;
    auto level = levels_.rbegin();
    for (Index t = 0; t < rows_.length; t++) {
        if (level == levels_.rend() || level->position != t) {
            labelling[rows_.variable[t]] = kept_[current_].states[t];
            continue;
        }
        Index k = level++->node;
        for (; cell < nodes_[k].begin || cell >= nodes_[k].end; k++) passed++;
        labelling[rows_.variable[t]] = nodes_[k].state;
        if (!nodes_[k].same) cell = cells_[cell].from;
    }
    return kFollowed * static_cast<double>(passed);
}

}  // namespace tallytree::bounds
