// Steps of a pass over wide tables, two choices at a time: along rows of states where the inner loops are long, and by
// lists of places in the operands, for blocks of states, where they are short.
#include "bounds/graph_messages.h"
#include "tables/upward.h"

namespace tallytree::bounds {

// Whether the innermost loop runs along the states of the inputs, and over enough of them; local tables stand still.
bool GraphMessages::is_long(std::span<const Loop> loops) {
    constexpr Index kLong = 8;
    if (loops.empty()) return false;
    const Loop &inner = loops.back();
    return inner.count >= kLong && inner.a <= 1 && inner.b <= 1 && inner.score == 0 && inner.shift == 0;
}

void GraphMessages::eliminate_rows(Index t) {
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    const Loop gone = step.gone;
    const auto loops = tables_->kept(t);
    const Index count = loops.back().count;
    const double *a = values_ + begin_[step.a];
    for (Index fresh = 0; fresh < step.fresh; fresh++) {
        const Index more = step.shift_has_fresh ? fresh : 0;
        double *out = values_ + begin_[t] + fresh * step.kept_states;
        Odometer at(loops.first(loops.size() - 1));
        for (Index k = 0; k < step.kept_states; k += count, out += count, at.next())
            for (Index v = 0; v < gone.count; v += 2) {
                const Index next = v + 1 < gone.count ? 1 : 0;
                const double *x = a + at.a + v * gone.a;
                const double *g = priced(t) + at.shift + v * gone.shift + more;
                const double *f = local.scores + at.score + v * gone.score + fresh * step.fresh_score;
                kernels_.choose(
                    {count, x, x + next * gone.a, *g, *f, g[next * gone.shift], f[next * gone.score], v == 0, out});
            }
        if (!local.late) continue;
        for (double *y = out - step.kept_states; y < out; y++) *y += local.late[fresh];
    }
}

void GraphMessages::join_rows(Index t) {
    const Step &step = skeleton_->steps[t];
    const auto loops = tables_->kept(t);
    const Loop inner = loops.back();
    double *out = values_ + begin_[t];
    Odometer at(loops.first(loops.size() - 1));
    for (Index k = 0; k < step.kept_states; k += inner.count, out += inner.count, at.next()) {
        const double *a = values_ + begin_[step.a] + at.a, *b = values_ + begin_[step.b] + at.b;
        if (inner.a == 1) kernels_.add(a, b, inner.b == 0, inner.count, out);
        else kernels_.add(b, a, true, inner.count, out);
    }
}

// Whether an elimination runs along rows of a join that are long enough to be added up two at a time, when they are
// needed: most of the time of a pass over large tables is spent waiting for memory.
bool GraphMessages::joins_rows(Index t) const {
    constexpr Index kEnough = 128;
    const Step &step = skeleton_->steps[t];
    if (step.verb != Verb::Eliminate || skeleton_->steps[step.a].verb != Verb::Join) return false;
    const auto loops = tables_->kept(t), joined = tables_->kept(step.a);
    return step.kept_states > 1 && is_long(loops) && is_long(joined) &&
           std::min(loops.back().count, joined.back().count) >= kEnough;
}

// Some states of a join.
void GraphMessages::join_row(Index t, Index state, Index count, double *out) {
    const Step &step = skeleton_->steps[t];
    const Loop inner = tables_->kept(t).back();
    while (count > 0) {
        const Operands at = operands(t, state);
        const Index some = std::min(count, inner.count - state % inner.count);
        const double *a = values_ + begin_[step.a] + at.a, *b = values_ + begin_[step.b] + at.b;
        if (inner.a == 1) kernels_.add(a, b, inner.b == 0, some, out);
        else kernels_.add(b, a, true, some, out);
        state += some;
        out += some;
        count -= some;
    }
}

// As `eliminate_rows`, from the inputs of the join.
void GraphMessages::eliminate_joined_rows(Index t) {
    constexpr Index kMost = 512;  // states at a time
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    const Loop gone = step.gone;
    const auto loops = tables_->kept(t);
    const Index count = loops.back().count;
    rows_.resize(2 * kMost);
    double *rows[] = {rows_.data(), rows_.data() + kMost};
    for (Index fresh = 0; fresh < step.fresh; fresh++) {
        const Index more = step.shift_has_fresh ? fresh : 0;
        double *out = values_ + begin_[t] + fresh * step.kept_states;
        Odometer at(loops.first(loops.size() - 1));
        for (Index k = 0; k < step.kept_states; k += count, out += count, at.next())
            for (Index from = 0; from < count; from += kMost)
                for (Index v = 0; v < gone.count; v += 2) {
                    const Index some = std::min(kMost, count - from), next = v + 1 < gone.count ? 1 : 0;
                    for (Index i = 0; i <= next; i++) join_row(step.a, at.a + (v + i) * gone.a + from, some, rows[i]);
                    const double *g = priced(t) + at.shift + v * gone.shift + more;
                    const double *f = local.scores + at.score + v * gone.score + fresh * step.fresh_score;
                    kernels_.choose({some, rows[0], rows[next], *g, *f, g[next * gone.shift], f[next * gone.score],
                                     v == 0, out + from});
                }
        if (!local.late) continue;
        for (double *y = out - step.kept_states; y < out; y++) *y += local.late[fresh];
    }
}

// Whether the innermost of many loops is so short that its places are better listed, together with those around it.
bool GraphMessages::is_choppy(std::span<const Loop> loops, Index states) {
    constexpr Index kMany = 1024, kShort = 32;
    return states >= kMany && loops.size() > 1 && loops.back().count < kShort;
}

// Lists where the states of the innermost loops stand in the operands; returns the loops around them.
std::span<const Loop> GraphMessages::list_places(std::span<const Loop> loops) {
    constexpr Index kMost = 256;
    std::size_t around = loops.size();
    Index size = 1;
    while (around > 0 && size * loops[around - 1].count <= kMost) size *= loops[--around].count;
    places_.clear();
    Odometer at(loops.subspan(around));
    for (Index i = 0; i < size; i++, at.next())
        places_.push_back({static_cast<std::int32_t>(at.a), static_cast<std::int32_t>(at.b),
                           static_cast<std::int32_t>(at.score), static_cast<std::int32_t>(at.shift)});
    return loops.first(around);
}

// As `eliminate`, in blocks of states whose places are listed, two choices at a time: the later one only where it is
// better.
void GraphMessages::eliminate_listed(Index t) {
    const Step &step = skeleton_->steps[t];
    const LocalStep &local = (*tables_)[t];
    const Loop gone = step.gone;
    const auto around = list_places(tables_->kept(t));
    const auto size = static_cast<Index>(places_.size());
    const double *a = values_ + begin_[step.a];
    for (Index fresh = 0; fresh < step.fresh; fresh++) {
        const Index more = step.shift_has_fresh ? fresh : 0;
        double *out = values_ + begin_[t] + fresh * step.kept_states;
        Odometer at(around);
        for (Index k = 0; k < step.kept_states; k += size, out += size, at.next())
            for (Index v = 0; v < gone.count; v += 2) {
                const bool two = v + 1 < gone.count;
                const double *x = a + at.a + v * gone.a, *x2 = two ? x + gone.a : x;
                const double *g = priced(t) + at.shift + v * gone.shift + more, *g2 = two ? g + gone.shift : g;
                const double *f = local.scores + at.score + v * gone.score + fresh * step.fresh_score;
                const double *f2 = two ? f + gone.score : f;
                for (Index i = 0; i < size; i++) {
                    const Place place = places_[i];
                    const double y = (x[place.a] + g[place.shift]) + f[place.score];
                    const double y2 = (x2[place.a] + g2[place.shift]) + f2[place.score];
                    const double best = y >= y2 ? y : y2;
                    out[i] = v > 0 && out[i] >= best ? out[i] : best;
                }
            }
        if (!local.late) continue;
        for (double *y = out - step.kept_states; y < out; y++) *y += local.late[fresh];
    }
}

void GraphMessages::join_listed(Index t) {
    const Step &step = skeleton_->steps[t];
    const auto around = list_places(tables_->kept(t));
    const auto size = static_cast<Index>(places_.size());
    double *out = values_ + begin_[t];
    Odometer at(around);
    for (Index k = 0; k < step.kept_states; k += size, out += size, at.next()) {
        const double *a = values_ + begin_[step.a] + at.a, *b = values_ + begin_[step.b] + at.b;
        for (Index i = 0; i < size; i++) out[i] = a[places_[i].a] + b[places_[i].b];
    }
}

}  // namespace tallytree::bounds
