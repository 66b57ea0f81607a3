// The rules of a grammar, in the orders that the passes go through them.
#include <algorithm>
#include <numeric>
#include <set>

#include "charts/grammar.h"

namespace tallytree {
namespace {

// Numbers 0 .. count - 1 sorted into rows by `row(number)`; those in row -1 are left out.
template <class Row>
Ragged<std::int32_t> sorted_into_rows(Index rows, Index count, Row row) {
    Ragged<std::int32_t> result;
    std::vector<std::vector<std::int32_t>> lists(rows);
    for (Index i = 0; i < count; i++)
        if (const Index r = row(i); r >= 0) lists[r].push_back(static_cast<std::int32_t>(i));
    for (const auto &list : lists) result.push_row(list);
    return result;
}

}  // namespace

ChartGrammar::ChartGrammar(Index symbols_, Index bags_, std::int32_t root_, std::vector<BinaryRule> rules_,
                           std::vector<UnaryPath> paths_)
    : symbols(symbols_), bags(bags_), root(root_), rules(std::move(rules_)), paths(std::move(paths_)) {
    const auto n = static_cast<Index>(rules.size()), c = static_cast<Index>(paths.size());
    by_parent = sorted_into_rows(symbols, n, [&](Index r) { return rules[r].parent; });
    by_left = sorted_into_rows(symbols, n, [&](Index r) { return rules[r].left; });
    by_right = sorted_into_rows(symbols, n, [&](Index r) { return rules[r].right; });
    by_target = sorted_into_rows(symbols, c, [&](Index k) { return paths[k].target; });
    from_open = sorted_into_rows(symbols, c, [&](Index k) { return paths[k].from_closed ? -1 : paths[k].source; });
    from_closed = sorted_into_rows(symbols, c, [&](Index k) { return paths[k].from_closed ? paths[k].source : -1; });
    std::vector<bool> last(symbols, false);
    for (const auto &path : paths)
        if (path.from_closed) last[path.target] = true;
    for (const auto &path : paths)
        if (path.from_closed && last[path.source])
            throw std::invalid_argument("a path from a closed symbol ends at one that such paths make");
    for (int pass = 0; pass < 2; pass++)
        for (std::int32_t s = 0; s < symbols; s++)
            if (!by_target[s].empty() && last[s] == (pass == 1)) targets.push_back(s);
    group_rules();
    pair_rules();
}

// Of the two ways to put the rules of a parent together the one with fewer groups: each costs a convolution.
void ChartGrammar::group_rules() {
    for (std::int32_t parent = 0; parent < symbols; parent++) {
        std::set<std::int32_t> lefts, rights;
        for (auto r : by_parent[parent]) {
            lefts.insert(rules[r].left);
            rights.insert(rules[r].right);
        }
        const bool left = lefts.size() < rights.size();
        for (auto shared : left ? lefts : rights) {
            const auto begin = static_cast<Index>(by_group.size());
            for (auto r : by_parent[parent])
                if ((left ? rules[r].left : rules[r].right) == shared) by_group.push_back(r);
            groups.data.push_back({shared, left, begin, static_cast<Index>(by_group.size())});
        }
        groups.close_row();
    }
}

void ChartGrammar::pair_rules() {
    by_pair.resize(rules.size());
    std::iota(by_pair.begin(), by_pair.end(), 0);
    const auto children = [&](std::int32_t r) { return std::pair(rules[r].left, rules[r].right); };
    std::stable_sort(by_pair.begin(), by_pair.end(), [&](auto a, auto b) { return children(a) < children(b); });
    for (Index k = 0; k < static_cast<Index>(by_pair.size()); k++) {
        const auto &rule = rules[by_pair[k]];
        if (k == 0 || children(by_pair[k]) != children(by_pair[k - 1])) pairs.push_back({rule.left, rule.right, k, k});
        pairs.back().end = k + 1;
    }
}

}  // namespace tallytree
