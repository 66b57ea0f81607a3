#include "charts/items.h"

#include <algorithm>
#include <bit>

namespace tallytree {
namespace {

using Bits = std::uint64_t;
constexpr Index kBits = 64;

// The bits of [layer][symbol][width]. `kSize`: how many numbers a row has, or 0 if that is not known before.
template <Index kSize>
class BitRows {
  public:
    BitRows(const ChartGrammar &grammar, const Spans &spans)
        : spans_(spans),
          symbols_(grammar.symbols),
          size_((spans.words + kBits - 1) / kBits),
          bits_(2 * (spans.words + 1) * symbols_ * size_, 0) {}

    Index size() const { return kSize ? kSize : size_; }
    Bits *operator()(Layer layer, Index width, std::int32_t symbol) {
        const Index widths = spans_.words + 1;
        return bits_.data() + ((static_cast<Index>(layer) * symbols_ + symbol) * widths + width) * size();
    }
    bool any(const Bits *row) const {
        return std::any_of(row, row + size(), [](Bits b) { return b != 0; });
    }
    // Number k of a row without its first bits.
    Bits down(const Bits *row, Index k, Index by) const {
        const Index from = k + by / kBits, rest = by % kBits;
        const Bits low = from < size() ? row[from] >> rest : 0;
        return rest && from + 1 < size() ? low | row[from + 1] << (kBits - rest) : low;
    }
    // The reverse: adds the bits of a number k.
    void up(Bits *row, Index k, Index by, Bits x) const {
        const Index to = k + by / kBits, rest = by % kBits;
        if (to < size()) row[to] |= x << rest;
        if (rest && to + 1 < size()) row[to + 1] |= x >> (kBits - rest);
    }
    // Calls `use` with the place of every item in arrays [layer][span][symbol].
    template <class Use>
    void each(Use use) {
        for (const auto layer : {Layer::Open, Layer::Closed})
            for (Index width = 1; width <= spans_.words; width++)
                for (std::int32_t s = 0; s < symbols_; s++) {
                    const Bits *row = (*this)(layer, width, s);
                    const Index first = static_cast<Index>(layer) * spans_.count() + spans_.first(width);
                    for (Index k = 0; k < size(); k++)
                        for (Bits left = row[k]; left; left &= left - 1)
                            use((first + k * kBits + std::countr_zero(left)) * symbols_ + s);
                }
    }
    void set(Layer layer, Index width, std::int32_t symbol, Index start) {
        (*this)(layer, width, symbol)[start / kBits] |= Bits{1} << (start % kBits);
    }

  private:
    const Spans spans_;
    const Index symbols_, size_;
    std::vector<Bits> bits_;
};

template <Index kSize>
class Finder {
  public:
    Finder(const ChartGrammar &grammar, Index words, const std::vector<TableBlock<double>> &scores, const Poll &poll)
        : grammar_(grammar),
          spans_{words},
          scores_(scores),
          meter_(poll),
          inside_(grammar, spans_),
          outside_(grammar, spans_),
          widths_(grammar.symbols),
          all_(inside_.size()) {}

    ChartItems find() {
        for (Index width = 1; width <= spans_.words; width++) {
            if (width == 1) take_words();
            else open(width);
            close(width);
        }
        const auto top = [&](BitRows<kSize> &rows) { return rows(Layer::Closed, spans_.words, grammar_.root); };
        *top(outside_) = *top(inside_);
        for (Index width = spans_.words; width >= 1; width--) {
            hand_down_paths(width);
            if (width > 1) hand_down_rules(width);
        }
        found_.live.assign(2 * spans_.count() * grammar_.symbols, 0);
        outside_.each([&](Index place) { found_.live[place] = 1; });
        return std::move(found_);
    }

  private:
    // The starts at which a rule or path is allowed.
    Bits allowed(ChartBlock block, std::int32_t number, Index width, Index k) const {
        const double *f = anchored(scores_[block], number, spans_.first(width));
        if (scores_[block].size == 1) return *f == kNegativeInfinity ? 0 : ~Bits{0};
        Bits bits = 0;
        for (Index i = k * kBits; i < std::min((k + 1) * kBits, spans_.starts(width)); i++)
            bits |= static_cast<Bits>(f[i] != kNegativeInfinity) << (i - k * kBits);
        return bits;
    }

    // ---- upwards ---------------------------------------------------------------------------------------------------
    void take_words() {
        for (Index i = 0; i < spans_.words; i++)
            for (std::int32_t s = 0; s < grammar_.symbols; s++)
                if (scores_[kWords].row(i)[s] != kNegativeInfinity) inside_.set(Layer::Open, 1, s, i);
    }

    // Plain passes go over splits of two children once for all their rules if each rule has one score.
    void open(Index width) {
        const bool once = scores_[kRules].size == 1;
        for (const auto &pair : grammar_.pairs) {
            Index splits = 0;
            std::ranges::fill(all_, 0);
            each_split(widths_[pair.left], widths_[pair.right], width, [&](Index split) {
                const Bits *left = inside_(Layer::Closed, split, pair.left);
                const Bits *right = inside_(Layer::Closed, width - split, pair.right);
                if (!inside_.any(left) || !inside_.any(right)) return;
                for (Index k = 0; k < inside_.size(); k++) all_[k] |= left[k] & inside_.down(right, k, split);
                splits++;
            });
            const Index rules = pair.end - pair.begin;
            if (splits) found_.rows += static_cast<double>(once ? splits + rules : splits * rules);
            if (!inside_.any(all_.data())) continue;
            for (Index r = pair.begin; r < pair.end; r++) {
                const auto number = grammar_.by_pair[r];
                Bits *to = inside_(Layer::Open, width, grammar_.rules[number].parent);
                for (Index k = 0; k < inside_.size(); k++)
                    if (all_[k]) to[k] |= all_[k] & allowed(kRules, number, width, k);
            }
        }
        meter_.spend(static_cast<double>(width * static_cast<Index>(grammar_.pairs.size())));
    }

    void close(Index width) {
        for (const auto target : grammar_.targets) {
            Bits *to = inside_(Layer::Closed, width, target);
            for (const auto number : grammar_.by_target[target]) {
                const UnaryPath &path = grammar_.paths[number];
                const Bits *from = inside_(path.from_closed ? Layer::Closed : Layer::Open, width, path.source);
                if (!inside_.any(from)) continue;
                for (Index k = 0; k < inside_.size(); k++) to[k] |= from[k] & allowed(kPaths, number, width, k);
                found_.rows++;
            }
            if (inside_.any(to)) widths_[target].push_back(width);
        }
        meter_.spend(static_cast<double>(grammar_.paths.size()));
    }

    // ---- downwards -------------------------------------------------------------------------------------------------
    void hand_down_paths(Index width) {
        for (auto target = grammar_.targets.rbegin(); target != grammar_.targets.rend(); target++) {
            const Bits *from = outside_(Layer::Closed, width, *target);
            if (!inside_.any(from)) continue;
            for (const auto number : grammar_.by_target[*target]) {
                const UnaryPath &path = grammar_.paths[number];
                const Layer layer = path.from_closed ? Layer::Closed : Layer::Open;
                Bits *to = outside_(layer, width, path.source);
                const Bits *there = inside_(layer, width, path.source);
                for (Index k = 0; k < inside_.size(); k++)
                    to[k] |= from[k] & there[k] & allowed(kPaths, number, width, k);
            }
        }
    }

    void hand_down_rules(Index width) {
        for (std::int32_t parent = 0; parent < grammar_.symbols; parent++) {
            const Bits *from = outside_(Layer::Open, width, parent);
            if (!inside_.any(from)) continue;
            for (const auto number : grammar_.by_parent[parent])
                each_split(widths_[grammar_.rules[number].left], widths_[grammar_.rules[number].right], width,
                           [&](Index split) { hand_down(number, from, width, split); });
            meter_.spend(static_cast<double>(width * std::ssize(grammar_.by_parent[parent])));
        }
    }

    void hand_down(std::int32_t number, const Bits *from, Index width, Index split) {
        const BinaryRule &rule = grammar_.rules[number];
        const Bits *left = inside_(Layer::Closed, split, rule.left);
        const Bits *right = inside_(Layer::Closed, width - split, rule.right);
        for (Index k = 0; k < inside_.size(); k++) {
            Bits here = from[k] & left[k] & inside_.down(right, k, split);
            if (here == 0) continue;
            here &= allowed(kRules, number, width, k);
            outside_(Layer::Closed, split, rule.left)[k] |= here;
            outside_.up(outside_(Layer::Closed, width - split, rule.right), k, split, here);
        }
    }

    const ChartGrammar &grammar_;
    const Spans spans_;
    const std::vector<TableBlock<double>> &scores_;
    Meter meter_;
    BitRows<kSize> inside_, outside_;         // items, and those that are part of a tree
    std::vector<std::vector<Index>> widths_;  // of each closed symbol
    std::vector<Bits> all_;
    ChartItems found_;
};

template <Index kSize>
std::vector<std::int32_t> count_groups(const ChartGrammar &grammar, const Spans &spans,
                                       std::span<const std::uint8_t> items) {
    BitRows<kSize> rows(grammar, spans);
    const std::uint8_t *item = items.data();
    for (const auto layer : {Layer::Open, Layer::Closed})
        for (Index width = 1; width <= spans.words; width++)
            for (Index start = 0; start < spans.starts(width); start++)
                for (std::int32_t s = 0; s < grammar.symbols; s++)
                    if (*item++) rows.set(layer, width, s, start);
    std::vector<std::int32_t> groups(spans.count() * spans.words, 0);
    const auto count = [&](const RuleGroup &group, const Bits *from, Index width, Index split) {
        for (Index k = 0; k < rows.size(); k++) {
            Bits some = 0;
            for (Index r = group.begin; r < group.end; r++) {
                const BinaryRule &rule = grammar.rules[grammar.by_group[r]];
                some |= rows(Layer::Closed, split, rule.left)[k] &
                        rows.down(rows(Layer::Closed, width - split, rule.right), k, split);
            }
            for (Bits left = some & from[k]; left; left &= left - 1)
                groups[(spans.first(width) + k * kBits + std::countr_zero(left)) * spans.words + split]++;
        }
    };
    for (Index width = 2; width <= spans.words; width++)
        for (std::int32_t parent = 0; parent < grammar.symbols; parent++) {
            const Bits *from = rows(Layer::Open, width, parent);
            if (!rows.any(from)) continue;
            for (const auto &group : grammar.groups[parent])
                for (Index split = 1; split < width; split++)
                    if (rows.any(rows(Layer::Closed, group.left ? split : width - split, group.shared)))
                        count(group, from, width, split);
        }
    return groups;
}

}  // namespace

double ChartItems::bytes(const ChartGrammar &grammar, Index words) {
    const auto symbols = static_cast<double>(grammar.symbols), count = static_cast<double>(Spans{words}.count());
    const auto rows = static_cast<double>((words + 1) * ((words + kBits - 1) / kBits));
    return symbols * (2 * count + 4 * rows * sizeof(Bits));
}

ChartItems find_items(const ChartGrammar &grammar, Index words, const std::vector<TableBlock<double>> &scores,
                      const Poll &poll) {
    if (words <= kBits) return Finder<1>(grammar, words, scores, poll).find();
    return Finder<0>(grammar, words, scores, poll).find();
}

std::vector<std::int32_t> groups_by_split(const ChartGrammar &grammar, const Spans &spans,
                                          std::span<const std::uint8_t> items) {
    return (spans.words <= kBits ? count_groups<1> : count_groups<0>)(grammar, spans, items);
}

}  // namespace tallytree
