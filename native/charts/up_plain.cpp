#include "charts/up_plain.h"

#include <algorithm>
#include <cmath>

namespace tallytree {

UpPlain::UpPlain(Run &run, Meter &meter)
    : run_(run),
      layout_(run.layout()),
      grammar_(*layout_.skeleton->chart->grammar),
      spans_(layout_.skeleton->chart->spans),
      meter_(meter),
      widths_(grammar_.symbols),
      live_(2 * (spans_.words + 1) * grammar_.symbols, 0) {}

void UpPlain::step(std::int32_t t) {
    const Step &step = layout_.skeleton->steps[t];
    const auto &table = layout_.tables[t];
    double *data = run_.row(t, 0);
    std::fill(data, data + table.size, kNegativeInfinity);
    if (step.verb == Verb::Word) take_words();
    else if (step.verb == Verb::Unary) close(step.width);
    else open(step.width);
}

void UpPlain::open(Index width) {
    if (sums_ && sums_->usable())
        for (auto parent : sums_->combine(width)) note(Layer::Open, width, parent);
    if (sums_ && sums_->usable()) return;
    if (run_.is_max_plus() && scores(kRules).size == 1) build_pairs(width);
    else
        for (std::int32_t parent = 0; parent < grammar_.symbols; parent++) build(parent, width);
}

void UpPlain::close(Index width) {
    for (auto target : grammar_.targets) unary(target, width);
    if (sums_ && sums_->usable()) sums_->take(width);
}

void UpPlain::note(Layer layer, Index width, std::int32_t symbol) {
    const double *row = inner(layer, width, symbol);
    for (Index i = 0; i < spans_.starts(width); i++)
        if (row[i] != kNegativeInfinity) {
            live(layer, width, symbol) = 1;
            if (layer == Layer::Closed) widths_[symbol].push_back(width);
            return;
        }
}
// ---- upwards -------------------------------------------------------------------------------------------------------

void UpPlain::take_words() {
    if (sums_serve(run_)) sums_ = std::make_unique<ChartSums>(run_, meter_);
    for (std::int32_t s = 0; s < grammar_.symbols; s++) {
        for (Index i = 0; i < spans_.words; i++) inner(Layer::Open, 1, s)[i] = scores(kWords).row(i)[s];
        note(Layer::Open, 1, s);
    }
}

void UpPlain::build(std::int32_t parent, Index width) {
    terms_.clear();
    const Index n = spans_.starts(width), span = spans_.first(width);
    for (auto number : grammar_.by_parent[parent]) {
        const auto &rule = grammar_.rules[number];
        each_split(widths_[rule.left], widths_[rule.right], width, [&](Index split) {
            if (live(Layer::Closed, split, rule.left) && live(Layer::Closed, width - split, rule.right))
                add_term(inner(Layer::Closed, split, rule.left),
                         inner(Layer::Closed, width - split, rule.right) + split, kRules, number, span, 0, n);
        });
    }
    combine(inner(Layer::Open, width, parent), n);
    note(Layer::Open, width, parent);
}

// The best split of two children serves every rule that has them.
void UpPlain::build_pairs(Index width) {
    const Index n = spans_.starts(width);
    for (const auto &pair : grammar_.pairs) {
        Index splits = 0;
        largest_.assign(round_up(n), kNegativeInfinity);
        each_split(widths_[pair.left], widths_[pair.right], width, [&](Index split) {
            if (!live(Layer::Closed, split, pair.left) || !live(Layer::Closed, width - split, pair.right)) return;
            run_.kernels()->raise_sum(inner(Layer::Closed, split, pair.left),
                                      inner(Layer::Closed, width - split, pair.right) + split, nullptr, 0,
                                      largest_.data(), round_up(n));
            splits++;
        });
        if (splits == 0) continue;
        for (Index k = pair.begin; k < pair.end; k++) {
            const auto rule = grammar_.by_pair[k];
            run_.kernels()->raise(largest_.data(), *scores(kRules).row(rule),
                                  inner(Layer::Open, width, grammar_.rules[rule].parent), n);
        }
        meter_.spend(static_cast<double>((splits + pair.end - pair.begin) * n));
    }
    for (std::int32_t parent = 0; parent < grammar_.symbols; parent++) note(Layer::Open, width, parent);
}

void UpPlain::unary(std::int32_t target, Index width) {
    terms_.clear();
    const Index n = spans_.starts(width), span = spans_.first(width);
    for (auto number : grammar_.by_target[target]) {
        const auto &c = grammar_.paths[number];
        const Layer layer = c.from_closed ? Layer::Closed : Layer::Open;
        if (live(layer, width, c.source)) add_term(inner(layer, width, c.source), nullptr, kPaths, number, span, 0, n);
    }
    combine(inner(Layer::Closed, width, target), n);
    note(Layer::Closed, width, target);
}

// ---- sums ----------------------------------------------------------------------------------------------------------

void UpPlain::add_term(const double *x, const double *y, ChartBlock block, std::int32_t number, Index span, Index first,
                       Index n) {
    const double *f = anchored(scores(block), number, span);
    if (scores(block).size > 1) terms_.push_back({x, y, f, 0, first, n});
    else if (*f != kNegativeInfinity) terms_.push_back({x, y, nullptr, *f, first, round_up(n)});
}

// Where scores are not anchored, whole vectors are taken: behind a row lies -inf, or the sum is.
void UpPlain::combine(double *out, Index n) {
    const auto *kernels = run_.kernels();
    double work = 0;
    for (const auto &t : terms_) work += static_cast<double>(t.n);
    if (run_.is_max_plus()) {
        std::fill(out, out + n, kNegativeInfinity);
        for (const auto &t : terms_) kernels->raise_sum(t.x, t.y, t.z, t.f, out + t.first, t.n);
        meter_.spend(work + 16);
        return;
    }
    const Index padded = round_up(n) + kLanes;
    largest_.assign(padded, kNegativeInfinity);
    for (const auto &t : terms_) kernels->raise_sum(t.x, t.y, t.z, t.f, largest_.data() + t.first, t.n);
    for (auto &v : largest_)
        if (v == kNegativeInfinity) v = 0;
    sum_.assign(padded, 0);
    for (const auto &t : terms_)
        kernels->add_exponentials_of_sum(t.x, t.y, t.z, t.f, largest_.data() + t.first, sum_.data() + t.first, t.n);
    for (Index i = 0; i < n; i++) out[i] = sum_[i] > 0 ? largest_[i] + std::log(sum_[i]) : kNegativeInfinity;
    meter_.spend(16 * work + 16);
}

}  // namespace tallytree
