#include "charts/sums.h"

#include <algorithm>
#include <cmath>

namespace tallytree {
namespace {

// A product of two items, a weight and a rule is at least exp(-600), far above the smallest double; and at most
// exp(92).
constexpr double kFaintItem = -140, kFaintSplit = -230, kLargeRule = 90;

}  // namespace

bool sums_serve(const Run &run) {
    const auto &rules = run.scores()[kRules];
    if (run.algebra() != AlgebraKind::LogSumExp || rules.size != 1) return false;
    for (Index r = 0; r < rules.count; r++)
        if (const double f = *rules.row(r); f != kNegativeInfinity && std::abs(f) > kLargeRule) return false;
    return true;
}

ChartSums::ChartSums(Run &run, Meter &meter)
    : run_(run),
      layout_(run.layout()),
      grammar_(*layout_.skeleton->chart->grammar),
      spans_(layout_.skeleton->chart->spans),
      meter_(meter),
      kernels_(run.kernels()->products),
      factors_(grammar_.rules.size()),
      scales_(spans_.words + 1),
      widths_(grammar_.symbols),
      rows_((spans_.words + 1) * grammar_.symbols),
      top_(round_up(spans_.words)),
      weights_(round_up(spans_.words) * spans_.words),
      open_(round_up(spans_.words) * grammar_.symbols),
      sum_(round_up(spans_.words)),
      above_(round_up(spans_.words)),
      zeros_(round_up(spans_.words)),
      present_(grammar_.symbols) {
    for (std::size_t r = 0; r < factors_.size(); r++)
        factors_[r] = std::exp(*run.scores()[kRules].row(static_cast<Index>(r)));
}

void ChartSums::take(Index width) {
    const Index n = spans_.starts(width);
    auto &scale = scales_[width];
    scale.assign(n, kNegativeInfinity);
    for (auto s : grammar_.targets) run_.kernels()->raise(items(Layer::Closed, width, s), 0, scale.data(), n);
    for (Index i = 0; i < n; i++) sum_[i] = scale[i] == kNegativeInfinity ? 0 : scale[i];
    for (auto s : grammar_.targets) {
        const double *item = items(Layer::Closed, width, s);
        Row found{static_cast<Index>(inside_.size())};
        for (Index i = 0; i < n; i++) {
            if (item[i] == kNegativeInfinity) continue;
            if (found.last < 0) found.first = static_cast<std::int32_t>(i);
            found.last = static_cast<std::int32_t>(i);
            if (item[i] - scale[i] < kFaintItem) usable_ = false;
        }
        if (found.last < 0) continue;
        row(width, s) = found;
        widths_[s].push_back(width);
        inside_.resize(inside_.size() + stride(width), 0);
        run_.kernels()->add_exponentials(item, 0, sum_.data(), inside_.data() + found.place, n);
    }
    meter_.spend(4.0 * static_cast<double>(n) * static_cast<double>(grammar_.targets.size()));
}

// The scale of a width, and the weights of its splits.
void ChartSums::weigh(Index width) {
    const Index n = spans_.starts(width), wide = round_up(spans_.words);
    std::fill(top_.begin(), top_.end(), kNegativeInfinity);
    const auto both = [&](Index split, Index i) { return scales_[split][i] + scales_[width - split][i + split]; };
    for (Index split = 1; split < width; split++)
        for (Index i = 0; i < n; i++) top_[i] = std::max(top_[i], both(split, i));
    std::fill(weights_.begin(), weights_.end(), 0);
    for (Index split = 1; split < width; split++)
        for (Index i = 0; i < n; i++) {
            const double weight = both(split, i) - top_[i];
            if (!(weight > kNegativeInfinity)) continue;  // nothing there
            if (weight < kFaintSplit) usable_ = false;
            weights_[split * wide + i] = std::exp(weight);
        }
    meter_.spend(16.0 * static_cast<double>(n * width));
}

// The splits over which both children of a pair can stand.
void ChartSums::find_products(const RulePair &pair, Index width) {
    products_.clear();
    starts_.clear();
    const Index wide = round_up(spans_.words);
    each_split(widths_[pair.left], widths_[pair.right], width, [&](Index split) {
        const Row &x = row(split, pair.left), &y = row(width - split, pair.right);
        const Index first = std::max<Index>(x.first, y.first - split), last = std::min<Index>(x.last, y.last - split);
        if (first > last) return;
        products_.push_back(
            {inside_.data() + x.place, inside_.data() + y.place + split, weights_.data() + split * wide});
        starts_.push_back({first / kLanes * kLanes, round_up(last + 1)});
    });
}

const std::vector<std::int32_t> &ChartSums::combine(Index width) {
    made_.clear();
    weigh(width);
    if (!usable_) return made_;
    const Index n = spans_.starts(width);
    std::fill(present_.begin(), present_.end(), 0);
    for (const auto &pair : grammar_.pairs) {
        find_products(pair, width);
        if (products_.empty()) continue;
        kernels_.add_products(products_.data(), static_cast<Index>(products_.size()), sum_.data(), n);
        for (Index k = pair.begin; k < pair.end; k++) {
            const auto rule = grammar_.by_pair[k], parent = grammar_.rules[rule].parent;
            if (factors_[rule] == 0) continue;
            double *to = open(parent);
            if (!present_[parent]) {
                std::fill(to, to + round_up(n), 0);
                present_[parent] = 1;
                made_.push_back(parent);
            }
            kernels_.add_scaled(sum_.data(), factors_[rule], to, n);
        }
        meter_.spend(static_cast<double>((static_cast<Index>(products_.size()) + pair.end - pair.begin) * n));
    }
    for (auto parent : made_) {
        const auto &table = layout_.tables[spans_.table(Layer::Open, 0, width)];
        double *out = run_.memory() + table.base + parent * table.stride;
        const double *from = open(parent);
        for (Index i = 0; i < n; i++) out[i] = from[i] > 0 ? top_[i] + std::log(from[i]) : kNegativeInfinity;
        meter_.spend(8.0 * static_cast<double>(n));
    }
    return made_;
}

// ---- downwards -----------------------------------------------------------------------------------------------------

void ChartSums::take_all() {
    for (Index width = 1; width <= spans_.words && usable_; width++) take(width);
    for (Index width = 2; width <= spans_.words && usable_; width++) weigh(width);
    outside_.assign(inside_.size(), 0);
    total_ = *items(Layer::Closed, spans_.words, grammar_.root);
}

void ChartSums::outside_of(Index width, std::int32_t symbol, double *out) const {
    const Row &found = rows_[width * grammar_.symbols + symbol];
    if (found.place < 0) return;
    const double *q = outside_.data() + found.place;
    for (Index i = 0; i < spans_.starts(width); i++)
        out[i] = q[i] > 0 ? std::log(q[i]) + total_ - scales_[width][i] : kNegativeInfinity;
}

void ChartSums::take_outside(Index width, std::int32_t symbol, const double *outer) {
    const Index n = spans_.starts(width);
    double *q = open(symbol);
    std::fill(q, q + round_up(n), 0);
    run_.kernels()->add_exponentials_of_sum(outer, top_.data(), nullptr, -total_, zeros_.data(), q, n);
    const double *item = items(Layer::Open, width, symbol);  // where there is none, q has no limit
    for (Index i = 0; i < n; i++) q[i] = item[i] == kNegativeInfinity ? 0 : q[i];
    present_[symbol] = std::any_of(q, q + n, [](double v) { return v > 0; });  // most lead to no tree
}

void ChartSums::hand_down_split(const Product &p, std::pair<Index, Index> starts) {
    const auto [first, end] = starts;
    const Index x = p.x - inside_.data() + first, y = p.y - inside_.data() + first;
    kernels_.share({p.x + first, p.y + first, p.weight + first}, above_.data() + first, outside_.data() + x,
                   outside_.data() + y, end - first);
}

void ChartSums::hand_down_pairs(Index width, std::vector<double> &rules) {
    const Index n = spans_.starts(width);
    for (const auto &pair : grammar_.pairs) {
        std::fill(above_.begin(), above_.begin() + round_up(n), 0);
        bool some = false;
        for (Index k = pair.begin; k < pair.end; k++) {
            const auto rule = grammar_.by_pair[k], parent = grammar_.rules[rule].parent;
            if (!present_[parent]) continue;
            some = true;
            kernels_.add_scaled(open(parent), factors_[rule], above_.data(), n);
        }
        if (!some) continue;
        find_products(pair, width);
        if (products_.empty()) continue;
        for (std::size_t k = 0; k < products_.size(); k++) hand_down_split(products_[k], starts_[k]);
        kernels_.add_products(products_.data(), static_cast<Index>(products_.size()), sum_.data(), n);
        for (Index k = pair.begin; k < pair.end; k++) {
            const auto rule = grammar_.by_pair[k], parent = grammar_.rules[rule].parent;
            if (!present_[parent]) continue;
            const double *q = open(parent);
            double used = 0;
            for (Index i = 0; i < n; i++) used += q[i] * sum_[i];
            rules[rule] += used * factors_[rule];
        }
        meter_.spend(static_cast<double>((3 * static_cast<Index>(products_.size()) + 2 * (pair.end - pair.begin)) * n));
    }
    std::fill(present_.begin(), present_.end(), 0);
}

}  // namespace tallytree
