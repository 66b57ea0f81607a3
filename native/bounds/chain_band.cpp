// The band along a chain. The messages of the pass say what the best of the positions before is worth, so from the last
// position down every cell can be completed without further regret: nothing is computed that is not in the band.
#include "bounds/chain_messages.h"

namespace tallytree::bounds {

bool ChainMessages::band(double budget, double most_work, Meter &meter) {
    cells_.assign(1, {0, 0.0, -1, false});
    nodes_.assign(1, {0, false, 0, 1, 0.0});
    levels_.clear();
    work_ = 0;
    Index first = 0;
    for (Index t = rows_.length; t-- > 0;) {
        const double before = work_;
        t -= skip(t, budget, first);
        bool within = work_ <= most_work;
        if (t >= 0 && within) {
            const auto here = static_cast<Index>(nodes_.size());
            levels_.push_back({t, here});
            within = step_down(t, budget, first, most_work);
            first = here;
        }
        meter.spend(work_ - before);
        if (!within || !has_room(band_bytes()) || cells_.size() > std::size_t{1} << 30) return false;
        if (t < 0) break;
    }
    end_band(first);
    return true;
}

// How many positions from t down have nothing in the band but the best state. The last of them is given a node, with
// the cells of the node behind them.
Index ChainMessages::skip(Index t, double budget, Index &first) {
    if (rows_.neighbours_count() || static_cast<Index>(nodes_.size()) != first + 1) return 0;
    const Node node = nodes_[first];
    if (node.state != next_best(t)) return 0;
    const Index passed = kernels_.settled({t + 1, rows_.width, row(0), rows_.back_links.data(),
                                           kept_[current_].states.data(), node.state, budget - node.least});
    work_ += static_cast<double>(passed * rows_.states);
    if (passed == 0) return 0;
    const Index last = t - passed + 1;
    first = static_cast<Index>(nodes_.size());
    levels_.push_back({last, first});
    nodes_.push_back({kept_[current_].states[last], true, node.begin, node.end, node.least});
    return passed;
}

// The nodes of position t from those of the position behind it, which begin at `first`; false where that takes more
// work than it may.
bool ChainMessages::step_down(Index t, double budget, Index first, double most_work) {
    const auto last = static_cast<Index>(nodes_.size());
    reached_.clear();
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
    work_ += static_cast<double>((last - first) * rows_.states);
    if (reached_.size() == 1 && last - first == 1 && into_[reached_[0]][0].regret == 0) {
        const Node &before = nodes_[first];
        const Index s = reached_[0];
        if (into_[s][0].key == best_key(t)) {
            into_[s].clear();
            nodes_.push_back({static_cast<std::int32_t>(s), true, before.begin, before.end, before.least});
            return work_ <= most_work;
        }
    }
    for (const Index s : reached_) {
        if (work_ <= most_work && has_room(band_bytes())) fill(t, s, budget);
        into_[s].clear();
    }
    return work_ <= most_work;
}

double ChainMessages::band_bytes() const {
    return static_cast<double>(cells_.size() * sizeof(Joined) + nodes_.size() * (sizeof(Node) + sizeof(Level))) +
           merger_.bytes();
}

void ChainMessages::fill(Index t, Index state, double budget) {
    auto &edges = into_[state];
    const Index key = best_key(t);
    const auto begin = static_cast<Index>(cells_.size());
    Index most = 0;
    for (const Edge &edge : edges) most += nodes_[edge.node].end - nodes_[edge.node].begin;
    work_ += static_cast<double>(most);
    if (edges.size() > 1) merger_.begin(most);
    else cells_.reserve(std::max(cells_.capacity(), cells_.size() + static_cast<std::size_t>(most)));
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
}

// One cell for each tally, whatever the state of the first position.
void ChainMessages::end_band(Index first) {
    ends_.clear();
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
}

void ChainMessages::decode(Index number, std::int64_t *labelling) const {
    Index cell = origin_[number];
    auto level = levels_.rbegin();
    for (Index t = 0; t < rows_.length; t++) {
        if (level == levels_.rend() || level->position != t) {
            labelling[rows_.variable[t]] = kept_[current_].states[t];
            continue;
        }
        Index k = level++->node;
        while (cell < nodes_[k].begin || cell >= nodes_[k].end) k++;
        labelling[rows_.variable[t]] = nodes_[k].state;
        if (!nodes_[k].same) cell = cells_[cell].from;
    }
}

}  // namespace tallytree::bounds
