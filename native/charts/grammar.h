// The rules of a grammar, sorted as the verbs of charts need them, and the spans of a sentence.
#pragma once

#include <memory>

#include "common.h"

namespace tallytree {

enum class Layer : int { Open = 0, Closed = 1 };

struct BinaryRule {
    std::int32_t parent, left, right;
};

// A path of unary rules makes `target` over a span from `source`, which is open unless `from_closed`: symbols without
// a label are put on top of whole paths. Bag -1 counts nothing; one word below the path is not a constituent.
struct UnaryPath {
    std::int32_t target, source, bag, word_bag;
    bool from_closed;
};

// The rules of one parent that share a child: `rules` of `by_group` below, the shared child on the left or right.
struct RuleGroup {
    std::int32_t shared;
    bool left;
    Index begin, end;
};

// The rules with the same two children: `rules` of `by_pair`.
struct RulePair {
    std::int32_t left, right;
    Index begin, end;
};

struct ChartGrammar {
    Index symbols = 0, bags = 0;
    std::int32_t root = 0;
    std::vector<BinaryRule> rules;
    std::vector<UnaryPath> paths;

    Ragged<std::int32_t> by_parent, by_left, by_right;       // rules of each symbol
    Ragged<std::int32_t> by_target, from_open, from_closed;  // paths of each symbol
    std::vector<std::int32_t> targets;                       // those made from closed symbols come last
    Ragged<RuleGroup> groups;                                // per parent
    std::vector<std::int32_t> by_group;
    std::vector<RulePair> pairs;
    std::vector<std::int32_t> by_pair;

    ChartGrammar(Index symbols, Index bags, std::int32_t root, std::vector<BinaryRule> rules,
                 std::vector<UnaryPath> paths);

  private:
    void group_rules();
    void pair_rules();
};

// Spans in order of width, then start. Tables, and the steps that make them, are in order of width, then layer, then
// start: those of one width and layer lie side by side.
struct Spans {
    Index words = 0;
    Index starts(Index width) const { return words - width + 1; }
    Index first(Index width) const { return (width - 1) * (2 * words - width + 2) / 2; }
    Index number(Index start, Index width) const { return first(width) + start; }
    Index count() const { return words * (words + 1) / 2; }
    std::int32_t table(Layer layer, Index start, Index width) const {
        return static_cast<std::int32_t>(2 * first(width) + (layer == Layer::Closed ? starts(width) : 0) + start);
    }
};

// The additional data of the skeleton of a chart.
struct ChartShape {
    std::shared_ptr<const ChartGrammar> grammar;
    Spans spans;
};

// The widths of a left child, given those that it and its neighbour can have; the neighbour's is for `add` to check,
// or the left one's own, whichever list is longer.
template <class Add>
void each_split(const std::vector<Index> &lefts, const std::vector<Index> &rights, Index width, Add add) {
    if (lefts.size() <= rights.size()) {
        for (auto split : lefts)
            if (split < width) add(split);
    } else {
        for (auto rest : rights)
            if (rest < width) add(width - rest);
    }
}

}  // namespace tallytree
