// Kernels, compiled once per instruction set (see CMakeLists.txt).
#include "kernels/columns.h"

#include "kernels/vectors.h"

namespace tallytree {
namespace TALLYTREE_ISA {
namespace {

// Less does not matter beside the sums of an x near 1, and numbers without all their digits are slow.
constexpr double kSmallest = 1e-290;
INLINE Vector unless_small(Vector v) { return v >= kSmallest ? v : Vector{}; }

void arrive(const ColumnPlace &place, const ColumnSteps &on, const double *before, double *rows) {
    const Int width = place.width;
    for (Int l = 0; l < width; l += W) {
        const Vector counted = load(place.counted + l), other = load(place.other + l), errors = load(place.errors + l);
        const Vector weight = load(place.on + l);
        for (Int c = 0; c < place.columns; c++) {
            double *to = rows + 2 * c * width + l;
            const double *from = before + 2 * c * width + l;
            const Vector factor = counted * splat(place.x[c]) + other;
            Vector mass = load(to), cost = (load(to + width) + errors * mass) * factor, on_mass = {}, on_cost = {};
            mass = mass * factor;
            for (Int d = 0; d < on.count; d++) {
                const Vector by = load(on.into + d * width + l);
                on_mass = on_mass + by * load(from - on.apart[d]);
                on_cost = on_cost + by * load(from + width - on.apart[d]);
            }
            store(to, unless_small(mass + on_mass * weight));
            store(to + width, unless_small(cost + (on_cost + place.missed * on_mass) * weight));
        }
    }
}

void weigh(const ColumnPlace &place, const double *sums, const double *weights, double *off, double *on,
           double *products) {
    const Int width = place.width;
    for (Int l = 0; l < width; l += W) {
        const Vector counted = load(place.counted + l), other = load(place.other + l), errors = load(place.errors + l);
        const Vector weight = load(place.on + l);
        Vector product = load(products + l);
        for (Int c = 0; c < place.columns; c++) {
            const Int at = 2 * c * width + l;
            const Vector factor = counted * splat(place.x[c]) + other;
            const Vector mass = load(weights + at), cost = load(weights + at + width);
            product = product + (load(sums + at) * mass + load(sums + at + width) * cost);
            store(off + at, unless_small((mass + errors * cost) * factor));
            store(off + at + width, unless_small(cost * factor));
            if (!on) continue;
            store(on + at, unless_small((mass + place.missed * cost) * weight));
            store(on + at + width, unless_small(cost * weight));
        }
        store(products + l, product);
    }
}

void go_back(Int columns, Int width, const ColumnSteps &on, const double *before, const double *weights, double *rows,
             double *pairs) {
    for (Int l = 0; l < width; l += W)
        for (Int d = 0; d < on.count; d++) {
            const Vector by = load(on.from + d * width + l);
            const double *after = weights + l + on.apart[d];
            Vector sum = load(pairs + d * width + l);
            for (Int r = 0; r < 2 * columns; r++) {
                const Vector weight = load(after + r * width);
                store(rows + r * width + l, load(rows + r * width + l) + by * weight);
                sum = sum + load(before + r * width + l) * weight;
            }
            store(pairs + d * width + l, sum);
        }
}

}  // namespace

extern const ColumnKernels columns;
const ColumnKernels columns = {arrive, weigh, go_back};

}  // namespace TALLYTREE_ISA
}  // namespace tallytree
