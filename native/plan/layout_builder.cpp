#include "plan/layout_builder.h"

#include <algorithm>

#include "plan/placement.h"

namespace tallytree {

static constexpr std::size_t kManySteps = 10'000;
// Pairs of a step: the lists of all steps before it take a quarter of a second.
static constexpr double kMany = 1 << 20;

// A layout with nothing in it but the memory of another one, and what is in its pools.
static Layout emptied(Layout used) {
    Layout fresh;
    const auto recycle = [](auto &to, auto &from) {
        from.clear();
        to = std::move(from);
    };
    recycle(fresh.permutation, used.permutation);
    recycle(fresh.caps, used.caps);
    recycle(fresh.floors, used.floors);
    recycle(fresh.user_caps, used.user_caps);
    recycle(fresh.tables, used.tables);
    recycle(fresh.steps, used.steps);
    recycle(fresh.class_of, used.class_of);
    recycle(fresh.class_prefix, used.class_prefix);
    recycle(fresh.class_shift, used.class_shift);
    recycle(fresh.segment_begin, used.segment_begin);
    fresh.pair_a = std::move(used.pair_a);
    fresh.pair_b = std::move(used.pair_b);
    fresh.pair_begin = std::move(used.pair_begin);
    fresh.low = std::move(used.low);
    fresh.length = std::move(used.length);
    fresh.natural = std::move(used.natural);
    fresh.start = std::move(used.start);
    fresh.prefix = std::move(used.prefix);
    fresh.known = std::move(used.known);
    return fresh;
}

LayoutBuilder::LayoutBuilder(std::shared_ptr<const Skeleton> skeleton, const LayoutRequest &request, const Poll &poll,
                             Layout used, Worth worth)
    : request_(request),
      skeleton_(*skeleton),
      limit_(request.memory_limit - static_cast<double>(skeleton_.bytes)),
      room_(std::min(limit_, worth.room)),
      ranges_(skeleton_, request),
      meter_(poll),
      l_(emptied(std::move(used))),
      worth_(worth),
      poll_(poll) {
    l_.skeleton = std::move(skeleton);
    l_.lanes = request.lanes;
    l_.statistics = static_cast<Index>(request.caps.size());
    l_.clipped = !request.window.open;
}

Layout LayoutBuilder::build(bool rows) {
    ranges_.choose_axes(l_, rows);
    windows_.emplace(request_, ranges_, l_);
    classes_.emplace(request_, ranges_, l_);
    plain_ = !l_.clipped && std::all_of(l_.caps.begin(), l_.caps.end(), [](Index cap) { return cap == kUncapped; });
    if (!remembers() || !l_.known->fit(l_, limit_)) forget(l_);
    if (skeleton_.steps.size() > kManySteps) make_room();
    const double places = static_cast<double>(skeleton_.steps.size() * (sizeof(TableLayout) + sizeof(StepLayout)));
    if (places > limit_) refuse(0, places);
    check_room(places);
    if (!fill_tables()) {
        l_.known.reset();
        forget(l_);
        fill_tables();
    }
    if (stretch_sums_) l_.pruned = stretch_sums_->pruned();
    if (!remembers()) place_stretches(l_);  // else they have their places
    place_tables(l_, limit_);
    return std::move(l_);
}

bool LayoutBuilder::fill_tables() {
    for (auto *pool : {&l_.class_prefix, &l_.class_shift}) pool->clear();
    l_.class_of.clear();
    shape_.clear();
    l_.tables.assign(skeleton_.steps.size(), {});
    l_.steps.assign(skeleton_.steps.size(), {});
    l_.operations = 0;
    l_.costliest = -1;
    places_ = l_.plan_bytes = bytes_of(l_.tables) + bytes_of(l_.steps);
    for (std::size_t t = 0; t < skeleton_.steps.size(); t++) {
        if (!remembers()) make_table(static_cast<std::int32_t>(t));
        else if (!recall_table(static_cast<std::int32_t>(t))) return false;
    }
    return true;
}

// For one stretch of each table, and one pair of each step, so that long lists need not be copied while they grow.
void LayoutBuilder::make_room() {
    const std::size_t steps = skeleton_.steps.size();
    for (auto *pool : {&l_.low, &l_.length, &l_.natural, &l_.class_shift}) pool->reserve(pool->size() + steps);
    for (auto *pool : {&l_.pair_a, &l_.pair_b}) pool->reserve(pool->size() + steps);
    std::size_t shifts = l_.class_of.size();
    for (const Step &step : skeleton_.steps) shifts += static_cast<std::size_t>(step.shift_size);
    l_.class_of.reserve(shifts);
    l_.pair_begin.reserve(l_.pair_begin.size() + 2 * steps);
}

// ---- one table ---------------------------------------------------------------------------------------------------

void LayoutBuilder::make_table(std::int32_t t) {
    if (skeleton_.steps[t].verb == Verb::Eliminate) classes_->make(t);
    make_stretches(t);
    count_operations(t);
}

void LayoutBuilder::make_stretches(std::int32_t t) {
    const Step &step = skeleton_.steps[t];
    auto &table = l_.tables[t];
    table.states = static_cast<Index>(skeleton_.states[t]);
    table.stretches_begin = static_cast<Index>(l_.low.size());
    if (step.verb == Verb::Unit) {
        table.stretches = table.cells = 1;
        l_.prefix.insert(l_.prefix.end(), l_.prefix_size, 0);
        l_.low.push_back(0);
        l_.length.push_back(1);
        l_.natural.push_back(1);
    } else if (step.verb == Verb::Eliminate) {
        const auto &s = l_.steps[t];
        ones_.assign(s.classes, 1);
        combine(
            t, view(step.a),
            {s.classes, l_.class_prefix.data() + s.class_prefix, l_.class_shift.data() + s.class_shift, ones_.data()});
    } else {
        combine(t, view(step.a), view(step.b));
    }
}

void LayoutBuilder::combine(std::int32_t t, StretchView a, StretchView b) {
    guard_pairs(t, static_cast<double>(a.count) * static_cast<double>(b.count));
    if (in_line(a, b, l_.steps[t].classes > 0)) return add_lines(t, a, b);
    if (!stretch_sums_) stretch_sums_ = std::make_unique<StretchSums>(l_.rows, l_.caps, l_.clipped);
    const double room = room_ - growing_bytes();
    stretch_sums_->add(a, b, windows_->of(t), room, meter_, [&](Index prefixes) { guard_prefixes(t, prefixes); });
    finish(t, a, b);
}

// Stores the stretches and sorts the pairs by the stretch (and class) they go to.
void LayoutBuilder::finish(std::int32_t t, StretchView a, StretchView b) {
    const StretchSums &sums = *stretch_sums_;
    auto &table = l_.tables[t];
    table.stretches = sums.stretches();
    store_stretches(t, sums.lows(), sums.highs(), sums.naturals());
    l_.prefix.insert(l_.prefix.end(), sums.prefixes().begin(), sums.prefixes().end());
    count_bytes(t, sort_pairs(l_.steps[t], table.stretches, a.count, b.count));
}

void LayoutBuilder::store_stretches(std::int32_t t, const Index *low, const Index *high, const Index *natural) {
    auto &table = l_.tables[t];
    double cells = 0;
    for (Index r = 0; r < table.stretches; r++) cells += static_cast<double>(high[r] - low[r] + 1);
    check_cells(t, cells);
    const std::size_t first = l_.low.size(), last = first + table.stretches;
    l_.low.resize(last);
    l_.length.resize(last);
    l_.natural.resize(last);
    for (Index r = 0; r < table.stretches; r++) {
        l_.low[first + r] = low[r];
        l_.length[first + r] = high[r] - low[r] + 1;
        l_.natural[first + r] = natural[r] - low[r] + 1;
    }
    table.cells = static_cast<Index>(cells);
}

Index LayoutBuilder::sort_pairs(StepLayout &s, Index stretches, Index a_count, Index b_count) {
    open_pairs(s, stretches, 0);
    Index *begin = l_.pair_begin.data() + s.begin;
    const auto each_pair = [&](auto use) {
        stretch_sums_->each_pair(a_count, b_count, [&](Index ra, Index rb, Index stretch) {
            use(ra, rb, s.classes ? stretch * s.classes + rb : stretch);
        });
    };
    each_pair([&](Index, Index, Index group) { begin[group + 1]++; });
    for (Index g = 0; g < s.groups; g++) begin[g + 1] += begin[g];
    cursor_.assign(begin, begin + s.groups + 1);
    l_.pair_a.resize(s.pairs + begin[s.groups]);
    l_.pair_b.resize(s.pairs + begin[s.groups]);
    each_pair([&](Index ra, Index rb, Index group) {
        const Index at = s.pairs + cursor_[group]++;
        l_.pair_a[at] = static_cast<std::int32_t>(ra);
        l_.pair_b[at] = static_cast<std::int32_t>(rb);
    });
    return begin[s.groups];
}

void LayoutBuilder::open_pairs(StepLayout &s, Index stretches, Index pairs) {
    s.groups = s.classes ? stretches * s.classes : stretches;
    s.begin = static_cast<Index>(l_.pair_begin.size());
    s.pairs = static_cast<Index>(l_.pair_a.size());
    l_.pair_begin.resize(s.begin + s.groups + 1, 0);
    l_.pair_a.resize(s.pairs + pairs);
    l_.pair_b.resize(s.pairs + pairs);
}

void LayoutBuilder::count_operations(std::int32_t t) {
    const Step &step = skeleton_.steps[t];
    auto &place = l_.steps[t];
    if (step.verb == Verb::Unit) return;
    const StepView s = l_.step(t);
    const Index *la = l_.length.data() + l_.tables[step.a].stretches_begin;
    double pairs = 0;
    if (step.verb == Verb::Join) {
        const Index *lb = l_.length.data() + l_.tables[step.b].stretches_begin;
        for (Index p = 0; p < s.pairs.count(); p++)
            pairs += static_cast<double>(la[s.pairs.a[p]]) * static_cast<double>(lb[s.pairs.b[p]]);
        place.operations = pairs * static_cast<double>(step.kept_states);
    } else {
        weight_.assign(s.classes, 0);
        for (Index e = 0; e < step.shift_size; e++) weight_[s.class_of[e]] += 1;
        for (Index p = 0; p < s.pairs.count(); p++)
            pairs += static_cast<double>(la[s.pairs.a[p]]) * weight_[s.pairs.b[p]];
        place.operations = pairs * static_cast<double>(step.kept_states) *
                           static_cast<double>(step.gone.count * step.fresh) / static_cast<double>(step.shift_size);
    }
    l_.operations += place.operations;
    if (l_.operations > request_.operation_limit && static_cast<double>(l_.pair_a.size()) > kMany)
        throw BudgetExceeded("the plan takes more operations than are allowed", t, 0);
    if (l_.costliest < 0 || place.operations > l_.steps[l_.costliest].operations) l_.costliest = t;
}

// ---- tables that are known from earlier layouts ------------------------------------------------------------------

bool LayoutBuilder::recall_table(std::int32_t t) {
    constexpr double kPart = 8;  // of the room, which nobody counts
    const Step &step = skeleton_.steps[t];
    KnownSteps &known = *l_.known;
    auto &s = l_.steps[t];
    key_.clear();
    if (step.verb == Verb::Join) {
        key_.assign({shape_[step.a], -1 - shape_[step.b]});
    } else if (step.verb == Verb::Eliminate) {
        classes_->make(t);
        key_.assign({shape_[step.a], s.classes});
        key_.insert(key_.end(), l_.class_prefix.begin() + s.class_prefix, l_.class_prefix.end());
        key_.insert(key_.end(), l_.class_shift.begin() + s.class_shift, l_.class_shift.end());
    }
    const auto [number, fresh] = known.steps.insert(key_);
    if (fresh) {
        make_stretches(t);
        known.remember(l_, t);
        if (kPart * known.bytes(l_) > room_) return false;
    }
    shape_.push_back(known.take(l_, t, number));
    if (!fresh && step.verb != Verb::Unit) {
        guard_pairs(t, static_cast<double>(l_.tables[step.a].stretches) *
                           static_cast<double>(s.classes ? s.classes : l_.tables[step.b].stretches));
        check_cells(t, static_cast<double>(l_.tables[t].cells));
        count_bytes(t, l_.step(t).pairs.count());
    }
    count_operations(t);
    return true;
}

// ---- budget ------------------------------------------------------------------------------------------------------

void LayoutBuilder::refuse(std::int32_t t, double bytes) const {
    throw_budget(t, bytes + static_cast<double>(skeleton_.bytes));
}

void LayoutBuilder::check_cells(std::int32_t t, double cells) const {
    const double bytes = cells * skeleton_.states[t] * static_cast<double>(l_.bytes(1));
    if (bytes > limit_) refuse(t, bytes);
}

void LayoutBuilder::count_bytes(std::int32_t t, Index pairs) {
    const StepLayout &s = l_.steps[t];
    l_.plan_bytes += 8 * (pairs + s.groups + 1) + l_.tables[t].stretches * (32 + 8 * l_.prefix_size) +
                     4 * skeleton_.steps[t].shift_size + 8 * s.classes * (l_.prefix_size + 1);
    const auto bytes = static_cast<double>(l_.plan_bytes);
    if (bytes > std::min(limit_, worth_.bytes)) refuse(t, bytes);
    check_room(bytes);
}

void LayoutBuilder::check_room(double bytes) const {
    if (bytes > room_ && room_ < limit_) throw OutOfRoom(bytes);
}

double LayoutBuilder::growing_bytes() const { return static_cast<double>(2 * l_.plan_bytes - places_); }

// The lists of a plan must fit too, while they grow (by doubling) as well.
void LayoutBuilder::guard_pairs(std::int32_t t, double pairs) {
    const double bytes = growing_bytes() + 20 * pairs;
    if ((worth_.pairs -= pairs) < 0) refuse(t, bytes);
    if (bytes > limit_ && pairs > 1024) refuse(t, bytes);
    if (pairs > 2e9) refuse(t, bytes);
    if (pairs > 1024) check_room(bytes);
    if (pairs > kMany) guard_far_apart(t);
}

// Lists of sums that are far apart double with each step, and it would take minutes to fill the memory with them. They
// are not made where those of the first steps grow as expected, and all of them are expected to be far beyond the
// limit.
void LayoutBuilder::guard_far_apart(std::int32_t t) {
    constexpr double kFar = 1.25, kPart = 0.5;
    if (request_.mode != Mode::Automatic) return;
    if (!far_apart_) far_apart_ = far_apart(l_.skeleton, request_, ranges_, poll_, l_.rows);
    double part = 1;
    for (const auto input : {skeleton_.steps[t].a, skeleton_.steps[t].b}) {
        if (input < 0) continue;
        const double expected = far_apart_->stretches[input];
        if (expected == 0) return;
        part = std::min(part, static_cast<double>(l_.tables[input].stretches) / expected);
    }
    if (part >= kPart && part * far_apart_->bytes > kFar * limit_) refuse(t, part * far_apart_->bytes);
}

void LayoutBuilder::guard_prefixes(std::int32_t t, Index prefixes) const {
    const Index each = 24 * (l_.prefix_size + 4) + 16 * l_.steps[t].classes;  // a cursor for each group
    const double bytes = growing_bytes() + static_cast<double>(prefixes * each);
    if (bytes > limit_ && prefixes > 1024) refuse(t, bytes);
    if (prefixes > 1024) check_room(bytes);
    check_cells(t, static_cast<double>(prefixes));
}

}  // namespace tallytree
