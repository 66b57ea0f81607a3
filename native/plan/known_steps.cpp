#include "plan/known_steps.h"

#include <algorithm>

#include "plan/placement.h"

namespace tallytree {
namespace {

// Stretches and pairs that are kept for layouts to come: some megabytes.
constexpr double kRemembered = 1 << 17;
constexpr double kShare = 1.0 / 2048;  // of the bytes of a memory limit: each takes some 64

std::size_t hash(std::span<const Index> sequence) {
    std::uint64_t h = sequence.size();
    for (const Index word : sequence) h = (h ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
    return static_cast<std::size_t>(h ^ (h >> 29));
}

}  // namespace

std::span<const Index> SequenceSet::at(std::int32_t number) const {
    return {data_.data() + begin_[number], data_.data() + begin_[number + 1]};
}

std::pair<std::int32_t, bool> SequenceSet::insert(std::span<const Index> sequence) {
    if (2 * begin_.size() > slots_.size()) grow();
    std::size_t slot = hash(sequence) & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
        if (std::ranges::equal(at(slots_[slot]), sequence)) return {slots_[slot], false};
    slots_[slot] = static_cast<std::int32_t>(begin_.size()) - 1;
    data_.insert(data_.end(), sequence.begin(), sequence.end());
    begin_.push_back(static_cast<Index>(data_.size()));
    return {slots_[slot], true};
}

void SequenceSet::grow() {
    slots_.assign(slots_.size() * 2, -1);
    for (std::int32_t number = 0; number + 1 < static_cast<std::int32_t>(begin_.size()); number++) {
        std::size_t slot = hash(at(number)) & (slots_.size() - 1);
        while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = number;
    }
}

// ---- steps ---------------------------------------------------------------------------------------------------------

bool KnownSteps::fit(const Layout &l, double memory_limit) const {
    return prefix_size_ == l.prefix_size && lanes_ == l.lanes &&
           static_cast<double>(l.low.size() + l.pair_a.size()) < std::min(kRemembered, kShare * memory_limit);
}

double KnownSteps::bytes(const Layout &l) const {
    const std::size_t stretches = l.low.size() * (4 + l.prefix_size), pairs = l.pair_a.size() + l.pair_begin.size();
    return static_cast<double>(8 * (stretches + pairs) + steps.bytes() + shape_numbers_.bytes() +
                               made_.size() * sizeof(Made) + shapes_.size() * sizeof(Shape));
}

void forget(Layout &l) {
    for (auto *pool : {&l.pair_begin, &l.low, &l.length, &l.natural, &l.start, &l.prefix}) pool->clear();
    for (auto *pool : {&l.pair_a, &l.pair_b}) pool->clear();
    if (!l.known) return;
    *l.known = {};
    l.known->prefix_size_ = l.prefix_size;
    l.known->lanes_ = l.lanes;
}

void KnownSteps::remember(Layout &l, std::int32_t t) {
    const StepLayout &s = l.steps[t];
    Made made{number_shape(l, t), {}, s.groups, s.begin, s.pairs};
    if (l.skeleton->steps[t].verb == Verb::Eliminate) made.input = place_input(l, t);
    made_.push_back(made);
}

std::int32_t KnownSteps::take(Layout &l, std::int32_t t, std::int32_t number) const {
    const Made &made = made_[number];
    const Shape &shape = shapes_[made.shape];
    const Step &step = l.skeleton->steps[t];
    auto &table = l.tables[t];
    table.states = static_cast<Index>(l.skeleton->states[t]);
    table.stretches = shape.stretches;
    table.cells = shape.cells;
    put(table, shape.placed, l);
    auto &s = l.steps[t];
    s.groups = made.groups;
    s.begin = made.begin;
    s.pairs = made.pairs;
    if (step.verb == Verb::Eliminate) put(l.tables[step.a], made.input, l);
    return made.shape;
}

void KnownSteps::put(TableLayout &table, Placed placed, const Layout &l) {
    table.stretches_begin = placed.begin;
    table.stride = placed.stride;
    table.size = table.stride * table.states + l.start[table.stretches_begin];
}

static void resize_stretches(Layout &l, Index stretches) {
    for (auto *pool : {&l.low, &l.length, &l.natural, &l.start}) pool->resize(stretches);
    l.prefix.resize(stretches * l.prefix_size);
}

// Looks the stretches of a table up, which are the last ones in the pools; they stay there if they are new.
std::int32_t KnownSteps::number_shape(Layout &l, std::int32_t t) {
    auto &table = l.tables[t];
    const Index first = table.stretches_begin;
    key_.assign(1, table.stretches);
    key_.insert(key_.end(), l.low.begin() + first, l.low.end());
    key_.insert(key_.end(), l.length.begin() + first, l.length.end());
    key_.insert(key_.end(), l.prefix.begin() + first * l.prefix_size, l.prefix.end());
    const auto [number, fresh] = shape_numbers_.insert(key_);
    if (fresh) {
        resize_stretches(l, first + table.stretches);
        place_rows(l, t, -1);
        shapes_.push_back({{first, table.stride}, table.stretches, table.cells});
    } else {
        resize_stretches(l, first);
        put(table, shapes_[number].placed, l);
    }
    return number;
}

// Places a copy of the input's stretches as an elimination needs them.
KnownSteps::Placed KnownSteps::place_input(Layout &l, std::int32_t t) const {
    const std::int32_t input = l.skeleton->steps[t].a;
    auto &table = l.tables[input];
    const Index from = table.stretches_begin, to = static_cast<Index>(l.low.size()), q = l.prefix_size;
    resize_stretches(l, to + table.stretches);
    for (auto *pool : {&l.low, &l.length, &l.natural})
        std::copy_n(pool->begin() + from, table.stretches, pool->begin() + to);
    std::copy_n(l.prefix.begin() + from * q, table.stretches * q, l.prefix.begin() + to * q);
    table.stretches_begin = to;
    place_rows(l, input, t);
    return {to, table.stride};
}

}  // namespace tallytree
