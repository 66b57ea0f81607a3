#include "bounds/sentence.h"

#include <stdexcept>

namespace tallytree::bounds {

namespace {

double largest_of(const TableBlock<double> &block, Index begin, Index end) {
    double most = 0;
    for (Index k = begin; k < end; k++)
        for (Index i = 0; i < block.size; i++)
            if (const double x = block.row(k)[i]; x != kNegativeInfinity) most = std::max(most, std::abs(x));
    return most;
}

}  // namespace

void write_steps(std::span<const ChartStep> steps, std::int64_t *labelling, Index length) {
    std::fill(labelling, labelling + length, -1);
    for (const auto &s : steps)
        for (const auto x : {s.kind, s.number, s.start, s.width, s.left_width}) *labelling++ = x;
}

Sentence::Sentence(std::shared_ptr<const Layout> layout, std::vector<TableBlock<double>> scores,
                   std::vector<std::int32_t> counts, Index statistics, double cell)
    : layout_(std::move(layout)),
      grammar_(*layout_->skeleton->chart->grammar),
      spans_(layout_->skeleton->chart->spans),
      scores_(std::move(scores)),
      counts_(std::move(counts)),
      statistics_(statistics),
      nodes_(2 * spans_.words - 1),
      cell_(cell) {
    for (const UnaryPath &path : grammar_.paths) {
        bags_[2 * path.from_closed].push_back(path.bag);
        bags_[2 * path.from_closed + 1].push_back(path.word_bag);
    }
    for (auto &bags : bags_) {
        std::ranges::sort(bags);
        bags.erase(std::unique(bags.begin(), bags.end()), bags.end());
    }
    find_magnitude();
    find_range();
}

// A tree has a word or a rule at every node, and there a path, and perhaps one more on top of it.
void Sentence::find_magnitude() {
    for (Index i = 0; i < spans_.words; i++) magnitude_ += largest_of(scores_[kWords], i, i + 1);
    const auto rules = static_cast<Index>(grammar_.rules.size()), paths = static_cast<Index>(grammar_.paths.size());
    magnitude_ += static_cast<double>(spans_.words - 1) * largest_of(scores_[kRules], 0, rules);
    magnitude_ += static_cast<double>(2 * nodes_) * largest_of(scores_[kPaths], 0, paths);
}

std::pair<Index, Index> Sentence::ends(Index statistic, Index span, Index width) const {
    Index low = 0, high = 0;
    for (const bool closed : {false, true}) {
        const auto &bags = bags_[2 * closed + (width == 1)];
        Index least = closed || bags.empty() ? 0 : kNoLimit, most = closed || bags.empty() ? 0 : -kNoLimit;
        for (const auto bag : bags) {
            const std::int32_t *counted = counts(bag, span);
            const Index n = counted ? counted[statistic] : 0;
            least = std::min(least, n);
            most = std::max(most, n);
        }
        low += least;
        high += most;
    }
    return {low, high};
}

// Over all ways to split spans, whatever their symbols.
void Sentence::find_range() {
    const Index n = spans_.words;
    std::vector<Index> low(spans_.count()), high(spans_.count());
    for (Index p = 0; p < statistics_; p++) {
        Index largest = 0;
        for (Index width = 1; width <= n; width++)
            for (Index start = 0; start < spans_.starts(width); start++) {
                const Index span = spans_.number(start, width);
                const auto [least, most] = ends(p, span, width);
                Index below = width == 1 ? 0 : kNoLimit, above = width == 1 ? 0 : -kNoLimit;
                for (Index split = 1; split < width; split++) {
                    const Index a = spans_.number(start, split), b = spans_.number(start + split, width - split);
                    below = std::min(below, low[a] + low[b]);
                    above = std::max(above, high[a] + high[b]);
                }
                low[span] = least + below;
                high[span] = most + above;
                largest = std::max({largest, std::abs(low[span]), std::abs(high[span])});
            }
        range_.low[p] = low.back();
        range_.high[p] = high.back();
        reach_[p] = static_cast<double>(largest);
    }
}

bool Sentence::fits() const {
    const double largest = static_cast<double>(Packing(statistics_).largest());
    return std::ranges::all_of(reach_.first(), [&](double x) { return 4 * x < largest; });
}

// Bands over charts are small: few items remain, and passes take long.
double Sentence::small_budget(double) const { return statistics_ == 1 ? 1.6 : 0.8; }

Evaluated Sentence::evaluate(const std::int64_t *labelling) const {
    Evaluated found;
    Sum score;
    for (const std::int64_t *step = labelling; step < labelling + length() && *step >= 0; step += kStepNumbers) {
        const Index number = step[1], start = step[2], width = step[3], span = spans_.number(start, width);
        if (step[0] == ChartStep::Word) score.add(scores_[kWords].row(start)[number]);
        else score.add(*anchored(scores_[step[0] == ChartStep::Split ? kRules : kPaths], number, span));
        const auto *counted = step[0] == ChartStep::Unary ? counts(bag_of(number, width), span) : nullptr;
        for (Index p = 0; counted && p < statistics_; p++) found.tally[p] += counted[p];
    }
    found.score = score.total();
    return found;
}

// Every step makes the item that is wanted next.
void Sentence::check(std::span<const std::int64_t> labelling) const {
    struct Wanted {
        Layer layer;
        std::int64_t symbol, start, width;
    };
    const auto require = [](bool right) {
        if (!right) throw std::invalid_argument("this is no derivation of a tree of the sentence");
    };
    require(static_cast<Index>(labelling.size()) == length());
    std::vector<Wanted> left{{Layer::Closed, grammar_.root, 0, spans_.words}};
    const std::int64_t *step = labelling.data(), *end = step + labelling.size();
    for (; !left.empty(); step += kStepNumbers) {
        const auto [layer, symbol, start, width] = left.back();
        left.pop_back();
        require(step < end && step[1] >= 0 && step[2] == start && step[3] == width);
        const auto number = static_cast<std::size_t>(step[1]);
        if (layer == Layer::Closed) {
            require(step[0] == ChartStep::Unary && number < grammar_.paths.size());
            const UnaryPath &path = grammar_.paths[number];
            require(path.target == symbol);
            left.push_back({path.from_closed ? Layer::Closed : Layer::Open, path.source, start, width});
        } else if (width == 1) {
            require(step[0] == ChartStep::Word && step[1] == symbol);
        } else {
            require(step[0] == ChartStep::Split && number < grammar_.rules.size() && step[4] > 0 && step[4] < width);
            const BinaryRule &rule = grammar_.rules[number];
            require(rule.parent == symbol);
            left.push_back({Layer::Closed, rule.right, start + step[4], width - step[4]});
            left.push_back({Layer::Closed, rule.left, start, step[4]});
        }
    }
    for (; step < end; step++) require(*step == -1);
}

}  // namespace tallytree::bounds
