#include "bounds/chain_messages.h"

namespace tallytree::bounds {

namespace {

constexpr Index kLongChain = Index{4} << 20;  // bytes of messages; above, fresh memory takes longer than another pass

// Units of work: of a pass, for each position, state, and sum of a score and a message; and of a cell of a band,
// usually.
constexpr double kPosition = 6, kState = 1.7, kSum = 0.02, kCell = 6;
// Where neighbours count: a sum, since there are many tables; the price of a kind of counts; and an entry of a table
// that counts something.
constexpr double kLinkedSum = 0.05, kPrice = 0.25, kEntry = 2.2;
constexpr double kSecond = 3, kSecondState = 0.25;  // of finding the second best labelling
// Of loading a chain, for each position and each of its states; and a table of neighbours that count.
constexpr double kLoaded = 20, kLoadedState = 2.5, kLoadedLink = 200;
// For each table of a single position beyond a few: to load it, and for a pass; and what those beyond the bytes that
// stay in the cache take besides.
constexpr double kLoadedOwn = 40, kPassedOwn = 7, kFew = 256, kLoadedFar = 90, kPassedFar = 13, kNear = 1 << 21;

struct Size {
    Index length, states, statistics;
};

// `links`: tables of scores of neighbours.
double bytes_of(const Size &size, double links, double kinds) {
    const auto row = static_cast<double>(round_up(size.states)) * sizeof(double);
    constexpr double kRows = 5;         // late scores, and messages of the passes that are kept
    constexpr double kPosition = 76.0;  // links, kinds and best states
    constexpr double kKind = 112.0;     // where a kind is looked up
    const double counts = row * static_cast<double>(size.statistics) / 2;  // as a list that grows, and a key
    return static_cast<double>(size.length) * (kRows * row + kPosition) + 2 * links * row * row / sizeof(double) +
           kinds * (kKind + 3 * counts + 2 * row);
}

}  // namespace

double ChainMessages::bytes(const LocalTables &tables, const ChainTables &chain) {
    const Size size{static_cast<Index>(chain.number.size()), chain.states, tables.statistics()};
    const auto links = static_cast<double>(chain.distinct.size());
    const double all = bytes_of(size, links, static_cast<double>(tables.count_rows() + 1));
    if (!chain.linked) return all;
    // The scores of entries that count something; and what they count, with its key and places.
    const auto entries = static_cast<double>(size.states * round_up(size.states));
    const auto counted = static_cast<double>(chain.tables_of_counts());
    return all + entries * (8 * links + static_cast<double>(20 + 4 * size.statistics) * counted);
}

double ChainMessages::bytes(const PlainChain &chain, double kinds) {
    return bytes_of({chain.length, chain.states, chain.statistics}, static_cast<double>(chain.pairs.count + 1), kinds);
}

double ChainMessages::most_kinds(const PlainChain &chain, double memory_limit) {
    const double none = bytes(chain, 0);
    return std::min((memory_limit - none) / (bytes(chain, 1) - none), static_cast<double>(chain.length));
}

void ChainMessages::begin() {
    const Index row = rows_.length * rows_.width;
    packing_ = Packing(rows_.statistics);
    keys_add_up_ = rows_.keys_add_up();
    kept_.resize(row * 8 <= kLongChain ? 4 : 2);
    current_ = 0;
    memory_ = Arena(row * static_cast<Index>(kept_.size()) * 8, std::move(memory_));
    for (std::size_t i = 0; i < kept_.size(); i++) {
        kept_[i].there = false;
        kept_[i].priced = static_cast<double *>(memory_.data()) + row * static_cast<Index>(i);
    }
    held_ = {};
    linked_.reset();
    for (auto &edges : into_) edges.clear();  // those of a band that was broken off
    weighed_.assign(rows_.width, 0);
    into_.resize(std::max(into_.size(), static_cast<std::size_t>(rows_.states)));
    kind_prices_.resize(rows_.kinds() * rows_.width);
    const double own = own_tables();
    many_ = std::max(own - kFew, 0.0);
    far_ = std::max(own - kNear / static_cast<double>(16 * rows_.states * rows_.width), 0.0);
    pass_work_ = find_pass_work();
}

double ChainMessages::find_pass_work() const {
    const auto length = static_cast<double>(rows_.length), states = length * static_cast<double>(rows_.states);
    const auto width = static_cast<double>(rows_.width);
    const double work = kPosition * length + kState * states;
    if (!rows_.neighbours_count()) return work + kSum * states * width + kPassedOwn * many_ + kPassedFar * far_;
    Index entries = 0;
    for (const LinkKind &kind : rows_.link_kinds) entries += kind.counts->entries();
    const double prices = static_cast<double>(rows_.kinds() * rows_.statistics) * width;
    return work + kLinkedSum * states * width + kPrice * prices + kEntry * static_cast<double>(entries);
}

double ChainMessages::own_tables() const {
    double own = 0;
    for (Index t = 1; t < rows_.length; t++) own += rows_.links[t] != rows_.links[t - 1] ? 1 : 0;
    return own;
}

double ChainMessages::load_work() const {
    const auto length = static_cast<double>(rows_.length), states = length * static_cast<double>(rows_.states);
    return kLoaded * length + kLoadedState * states + kLoadedOwn * many_ + kLoadedFar * far_ +
           kLoadedLink * static_cast<double>(rows_.link_kinds.size());
}

Measures ChainMessages::measures() const {
    const auto length = static_cast<double>(rows_.length), states = length * static_cast<double>(rows_.states);
    Measures found{rows_.range, length};
    for (const auto &share : rows_.shares) found.magnitude += share.largest;
    found.sums = states;
    found.load = load_work();
    found.pass = pass_work();
    found.second = kSecond * length + kSecondState * states;
    found.few = kCell * 4 * states;
    return found;
}

double ChainMessages::rest() {
    memory_ = Arena();
    const auto lists = static_cast<double>(from_.capacity() + (cells_.capacity() + ends_.capacity()) * sizeof(Joined) +
                                           nodes_.capacity() * sizeof(Node) + levels_.capacity() * sizeof(Level) +
                                           tallies_.capacity() * sizeof(Cell) + origin_.capacity() * sizeof(Index));
    double states = 0;
    for (const Kept &kept : kept_) states += static_cast<double>(kept.states.capacity() * sizeof(std::int32_t));
    return lists + states + merger_.bytes() + end_merger_.bytes() + 8 * static_cast<double>(kind_prices_.capacity()) +
           rows_.kept();
}

void ChainMessages::price_kinds(const Prices &prices) {
    const Index statistics = rows_.statistics, width = rows_.width;
    const std::int32_t *counts = rows_.kind_counts.data();
    double *to = kind_prices_.data();
    for (Index k = 0; k < rows_.kinds(); k++, to += width) {
        for (Index s = 0; s < width; s++) to[s] = statistics ? prices[0] * counts[s] : 0.0;
        for (Index p = 1; p < statistics; p++)
            for (Index s = 0; s < width; s++) to[s] += prices[p] * counts[p * width + s];
        counts += statistics * width;
    }
}

void ChainMessages::price_links(const Prices &prices) {
    if (!rows_.neighbours_count() || linked_ == prices) return;
    linked_ = prices;
    for (const LinkKind &kind : rows_.link_kinds) kind.charge(prices);
}

Pass ChainMessages::pass(const Prices &prices, Meter &meter) {
    current_ = (current_ + 1) % kept_.size();
    if (kept_[current_].there && kept_[current_].prices == held_) current_ = (current_ + 1) % kept_.size();
    price_kinds(prices);
    price_links(prices);
    const Index length = rows_.length, states = rows_.states, width = rows_.width;
    Kept &kept = kept_[current_];
    kept.there = true;
    kept.prices = prices;
    kept.states.resize(length);
    message_ = rows_.first;
    from_.resize(width == 8 ? length * width : 0);
    ChainStretch stretch{0,       states, width, nullptr, nullptr, 0, nullptr, kind_prices_.data(), message_.data(),
                         nullptr, nullptr};
    Sum taken;
    double slips = 0, spread = 0;  // spread: how large values of the message are
    for (Index t = 0; t < length; t += kStretch) {
        stretch.count = std::min(kStretch, length - t);
        stretch.links = rows_.links.data() + t;
        stretch.late = rows_.late_row(t);
        stretch.late_stride = rows_.late_stride(t);
        stretch.kinds = rows_.kind.data() + t;
        stretch.priced = kept.priced + t * width;
        stretch.from = from_.data() + (width == 8 ? t * width : 0);
        kernels_.pass(stretch);
        const ChainRows::Share &share = rows_.shares[t / kStretch];
        double largest = spread + share.largest;
        for (Index p = 0; p < rows_.statistics; p++) largest += std::abs(prices[p]) * share.reach[p];
        slips += (share.roundings + 4) * largest;
        double most = kNegativeInfinity, least = kInfinity;
        for (Index s = 0; s < states; s++) {
            most = std::max(most, message_[s]);
            if (message_[s] != kNegativeInfinity) least = std::min(least, message_[s]);
        }
        if (most == kNegativeInfinity) return {prices, kNegativeInfinity};
        for (Index s = 0; s < states; s++) message_[s] -= most;
        taken.add(most);
        spread = most - least;
        meter.spend(static_cast<double>(stretch.count * states * width) / 4);
    }
    taken.add(rows_.constant);
    taken.add(paid(prices, rows_.constant_counts));
    Pass found{prices, taken.total()};
    if (found.most != kNegativeInfinity) find_best(found);
    found.tolerance = kUnit * (slips + 16 * (std::abs(found.most) + rows_.range.reach(prices)));
    return found;
}

// Reading from the last position down, it leaves the best labelling once, and may come back to it.
std::optional<TiedMessages::Second> ChainMessages::second(const Pass &pass) {
    if (!keys_add_up_) return {};
    const auto &best = kept_[current_].states;
    const ChainOther other =
        kernels_.second({rows_.length, rows_.width, row(0), rows_.back_links.data(), best.data(), 0, 0});
    if (other.position < 0) return {};
    Index change = 0, next = next_best(other.position), state = other.state;
    for (Index t = other.position; t >= 0; t--) {
        change = Packing::sum(change, Packing::difference(key_of(t, state, next), best_key(t)));
        if (state == best[t]) break;
        next = state;
        if (t > 0) state = choose(t - 1, next);
    }
    Few<Index> changes{};
    packing_.unpack(change, changes);
    Second found{other.regret, pass.tally.first()};
    for (Index p = 0; p < rows_.statistics; p++) found.tally[p] += changes[p];
    return found;
}

// The first of the best states at a position for a state of the next one.
Index ChainMessages::choose(Index t, Index next) {
    const double best = weigh(t, next);
    Index state = 0;
    while (weighed_[state] != best) state++;
    return state;
}

bool ChainMessages::recall(const Prices &prices) {
    for (std::size_t i = 0; i < kept_.size(); i++)
        if (kept_[i].there && kept_[i].prices == prices) {
            current_ = i;
            price_links(prices);
            return true;
        }
    return false;
}

double ChainMessages::weigh(Index t, Index next) {
    const Index width = rows_.width;
    const double *x = row(t);
    double *to = weighed_.data(), best[2] = {kNegativeInfinity, kNegativeInfinity};
    const double *link = rows_.back_links[t] + next * width;
    for (Index s = 0; s < width; s += 2)
        for (Index i = 0; i < 2; i++) {
            to[s + i] = x[s + i] + link[s + i];
            best[i] = best[i] > to[s + i] ? best[i] : to[s + i];
        }
    return std::max(best[0], best[1]);
}

Index ChainMessages::count_of(Index t, Index p, Index state, Index next) const {
    const Index width = rows_.width;
    Index count = rows_.kind_counts[(rows_.kind[t] * rows_.statistics + p) * width + state];
    return linked(t) ? count + link_at(t).counts->count(p, state, next) : count;
}

Index ChainMessages::key_of(Index t, Index state, Index next) const {
    const Index key = rows_.kind_keys[rows_.kind[t] * rows_.width + state];
    return linked(t) ? Packing::sum(key, link_at(t).counts->key(state, next)) : key;
}

double ChainMessages::score_of(Index t, Index state, Index next) const {
    return linked(t) ? link_at(t).score(state, next, rows_.width) : rows_.links[t][state * rows_.width + next];
}

void ChainMessages::find_best(Pass &pass) {
    std::int32_t *states = kept_[current_].states.data();
    const Index length = rows_.length;
    if (rows_.width == 8) {
        std::uint8_t next = 0;
        for (Index t = length; t-- > 0;) states[t] = next = from_[8 * t + next];
    } else {
        kernels_.back({length, rows_.width, row(0), rows_.back_links.data(), 0, states});
    }
    pass.tally = rows_.constant_counts;
    if (keys_add_up_) {
        Index sum = 0;
        for (Index t = 0; t < length; t++) sum = Packing::sum(sum, key_of(t, states[t], next_best(t)));
        Few<Index> counted;
        packing_.unpack(sum, counted);
        for (Index p = 0; p < rows_.statistics; p++) pass.tally[p] += counted[p];
        return;
    }
    for (Index p = 0; p < rows_.statistics; p++) {
        Index sum = 0;
        for (Index t = 0; t < length; t++) sum += count_of(t, p, states[t], next_best(t));
        pass.tally[p] += sum;
    }
}

double ChainMessages::best(std::int64_t *labelling) const {
    const std::int32_t *states = kept_[current_].states.data();
    Sum score, links;  // which need not wait for each other
    score.add(rows_.constant);
    score.add(rows_.first[states[0]]);
    for (Index t = 0; t < rows_.length; t++) {
        links.add(score_of(t, states[t], next_best(t)));
        if (t > 0) score.add(rows_.late_row(t - 1)[states[t]]);
        labelling[rows_.variable[t]] = states[t];
    }
    score.add(links);
    return score.total();
}

}  // namespace tallytree::bounds
