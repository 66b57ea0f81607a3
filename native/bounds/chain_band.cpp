// The band along a chain. The messages of the pass say what the best of the positions before is worth, so from the last
// position down every cell can be completed without further regret: nothing is computed that is not in the band.
#include "bounds/chain_messages.h"

namespace tallytree::bounds {

bool ChainMessages::band(double budget, double most_work, Meter &meter) {
    cells_.assign(1, {0, 0.0, -1, false});
    nodes_.assign(1, {0, false, 0, 1, 0.0});
    first_.assign(rows_.length + 2, 0);
    work_ = 0;
    Index first = 0;
    for (Index t = rows_.length; t-- > 0;) {
        const double before = work_;
        const auto here = static_cast<Index>(nodes_.size());
        first_[t] = here;
        const bool within = step_down(t, budget, first, most_work);
        first = here;
        meter.spend(work_ - before);
        if (!within || !has_room(band_bytes()) || cells_.size() > std::size_t{1} << 30) return false;
    }
    end_band();
    return true;
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
    return static_cast<double>(cells_.size() * sizeof(Joined) + nodes_.size() * sizeof(Node)) + merger_.bytes();
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
            const Joined cell{cells_[i].key + edge.key - key, regret, static_cast<std::int32_t>(i), cells_[i].tied};
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
void ChainMessages::end_band() {
    ends_.clear();
    end_merger_.near = merger_.near;
    end_merger_.begin(static_cast<Index>(nodes_.size()) - first_[0]);
    for (auto k = first_[0]; k < static_cast<Index>(nodes_.size()); k++)
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
    for (Index t = 0; t < rows_.length; t++) {
        Index k = first_[t];
        while (cell < nodes_[k].begin || cell >= nodes_[k].end) k++;
        labelling[rows_.variable[t]] = nodes_[k].state;
        if (!nodes_[k].same) cell = cells_[cell].from;
    }
}

}  // namespace tallytree::bounds
