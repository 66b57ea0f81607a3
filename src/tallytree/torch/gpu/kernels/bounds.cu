// The best labelling of each sentence by bounds, where counts are of positions: a warp takes a sentence.
//
// A pass with prices bounds the score of every tally, and its labelling is a candidate. A tally is dropped when a bound shows
// that it cannot reach the value of the best labelling so far. If one tally is left, and its best labelling is the only one,
// the sentence is settled. Otherwise it is left to its table (`best.cu`).
#include "asking.cuh"
#include "sweeps.cuh"

constexpr int kTries = 32, kDirections = 8, kRounds = 3;  // places where the bounds so far are compared, for each step
constexpr int kFew = 4;                                   // tallies that are ruled out one by one
constexpr double kUnit = 2.3e-16;

struct Place {  // prices, and the largest budget of a tally there, as far as it is known
    float value;
    int number;
};

struct Hunt {
    const Sentence &x;
    const Asked &asked;
    Room room;
    const Weights &weights;
    double right, plus;
    int most_listed, lane;
    int listed = 0, open = 0;  // tallies that may still be the best; those of them that prices can rule out
    int passes = 0;
    double value = 0, score = 0;  // of the best labelling so far; the score is relative to the truth
    int cell = 0;
    bool landed = false;  // a pass has found the best labelling of this tally
    Prices prices{0, 0};  // of that pass
    double size = 0;      // of the numbers that were added up

    __device__ double tolerance() const { return 64 * kUnit * x.length * (size + fabs(right) + fabs(plus) + fabs(value)); }
    __device__ Tally tally_of(int l) const {
        Shift its = x.split(l);
        return {float(its.lines), float(its.within), 0, 0};
    }
    __device__ int cell_of(const Tally &tally) const { return int(tally.lines) * x.batch->line + int(tally.within); }
    __device__ static double paid(const Prices &prices, const Tally &tally) {
        return double(prices.lines) * tally.lines + double(prices.within) * tally.within;
    }

    // The score, relative to the truth, from which a tally is as good as the best labelling; -inf if all of its labellings are.
    __device__ double need(int l) const {
        double slope = asked.slope(l), offset = asked.offset(l), never = -forbidden(0.0);
        if (!(offset > forbidden(0.0))) return never;
        if (slope > 0) return (value - offset) / slope - plus;
        return offset >= value - tolerance() ? -never : never;
    }

    // ---- labellings ----

    __device__ void meet(const Prices &at, int its, double relative, bool from_pass) {
        Tally tally = tally_of(its);
        if (lane == 0) room.met[passes + from_pass] = {float(relative), tally.lines, tally.within, at, its};
        double worth = asked.value(relative + right, its);
        if (from_pass && !(worth > value || (its == cell && !landed))) return;
        value = worth, score = relative, cell = its, prices = at, landed = from_pass;
        unsigned char *other = room.best;
        room.best = room.path, room.path = other;
    }

    // The true labels, which are the rows of shifts.
    __device__ void meet_truth() {
        double tally = 0;
        for (int t = lane; t < x.length; t += kWarp) tally += x.shift(t, x.place(t));
        meet({0, 0}, int(sum_of_warp(tally)), 0, false);
    }

    // ---- tallies ----

    // Put a tally at the end of the list if it may reach the value. All lanes take part; `some`: whether the lane has one.
    __device__ void keep(bool some, Tally tally, double bound) {
        int l = some ? cell_of(tally) : 0;
        double least = some ? need(l) : 0;
        some = some && least < -forbidden(0.0) && bound + tolerance() >= least - 1e-14 * fabs(least);
        bool closed = l == cell || !(least > forbidden(0.0));
        tally.need = closed ? -forbidden(0.0f) : float(least);
        unsigned kept = __ballot_sync(~0u, some);
        int at = listed + __popc(kept & ((1u << lane) - 1));
        if (some && at < most_listed) room.tallies[at] = tally, room.bounds[at] = bound;
        listed += __popc(kept);
        open += __popc(__ballot_sync(~0u, some && !closed));
        __syncwarp();
    }

    // All tallies of the last table whose counts can be reached together; false if there are too many.
    __device__ bool fill(double bound) {
        Box box = x.box(x.length - 1);
        double most = 0;
        for (int t = lane; t < x.length; t += kWarp) {
            int here = 0;
            for (int s = 0, place = x.place(t); s < C; s++) {
                Shift its = x.split(x.shift_at(place, s));
                here = here < its.lines + its.within ? its.lines + its.within : here;
            }
            most += here;
        }
        float reach = float(sum_of_warp(most));
        bool regular = true;
        for (int first = 0; first < box.size() && listed <= most_listed; first += kWarp) {
            int i = first + lane;
            Tally tally{float(i / box.width), float(i % box.width), 0, 0};
            bool some = i < box.size() && tally.lines + tally.within <= reach;
            if (some && !(asked.slope(cell_of(tally)) >= 0)) regular = false;
            keep(some, tally, bound);
        }
        return __ballot_sync(~0u, !regular) == 0 && listed <= most_listed;
    }

    // Lower the bounds of all tallies.
    __device__ void cut(double most, const Prices &at) {
        int before = listed;
        listed = open = 0;
        for (int first = 0; first < before; first += kWarp) {
            int i = first + lane;
            bool some = i < before;
            Tally tally = some ? room.tallies[i] : Tally{0, 0, 0, 0};
            double bound = most - paid(at, tally), old = some ? room.bounds[i] : 0;
            __syncwarp();
            keep(some, tally, bound < old ? bound : old);
        }
    }

    // ---- prices ----

    // How far tallies, or one of them, may be above what they need at some prices, by the labellings met so far. For all
    // tallies, it is also how far the labellings of other tallies are above the best one, which prices should lead to.
    __device__ float model(const Prices &at, int target) const {
        float others = forbidden(0.0f), own = others, most = others;
        for (int i = 0; i <= passes; i++) {
            const Met &met = room.met[i];
            float its = met.score + at.lines * met.lines + at.within * met.within;
            if (met.cell == cell) own = larger(own, its);
            else others = larger(others, its);
        }
        int first = target < 0 ? 0 : target, end = target < 0 ? listed : target + 1;
#pragma unroll 4
        for (int i = first; i < end; i++) {
            const Tally &tally = room.tallies[i];
            most = larger(most, -tally.need - at.lines * tally.lines - at.within * tally.within);
        }
        if (target >= 0) return larger(others, own) + most;
        return larger(larger(others, own) + most, others - own);
    }

    // The best of some prices.
    template <class Prices_of>
    __device__ Place best_place(Prices_of prices_of, int count, int target) const {
        float least = -forbidden(0.0f);
        int number = count;
        for (int k = lane; k < count; k += kWarp) {
            float its = model(prices_of(k), target);
            if (its < least) least = its, number = k;
        }
        least = -least;
        best_of_warp(least, number);
        return {-least, number};
    }

    // The tally that may be farthest above its need: by its bound, or at some prices.
    __device__ int farthest(const Prices *at) const {
        float most = forbidden(0.0f);
        int number = listed;
        for (int i = lane; i < listed; i += kWarp) {
            const Tally &tally = room.tallies[i];
            float its = at ? float(-paid(*at, tally)) - tally.need : float(room.bounds[i]) - tally.need;
            if (its > most) most = its, number = i;
        }
        best_of_warp(most, number);
        return number < listed ? number : -1;
    }

    __device__ float first_radius(const Met &centre, float budget, int target) const {
        float largest = 1, distance = 1;
        for (int i = 0; i <= passes; i++) largest = larger(largest, 1 + fabsf(room.met[i].score));
        int worst = target < 0 ? farthest(&centre.prices) : target;
        if (worst >= 0) {
            float a = room.tallies[worst].lines - centre.lines, b = room.tallies[worst].within - centre.within;
            distance = larger(distance, sqrtf(a * a + b * b));
        }
        return larger(fabsf(budget), 1e-3f * largest) / distance;
    }

    // Look around the best prices so far for better ones, by the model; `budget`, `least`: there, and at those found.
    __device__ bool aim(int target, Prices &at, float &budget, float &least) const {
        Place centre = best_place([&](int k) { return room.met[1 + k].prices; }, passes, target);
        if (centre.number >= passes) return false;
        const Met &met = room.met[1 + centre.number];
        at = met.prices;
        budget = least = centre.value;
        float radius = first_radius(met, budget, target);
        bool moved = false;
        for (int round = 0; round < kRounds; round++) {
            auto around = [&](int k) {
                float far = radius, sine, cosine;
                sincospif(0.77f * round + 0.31f * passes + 2.0f / kDirections * (k % kDirections), &sine, &cosine);
                for (int i = 0; i < k / kDirections; i++) far /= 3;
                return Prices{at.lines + far * cosine, at.within + far * sine};
            };
            Place found = best_place(around, kTries, target);
            if (found.number < kTries && found.value < least) {
                at = around(found.number), least = found.value, moved = true;
                for (int i = 0; i < found.number / kDirections; i++) radius /= 3;
                radius *= 1.5f;
            } else {
                radius *= 0.25f;
            }
        }
        return moved;
    }

    // The prices of the next pass: for all tallies, or where that gains little for the one that is farthest above its need.
    __device__ bool next(Prices &at) const {
        float budget, least;
        if (aim(-1, at, budget, least) && least <= 0.9f * budget && (least <= 0 || open > kFew)) return true;
        int target = farthest(nullptr);
        return target >= 0 && aim(target, at, budget, least);
    }

    // ---- the search ----

    __device__ bool settle() {
        Prices at{0, 0};
        if (!(right > forbidden(0.0))) return false;
        meet_truth();
        if (!(value > forbidden(0.0))) return false;
        while (passes < kPasses) {
            Swept swept = sweep<false>(x, room, weights, at, REAL(0), lane);
            if (!(swept.most > forbidden(REAL(0)))) return false;
            size = size < double(swept.size) ? double(swept.size) : size;
            int its = trace(x, room, swept.state, lane);
            Chain chain{&x.batch->given, x.number, x.length};
            double relative = chain.score(room.path, lane) - right, most = double(swept.most) - right;
            meet(at, its, relative, true);
            passes++;
            __syncwarp();
            if (passes > 1) cut(most, at);
            else if (!fill(most)) return false;
            if (listed == 1 && landed) return is_only();
            if (open == 0 && listed > 1) return false;
            if (!next(at)) return false;
        }
        return false;
    }

    // Whether the best labelling is the only one that is the best for its tally, up to rounding.
    __device__ bool is_only() const {
        REAL unit = sizeof(REAL) == 4 ? REAL(6e-8) : REAL(1.2e-16);
        return !sweep<true>(x, room, weights, prices, 4 * unit * x.length * REAL(size + fabs(right)), lane).tied;
    }
};

// Write the results for a sentence that is settled.
__device__ void tell(const Hunt &hunt, const Answers &answers) {
    const Sentence &x = hunt.x;
    int positions = x.batch->given.positions;
    int64 *labels = answers.labels + x.number * positions;
    for (int t = hunt.lane; t < positions; t += kWarp) labels[t] = t < x.length ? hunt.room.best[t] : 0;
    if (hunt.lane) return;
    double slope = hunt.asked.slope(hunt.cell), over = slope > 0 ? slope * (hunt.room.bounds[0] - hunt.score) : 0;
    answers.values[x.number] = hunt.value;
    answers.gaps[x.number] = over > 0 ? over : 0;
    answers.slopes[x.number] = slope;
    answers.cells[x.number] = hunt.cell;
}

extern "C" __global__ void __launch_bounds__(128, 4) bounds(const __grid_constant__ Batch batch, const __grid_constant__ Search search) {
    BLOCK_MEMORY;
    if (is_wrong(search.found.words)) return;
    int lane = threadIdx.x % kWarp;
    Weights weights(batch.given, lane);
    each_sentence(batch.given, [&](int64 b) {
        Sentence x = sentence_of(batch, b, nullptr);
        Asked asked = asked_of(batch, search, b);
        Room room(memory, search.listed, batch.given.positions);
        Hunt hunt{x, asked, room, weights, search.right[b], search.plus, search.listed, lane};
        bool settled = hunt.settle();
        __syncwarp();
        if (settled) tell(hunt, search.answers);
        else if (lane == 0) search.answers.cells[b] = kPending;
        __syncwarp();
    });
}
