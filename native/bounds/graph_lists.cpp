// Steps of a pass over wide tables, two choices at a time: along rows of states where the inner loops are long, and by
// lists of places in the operands, for blocks of states, where they are short.
#include "bounds/graph_messages.h"
#include "tables/upward.h"

namespace tallytree::bounds {

namespace {

// The best of two choices for each state of a row, or of these and what is there already.
void best_of_two(double *__restrict out, const double *__restrict x, const double *__restrict x2, Index count, double g,
                 double f, double g2, double f2, bool first) {
    if (first)
        for (Index i = 0; i < count; i++) {
            const double y = (x[i] + g) + f, y2 = (x2[i] + g2) + f2;
            out[i] = y >= y2 ? y : y2;
        }
    else
        for (Index i = 0; i < count; i++) {
            const double y = (x[i] + g) + f, y2 = (x2[i] + g2) + f2;
            const double best = y >= y2 ? y : y2;
            out[i] = out[i] >= best ? out[i] : best;
        }
}

}  // namespace

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
                best_of_two(out, x, x + next * gone.a, count, *g, *f, g[next * gone.shift], f[next * gone.score],
                            v == 0);
            }
        if (!local.late) continue;
        for (double *y = out - step.kept_states; y < out; y++) *y += local.late[fresh];
    }
}

void GraphMessages::join_rows(Index t) {
    const Step &step = skeleton_->steps[t];
    const auto loops = tables_->kept(t);
    const Loop inner = loops.back();
    double *__restrict out = values_ + begin_[t];
    Odometer at(loops.first(loops.size() - 1));
    for (Index k = 0; k < step.kept_states; k += inner.count, out += inner.count, at.next()) {
        const double *__restrict a = values_ + begin_[step.a] + at.a;
        const double *__restrict b = values_ + begin_[step.b] + at.b;
        if (inner.a == 1 && inner.b == 1)
            for (Index i = 0; i < inner.count; i++) out[i] = a[i] + b[i];
        else if (inner.a == 1)
            for (Index i = 0; i < inner.count; i++) out[i] = a[i] + *b;
        else
            for (Index i = 0; i < inner.count; i++) out[i] = *a + b[i];
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
